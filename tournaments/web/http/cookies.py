"""Signed cookies, which only this site can make or change, with HttpOnly and SameSite=Lax."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.responses import Response

DAY_S = 86_400


@dataclass(frozen=True)
class Kind:
    """Name and lifetime of a cookie."""

    name: str
    lasts_s: int


class Cookie(Enum):
    """The cookies of this site."""

    SESSION = Kind("session", 14 * DAY_S)
    """The secret of a session; it lasts as long as ``Sessions`` keeps it."""
    FORM = Kind("form", DAY_S)
    """The CSRF text of forms before there is a session."""
    NOTE = Kind("note", 60)
    """A sentence for the page after a redirection."""


class Cookies:
    """Reads and writes signed cookies."""

    def __init__(self, key: bytes, secure: bool) -> None:
        self._key = key
        self._secure = secure

    def name(self, cookie: Cookie) -> str:
        """Return the full name; browsers accept ``__Host-`` from this very site over TLS only."""
        return f"__Host-kalarena-{cookie.value.name}" if self._secure else f"kalarena-{cookie.value.name}"

    def read(self, sent: Mapping[str, str], cookie: Cookie) -> str | None:
        """Return the value of a cookie; None if it is missing, too old or not signed by this site."""
        text = sent.get(self.name(cookie))
        if text is None:
            return None
        try:
            value = self._serializer(cookie).loads(text, max_age=cookie.value.lasts_s)
        except BadSignature:
            return None
        return value if isinstance(value, str) else None

    def write(self, response: Response, cookie: Cookie, value: str) -> None:
        """Set a cookie in a response."""
        response.set_cookie(
            self.name(cookie),
            str(self._serializer(cookie).dumps(value)),
            max_age=cookie.value.lasts_s,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def clear(self, response: Response, cookie: Cookie) -> None:
        """Delete a cookie in a response."""
        response.delete_cookie(
            self.name(cookie), path="/", secure=self._secure, httponly=True, samesite="lax"
        )

    def _serializer(self, cookie: Cookie) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key, salt=f"kalarena {cookie.value.name}")
