"""Tournaments: many games, their results, and the course around them.

The names below are the public interface, see docs/api/tournaments.md.  They are imported when they are first
used.

The packages are layers: ``files`` and ``processes``, ``database``, ``schedule`` (who meets whom), ``results``
(what is stored), ``bots`` (from source to a command), ``analysis`` (standings and ratings), ``checking``,
``config`` (tournament.toml), ``engines`` (where games run), ``running``, ``reporting``, ``api``, ``course``,
``server``, ``web``, ``cli``.  docs/design.md has the picture.  Begin at ``running.runner``, which plays a
tournament.

May import ``sample_bots``, ``referee`` and ``protocol``, and each layer those before it.
"""

from typing import TYPE_CHECKING

__all__ = [
    "BotError",
    "ConfigError",
    "DirectoryError",
    "EngineError",
    "RehearsalError",
    "Results",
    "SandboxError",
    "StoreError",
    "Tournament",
    "bot",
    "run",
]

if TYPE_CHECKING:
    from referee.sandbox.detection import SandboxError
    from tournaments.api import Results, bot, run
    from tournaments.bots.errors import BotError
    from tournaments.config.load import ConfigError
    from tournaments.config.tournament import Tournament
    from tournaments.engines.base import EngineError
    from tournaments.reporting.tournament_directory import DirectoryError
    from tournaments.results.store import StoreError
    from tournaments.running.rehearsal import RehearsalError
else:
    from referee.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "referee.sandbox.detection": ("SandboxError",),
            "tournaments.api": ("Results", "bot", "run"),
            "tournaments.bots.errors": ("BotError",),
            "tournaments.config.load": ("ConfigError",),
            "tournaments.config.tournament": ("Tournament",),
            "tournaments.engines.base": ("EngineError",),
            "tournaments.reporting.tournament_directory": ("DirectoryError",),
            "tournaments.results.store": ("StoreError",),
            "tournaments.running.rehearsal": ("RehearsalError",),
        },
    )
