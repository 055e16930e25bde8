"""Presentation of model fields as form inputs, where title, description and type do not determine it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FormInput:
    """Metadata for ``Annotated``, which validation and JSON schemas ignore."""

    kind: str | None = None
    """Type of the HTML input; None: by the type of the field."""
    step: str | None = None
    """Step of a number input; None: by the type of the field."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values with their labels."""
