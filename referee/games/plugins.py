"""Search for games that other modules register: files that the user names, and installed distributions.

A game that is not part of Kalarena is a module that calls ``referee.games.catalog.register_game`` when it is
imported.  It is found, by the name of its game, in every process that plays, also in the sandbox of a bot:

- if the environment variable KALARENA_GAMES has the path of its file (several paths are separated as in
  PATH), or
- if an installed distribution declares it as an entry point of the group ``kalarena.games``.
"""

import os
import sys
from types import ModuleType

GAMES_VARIABLE = "KALARENA_GAMES"
ENTRY_POINT_GROUP = "kalarena.games"


class GameModuleError(ValueError):
    """A module of a game that cannot be imported; the message has the reason."""


def load_named_files() -> None:
    """Import the files of KALARENA_GAMES that are not imported yet.  Raises GameModuleError."""
    for path in filter(None, os.environ.get(GAMES_VARIABLE, "").split(os.pathsep)):
        load_file(path)


def load_entry_points(name: str | None = None) -> None:
    """Import the installed modules of a game, or of all games.  Raises GameModuleError."""
    from importlib import metadata  # slow to import, and needed for unknown games alone

    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        if name in (None, point.name):
            try:
                point.load()
            except Exception as error:
                raise GameModuleError(
                    f"the game {point.name} ({point.value}) cannot be loaded: {_reason(error)}"
                ) from error


def load_file(path: str) -> ModuleType:
    """Import a file, once in each process.  Raises GameModuleError."""
    file = os.path.abspath(path)  # noqa: PTH100 - keeps links as they are
    name = f"kalarena_game {file}"
    if name in sys.modules:
        return sys.modules[name]
    import importlib.util  # needed for further games alone

    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise GameModuleError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise GameModuleError(f"the game module {path} cannot be loaded: {_reason(error, file)}") from error
    return module


def _reason(error: Exception, file: str = "") -> str:
    """Return an error of an import in words, with the last line of ``file`` that it passed through."""
    from traceback import walk_tb  # slow to import, and needed for wrong modules alone

    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"
