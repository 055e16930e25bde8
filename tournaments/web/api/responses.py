"""JSON responses of the HTTP API, and the parsing of its bodies and queries."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from tournaments.files.validation_errors import problem_lines
from tournaments.web.api.schemas import LONGEST_TEXT, NO_NUL
from tournaments.web.http.errors import BadInput
from tournaments.web.http.request_body import number_in
from tournaments.web.http.routing import LARGEST_NUMBER

Model = TypeVar("Model", bound=BaseModel)

NUMBER = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
TEXT = {"type": "string", "maxLength": LONGEST_TEXT, "pattern": NO_NUL}
"""JSON Schemas of the values that ``number_in_query`` and ``text_in_query`` accept."""


def answer(model: BaseModel, status: int = 200) -> Response:
    """Return a model as JSON."""
    return Response(model.model_dump_json(), status, media_type="application/json")


async def body_of(request: Request, model: type[Model]) -> Model:
    """Return the JSON body of a request.

    Raises:
        BadInput: The body does not fit the model.

    """
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        found = "; ".join(problem_lines(error, model))
        raise BadInput(f"The body has another shape than /api/openapi.json says: {found}") from error


def text_in_query(request: Request, name: str, default: str) -> str:
    """Return a value of the query.

    Raises:
        BadInput: The value is there twice, is too long, or has a NUL character.

    """
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise BadInput(f"{name}= is in the query twice.")
    text: str = values[0] if values else default
    if "\0" in text or len(text) > LONGEST_TEXT:
        raise BadInput(f"{name}= is longer than {LONGEST_TEXT} characters, or has a NUL character.")
    return text


def number_in_query(request: Request, name: str, default: int, least: int = 0) -> int:
    """Return a whole number in the query.

    Raises:
        BadInput: The value is no whole number, or out of bounds.

    """
    number = number_in(text_in_query(request, name, str(default)), -1, most_digits=len(str(LARGEST_NUMBER)))
    if not least <= number <= LARGEST_NUMBER:
        raise BadInput(f"{name}= must be a whole number from {least} to {LARGEST_NUMBER}.")
    return number
