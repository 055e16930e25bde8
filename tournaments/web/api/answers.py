"""From shapes to answers, and from queries to values."""

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from tournaments.web.errors import BadInput

LARGEST_NUMBER = 2**31 - 1
"""In queries, as in addresses: what both databases take."""
LONGEST_TEXT = 255
"""Of a value in a query, in characters: the longest name of a file on Linux has as many bytes."""
NUMBER = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
TEXT = {"type": "string", "maxLength": LONGEST_TEXT, "pattern": "^[^\\u0000]*$"}
"""What ``number_in_query`` and ``text_in_query`` take, as JSON Schema."""


def answer(shape: BaseModel, status: int = 200) -> Response:
    """A shape as JSON."""
    return Response(shape.model_dump_json(), status, media_type="application/json")


def text_in_query(request: Request, name: str, default: str) -> str:
    """A value of the query.

    Raises:
        BadInput: It is there twice, too long, or holds a NUL character.

    """
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise BadInput(f"{name}= is in the query twice.")
    text: str = values[0] if values else default
    if "\0" in text or len(text) > LONGEST_TEXT:
        raise BadInput(f"{name}= is longer than {LONGEST_TEXT} characters, or has a NUL character.")
    return text


def number_in_query(request: Request, name: str, default: int, least: int = 0) -> int:
    """A whole number in the query.

    Raises:
        BadInput: It is none, or out of bounds.

    """
    text = text_in_query(request, name, str(default))
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= LARGEST_NUMBER:
        raise BadInput(f"{name}= must be a whole number from {least} to {LARGEST_NUMBER}.")
    return int(text)
