"""Cookies that only this site can make."""

import pytest
from itsdangerous import URLSafeTimedSerializer
from starlette.responses import Response

from tournaments.web.http.sessions import Cookie, Cookies

KEY = b"k" * 32


def written(cookies: Cookies, cookie: Cookie, value: str) -> tuple[str, str, str]:
    """Name, value and attributes, as they are sent."""
    response = Response()
    cookies.write(response, cookie, value)
    pair, _, attributes = response.headers["set-cookie"].partition("; ")
    name, _, text = pair.partition("=")
    return name, text, attributes


@pytest.mark.parametrize("cookie", Cookie)
def test_what_was_written_is_read(cookie: Cookie) -> None:
    cookies = Cookies(KEY, secure=False)
    name, text, attributes = written(cookies, cookie, "a value; with = signs")
    assert cookies.read({name: text}, cookie) == "a value; with = signs"
    assert attributes == f"HttpOnly; Max-Age={cookie.value.lasts_s}; Path=/; SameSite=lax"


def test_behind_tls_no_other_site_can_set_it() -> None:
    name, _, attributes = written(Cookies(KEY, secure=True), Cookie.SESSION, "x")
    assert name == "__Host-kalarena-session"
    assert "; Secure" in attributes
    assert "Domain" not in attributes


def test_nobody_else_can_make_one() -> None:
    cookies = Cookies(KEY, secure=False)
    name, text, _ = written(cookies, Cookie.SESSION, "secret")
    forged = str(URLSafeTimedSerializer(b"other" * 8, salt="kalarena session").dumps("secret"))
    for wrong in (forged, text[:-1], "x" + text, "", "secret", "ä", "." * 100):
        assert cookies.read({name: wrong}, Cookie.SESSION) is None
    assert cookies.read({}, Cookie.SESSION) is None


def test_one_kind_is_not_another() -> None:
    cookies = Cookies(KEY, secure=False)
    _, text, _ = written(cookies, Cookie.NOTE, "chosen by somebody")
    assert cookies.read({cookies.name(Cookie.SESSION): text}, Cookie.SESSION) is None


def test_an_old_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cookies = Cookies(KEY, secure=False)
    name, text, _ = written(cookies, Cookie.NOTE, "Saved.")
    monkeypatch.setattr("itsdangerous.timed.TimestampSigner.get_timestamp", lambda _signer: 2**31 - 1)
    assert cookies.read({name: text}, Cookie.NOTE) is None
