"""Error messages for TOML files, settings and API bodies, one line for each problem."""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, get_args

from referee.games.spec import did_you_mean
from referee.judge.verdict_text import counted

if TYPE_CHECKING:  # importing pydantic takes longer than a game, and bot.toml needs none of it
    from pydantic import BaseModel, ValidationError


def problem_lines(error: "ValidationError", model: "type[BaseModel]") -> list[str]:
    """Return the problems that a model found, a line each."""
    return [problem_line(item, model) for item in error.errors()]


def problem_line(item: Any, model: "type[BaseModel]") -> str:
    """Return one of the errors of a ValidationError as a line, which begins with its location."""
    where, keys = _locate(item["loc"], model)
    return _problem(item, where, keys).removeprefix(": ")  # a problem of the whole file has no location


def _problem(item: Any, where: str, keys: list[str]) -> str:
    location: tuple[Any, ...] = item["loc"]
    context = item.get("ctx", {})
    given = shown(item["input"])
    noun = (
        location[-1] if location and location[-1] in ("bots", "authors", "games", "references") else "items"
    ).removesuffix("s")
    match item["type"]:
        case "extra_forbidden":
            return unknown_key(where, str(location[-1]), keys)
        case "missing":
            return f"{where}: is missing"
        case "value_error":
            return f"{where.removesuffix('.bot')}: {context['error']}"
        case "too_short":
            return f"{where}: needs at least {counted(context['min_length'], noun)}"
        case "too_long":
            return f"{where}: at most {counted(context['max_length'], noun)}, not {context['actual_length']}"
        case "string_too_short" if context["min_length"] == 1:
            return f"{where}: must not be empty"
        case "string_too_short":
            return f"{where}: must be a text of at least {context['min_length']} characters"
        case "string_too_long":
            return f"{where}: must be a text of at most {context['max_length']} characters"
        case "string_pattern_mismatch" if "\0" in item["input"]:
            return f"{where}: must not contain a NUL character"
        case "string_pattern_mismatch":
            return f"{where}: must be a text that matches {context['pattern']}, not {given}"
        case "int_parsing" | "int_from_float" | "int_parsing_size" | "int_type":
            return f"{where}: must be a whole number, not {given}"
        case "float_parsing" | "float_type":
            return f"{where}: must be a number, not {given}"
        case "bool_parsing" | "bool_type":
            return f"{where}: must be true or false, not {given}"
        case "string_type":
            return f"{where}: must be a text, not {given}"
        case "model_type" | "dict_type":
            return f"{where}: must be a table of keys, not {given}"
        case "list_type" | "tuple_type":
            return f"{where}: {no_list(item['input'])}"
    message = item["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{where}: must be {message}, not {given}"


TAG = "kind"
"""Key by which a table of several possible kinds is recognized; pydantic puts its value into locations."""


def _locate(location: tuple[Any, ...], model: "type[BaseModel]") -> tuple[str, list[str]]:
    """Return a location as the file's author would write it, and the keys of the table that it ends in."""
    where = ""
    tables, models = [model], [model]
    for part in location:
        if isinstance(part, int):
            where += f"[{part + 1}]"
        elif len(models) > 1 and (tagged := [one for one in models if _tag(one) == part]):
            models = tagged
        else:
            where += ("." if where else "") + str(part)
            tables = models
            found = [field for one in models for key, field in _fields(one) if key == part]
            models = _models_in(found[0].annotation) if found else []
    return where, [key for table in tables[:1] for key, _ in _fields(table)]


def _tag(model: "type[BaseModel]") -> Any:
    return model.model_fields[TAG].default if TAG in model.model_fields else None


def _fields(model: "type[BaseModel]") -> list[tuple[str, Any]]:
    """Return the keys of a table as the file has them, and their fields."""
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> "list[type[BaseModel]]":
    """Return the models of an annotation, which may be a union, a list, or annotated."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def unknown_key(where: str, key: str, known: Collection[str]) -> str:
    """Return the line about an unknown key."""
    return f"{where}: unknown key{suggestion(key, known)}"


def suggestion(wrong: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown word: the known word that is like it, or all of them."""
    return did_you_mean(wrong, known) or f"; there are {', '.join(known)}"


def no_list(value: Any) -> str:
    """Return the end of a message about a value that is no list; a single text is shown as a list of one."""
    example = (
        f", such as {json.dumps([value], ensure_ascii=False)}"
        if isinstance(value, str) and len(value) <= 60
        else ""
    )
    return f"must be a list{example}, not {shown(value)}"


def shown(value: Any, limit: int = 60) -> str:
    """Return the text of a value from the file, cut if it is long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # of tables in tables by a long dotted key; of a hexadecimal number
        return "a value that is too deep or has too many digits"
    return text if len(text) <= limit else text[:limit] + "..."
