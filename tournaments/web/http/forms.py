"""Access to the fields of a submitted form."""

from starlette.datastructures import FormData


def text_of(form: FormData, name: str) -> str:
    """Return the text of a field; empty if the field is missing or a file."""
    value = form.get(name)
    return value if isinstance(value, str) else ""
