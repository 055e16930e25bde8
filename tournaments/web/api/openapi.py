"""The OpenAPI document of the HTTP API, made from the table of its operations.  Pure.

https://spec.openapis.org/oas/v3.1.0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tournaments.web.api.schemas import ErrorAnswer
from tournaments.web.http.routing import Access, Route

OPENAPI_VERSION = "3.1.0"
SCHEMAS = "#/components/schemas/{model}"


@dataclass(frozen=True)
class Parameter:
    """A value in a request's path or query."""

    name: str
    where: str
    """``path`` or ``query``."""
    schema: dict[str, Any]
    about: str
    required: bool = False


@dataclass(frozen=True)
class Operation:
    """A route of the API as it is documented."""

    route: Route
    summary: str
    answers: dict[int, type[BaseModel]]
    """Status of a success -> the model of the response."""
    refusals: dict[int, str]
    """Status of a refusal -> its cause; the model is always ``ErrorAnswer``."""
    parameters: tuple[Parameter, ...] = ()
    body: str = ""
    """Description of the request's body, bytes or JSON; empty without one."""
    body_model: type[BaseModel] | None = None
    """Model of a JSON body."""

    @property
    def path(self) -> str:
        """Path without Starlette's types."""
        return "/".join(
            "{" + part[1:-1].partition(":")[0] + "}" if part.startswith("{") else part
            for part in self.route.path.split("/")
        )


def document(operations: Sequence[Operation], title: str, version: str) -> dict[str, Any]:
    """Return the document for a server of this title."""
    models: set[type[BaseModel]] = {ErrorAnswer}
    for operation in operations:
        models.update(operation.answers.values())
    ordered = sorted(models, key=lambda model: model.__name__)
    bodies = [operation.body_model for operation in operations if operation.body_model is not None]
    _, schemas = models_json_schema(
        [
            *((model, "serialization") for model in ordered),
            *((model, "validation") for model in sorted(bodies, key=lambda model: model.__name__)),
        ],
        ref_template=SCHEMAS,
    )
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.route.method.lower()] = _operation(operation)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": f"{title}: HTTP API",
            "version": version,
            "description": "Submits bots and reads results.  Programs show a token, which students make on "
            "their account's page.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    route = operation.route
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": operation.summary,
        "responses": {
            str(status): _answer(model, model.__doc__ or "") for status, model in operation.answers.items()
        }
        | {str(status): _answer(ErrorAnswer, when) for status, when in operation.refusals.items()},
    }
    if operation.parameters:
        found["parameters"] = [
            {
                "name": parameter.name,
                "in": parameter.where,
                "description": parameter.about,
                "required": parameter.required or parameter.where == "path",
                "schema": parameter.schema,
            }
            for parameter in operation.parameters
        ]
    if operation.body:
        found["requestBody"] = {
            "required": True,
            "description": operation.body,
            "content": _body(operation.body_model),
        }
    if route.access is Access.PUBLIC:
        found["security"] = [{"token": []}, {}]
    elif route.access is not Access.EVERYBODY:
        found["security"] = [{"token": []}]
    return found


def _body(model: type[BaseModel] | None) -> dict[str, Any]:
    if model is None:
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": {"$ref": SCHEMAS.format(model=model.__name__)}}}


def _answer(model: type[BaseModel], about: str) -> dict[str, Any]:
    schema = {"$ref": SCHEMAS.format(model=model.__name__)}
    return {
        "description": about.strip().splitlines()[0],
        "content": {"application/json": {"schema": schema}},
    }
