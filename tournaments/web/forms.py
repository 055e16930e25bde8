"""What a form brought."""

from starlette.datastructures import FormData


def text_of(form: FormData, name: str) -> str:
    """The text of a field; empty if there is none, or if it is a file."""
    value = form.get(name)
    return value if isinstance(value, str) else ""
