"""Form inputs made from the fields of pydantic models: title, description, type and metadata.  Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tournaments.config.format_tables import FormInput

KINDS = {bool: "checkbox", int: "number", float: "number", datetime: "datetime-local", str: "text"}
"""Type of a field -> type of its HTML input."""
STEPS = {int: "1", float: "any"}
IDENTIFIER = re.compile(r"[0-9_]")
"""Characters that mark a name in a sentence as that of a field: ``pairs`` may be a word of the sentence."""


@dataclass(frozen=True)
class FormField:
    """Form input of one field."""

    name: str
    label: str
    hint: str
    kind: str
    """Type of the HTML input, or ``choice``, or ``words`` for a list in one line of text.

    ``game`` and ``players`` are the inputs of ``lecturer.choices``.
    """
    choices: tuple[tuple[str, str], ...]
    """Values with their labels."""
    step: str | None
    """Step of a number input."""

    @property
    def attributes(self) -> dict[str, str]:
        """HTML attributes of the input, beside name and type."""
        return {} if self.step is None else {"step": self.step}


@dataclass(frozen=True)
class Section:
    """Fields that belong together."""

    title: str
    fields: tuple[FormField, ...]


def form_fields(model: type[BaseModel], names: Iterable[str], within: str = "") -> tuple[FormField, ...]:
    """Return the inputs for these fields of a model.

    Args:
        model: The model, whose fields have titles.
        names: Names of the fields, in the order of the form.
        within: Name of the outer model's field for this model, which is put before the inputs' names.

    """
    return tuple(
        _form_field(f"{within}.{name}" if within else name, model.model_fields[name]) for name in names
    )


def _form_field(name: str, field: FieldInfo) -> FormField:
    given = next((item for item in field.metadata if isinstance(item, FormInput)), FormInput())
    multiple = next((item.multiple_of for item in field.metadata if hasattr(item, "multiple_of")), None)
    kind = _type_of(field.annotation)
    return FormField(
        name=name,
        label=field.title or name,
        hint=field.description or "",
        kind="choice" if given.choices else given.kind or KINDS.get(kind, "words"),
        choices=given.choices,
        step=given.step or (STEPS.get(kind) if multiple is None else str(multiple)),
    )


def _type_of(annotation: Any) -> Any:
    """Return the type of a field that may also be None; ``list`` for a list."""
    if get_origin(annotation) is list:
        return list
    return next((one for one in get_args(annotation) if one is not NoneType), annotation)


def labelled(problem: str, fields: Iterable[FormField]) -> str:
    """Return a problem with labels in the place of the names of fields.

    Names are at its beginning, as in ``seed: ...`` or ``quiet_from and quiet_to: ...``.  The problem of a
    table begins with the table's name, as in ``format: groups = 99 ...``, and has its fields' names in the
    text, where a label is in quotation marks.
    """
    before, separator, text = problem.partition(": ")
    labels = {field.name: field.label for field in fields}
    found = [labels.get(name.partition("[")[0]) for name in before.split(" and ")]
    if separator and None not in found:
        return f"{' and '.join(map(str, found))}: {text}"

    def label(name: re.Match[str]) -> str:
        found = labels.get(f"{before}.{name[0]}")
        if found is None or not (name.start() == 0 or IDENTIFIER.search(name[0])):
            return name[0]
        return found if name.start() == 0 else f"“{found}”"

    shown = re.sub(r"\w+", label, text)
    return problem if shown == text else shown


def form_value(value: Any, zone: tzinfo = UTC) -> str:
    """Return the value of an input; ``true`` for a ticked box.  Moments are shown in ``zone``."""
    match value:
        case None | False:
            return ""
        case True:
            return "true"
        case float():
            return f"{value:g}"
        case datetime():
            return f"{value.astimezone(zone):%Y-%m-%dT%H:%M:%S}".removesuffix(":00")
        case list():
            return " ".join(value)
    return str(value)
