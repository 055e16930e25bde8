"""From shapes to answers, and from queries to values."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from tournaments.files.validation_errors import render
from tournaments.web.api.views import LONGEST_TEXT, NO_NUL
from tournaments.web.http.errors import BadInput

Shape = TypeVar("Shape", bound=BaseModel)

LARGEST_NUMBER = 2**31 - 1
"""In queries, as in addresses: what both databases take."""
NUMBER = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
TEXT = {"type": "string", "maxLength": LONGEST_TEXT, "pattern": NO_NUL}
"""What ``number_in_query`` and ``text_in_query`` take, as JSON Schema."""


def answer(shape: BaseModel, status: int = 200) -> Response:
    """A shape as JSON."""
    return Response(shape.model_dump_json(), status, media_type="application/json")


async def body_of(request: Request, shape: type[Shape]) -> Shape:
    """Return the JSON body of a request.

    Raises:
        BadInput: The body has another shape.

    """
    try:
        return shape.model_validate_json(await request.body())
    except ValidationError as error:
        problems = (render(item, lambda _: list(shape.model_fields)) for item in error.errors())
        found = "; ".join(problem.removeprefix(": ") for problem in problems)
        raise BadInput(f"The body has another shape than /api/openapi.json says: {found}") from error


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
