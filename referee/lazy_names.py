"""Names of a package that are imported when they are first used.

A bot that uses the rules imports the package ``referee`` in each process, and must not import the event loop
and the sandbox with it.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: dict[str, Any], modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: ``globals()`` of the package.
        modules: Module -> the names that the package has from it.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        package[name] = value = getattr(import_module(homes[name]), name)
        return value

    return get, lambda: sorted({*package, *homes})
