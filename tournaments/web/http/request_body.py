"""Request bodies with limits of size and time, and the values in forms and queries."""

from collections.abc import Sequence

import trio
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.types import Message, Receive

from tournaments.bots.upload.limits import size_text
from tournaments.web.http.errors import BadInput, TooLarge, TooSlow, storage_failure

PATIENCE_S = 20.0
"""Seconds allowed for any body."""
SLOWEST = 20_000
"""Slowest accepted rate beyond that, in bytes per second: a tenth of a bad mobile connection."""
DRAIN_S = 5.0
"""Seconds for which a rejected body is read on: a client that is still sending does not see the response."""
UPLOAD_DRAIN_S = 60.0
"""Seconds for which a rejected upload, which may be large, is read on: the student must see the reason."""


class Body:
    """Receives one request's body."""

    def __init__(self, receive: Receive, limit: int, declared: int | None) -> None:
        self._receive = receive
        self.limit = limit
        """Most bytes of the body; may be set until the body is read."""
        self._declared = declared
        self._received = 0
        self.over = False
        """True if the whole body was read, or the client has disconnected."""
        self._deadline: float | None = None

    async def receive(self) -> Message:
        """Receive the next ASGI message.

        Raises:
            TooLarge: More bytes than the limit, declared or sent.
            TooSlow: The body takes too long to arrive.

        """
        if self.over:
            return await self._receive()  # a disconnection, whenever it comes
        if self._declared is not None and self._declared > self.limit:
            raise self._too_large()
        if self._deadline is None:
            expected = self.limit if self._declared is None else self._declared
            self._deadline = trio.current_time() + PATIENCE_S + expected / SLOWEST
        message: Message | None = None
        with trio.move_on_at(self._deadline):
            message = await self._receive()
        if message is None:
            raise TooSlow("The request took too long to arrive. Try again over a better connection.")
        self._count(message)
        if self._received > self.limit:
            raise self._too_large()
        return message

    async def drain(self, limit_s: float) -> None:
        """Read and discard the rest of the body, for at most so many seconds."""
        with trio.move_on_after(limit_s):
            while True:
                self._count(await self._receive())
                if self.over:
                    break

    def _count(self, message: Message) -> None:
        self._received += len(message.get("body", b""))
        self.over = message["type"] != "http.request" or not message.get("more_body", False)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"This is too large: at most {size_text(self.limit)} are taken here.")


MOST_FILES = 2_000
"""Most files of one form: a folder's, dropped into a page.  Submissions have a lower limit of their own."""
MOST_FIELDS = 2_000
"""Most fields of one form: the settings have some dozens."""


async def form_of(request: Request) -> FormData:
    """Return the form of a request.

    Raises:
        Unavailable: A file of the form cannot be written to the disk.

    """
    try:
        return await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
    except OSError as error:  # from the temporary files of large parts
        raise storage_failure(error) from error


def number_in(text: str | None, default: int, most_digits: int = 8) -> int:
    """Return the whole number in a text that a browser sent; ``default`` if it is invalid or too long."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= most_digits):
        return default
    return int(text)


def text_of(form: FormData, name: str) -> str:
    """Return the text of a field; empty if the field is missing or a file."""
    value = form.get(name)
    return value if isinstance(value, str) else ""


def choice_of(form: FormData, name: str, choices: Sequence[str]) -> str:
    """Return the text of a field, which is one of the choices.

    Raises:
        BadInput: The field is missing, or has another value.

    """
    text = text_of(form, name)
    if text not in choices:
        raise BadInput(f"The form must have {name}={' or '.join(choices)}. Load its page again.")
    return text


def is_yes(form: FormData, name: str) -> bool:
    """Return True for ``yes`` in a field, False for ``no``.  Raises BadInput."""
    return choice_of(form, name, ("yes", "no")) == "yes"


BODY_LIMIT = 2 << 20
"""Bytes of a form with such a text: a roster of 10,000 students has half of that."""


async def sent_text(form: FormData, name: str) -> str:
    """Return the file in the field ``NAME_file`` if one was chosen, else the text in ``NAME``.

    Raises:
        BadInput: The file is not UTF-8 text.

    """
    file = form.get(f"{name}_file")
    if not isinstance(file, UploadFile) or not file.filename:
        return text_of(form, name).replace("\r\n", "\n")
    try:
        text = (await file.read()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            "The file is not UTF-8 text: save it as UTF-8 (in a spreadsheet: CSV UTF-8)."
        ) from error
    if "\0" in text:
        raise BadInput("The file has NUL characters: it is no text.")
    return text
