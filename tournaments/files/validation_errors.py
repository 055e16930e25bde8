"""Error messages for TOML files, one line for each problem."""

from collections.abc import Callable, Sequence
from typing import Any

from referee.games.spec import did_you_mean


def render(item: Any, known_keys: Callable[[tuple[Any, ...]], list[str]]) -> str:
    """Return one of pydantic's errors as a line; ``known_keys`` returns the valid keys at a location."""
    location: tuple[Any, ...] = item["loc"]
    where = ""
    for part in location:
        where += f"[{part + 1}]" if isinstance(part, int) else ("." if where else "") + str(part)
    context = item.get("ctx", {})
    given = shown(item["input"])
    noun = (
        location[-1] if location and location[-1] in ("bots", "authors", "games", "references") else "words"
    )
    match item["type"]:
        case "extra_forbidden":
            return unknown_key(where, str(location[-1]), known_keys(location))
        case "missing":
            return f"{where}: is missing"
        case "value_error":
            return f"{where.removesuffix('.bot')}: {context['error']}"
        case "too_short":
            return f"{where}: needs at least {context['min_length']} {noun}"
        case "too_long":
            return f"{where}: at most {context['max_length']} {noun}, not {context['actual_length']}"
        case "string_too_short" | "string_too_long":
            return f"{where}: must be a text of 1 to 200 characters"
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return f"{where}: must be a whole number, not {given}"
        case "float_parsing":
            return f"{where}: must be a number, not {given}"
        case "bool_parsing":
            return f"{where}: must be true or false, not {given}"
        case "model_type" | "dict_type":
            return f"{where}: must be a table of keys, not {given}"
    message = item["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{where}: must be {message}, not {given}"


def unknown_key(where: str, key: str, known: Sequence[str]) -> str:
    """Return the line about an unknown key."""
    hint = did_you_mean(key, known) or f"; there are {', '.join(known)}"
    return f"{where}: unknown key{hint}"


def shown(value: Any, limit: int = 60) -> str:
    """Return a value of the file, cut if it is long."""
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."
