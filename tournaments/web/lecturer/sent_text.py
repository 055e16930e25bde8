"""A text that may be pasted into a form or chosen as a file."""

from starlette.datastructures import FormData, UploadFile

from tournaments.web.http.errors import BadInput
from tournaments.web.http.forms import text_of

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
