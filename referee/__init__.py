"""The referee: one game between two bots, from start to record.

The names below are the public interface, see docs/api/games.md.  They are imported when they are first used,
since sample bots import this package in every process of theirs.

``games`` has the rules, ``judge`` decides (both pure: events in, verdicts out), ``sandbox`` confines bots,
``process`` runs and measures them, ``players`` are functions and people, ``session`` connects two players to
the judge.  ``conformance`` examines one bot against a scripted opponent.  Begin at ``playing.play_game``.
May import ``protocol``; all packages may import ``errors``.
"""

from typing import TYPE_CHECKING

__all__ = [
    "FunctionPlayer",
    "Game",
    "GameRecord",
    "Job",
    "Limits",
    "Match",
    "MatchResult",
    "MoveRecord",
    "OpeningError",
    "Player",
    "Reason",
    "RefereeError",
    "SandboxError",
    "SessionPlayer",
    "SpecError",
    "TimeControl",
    "check_replay",
    "find_sandbox",
    "parse_game",
    "play",
    "play_game",
    "register_game",
]

if TYPE_CHECKING:
    from referee.errors import RefereeError
    from referee.games.base import Game
    from referee.games.catalog import parse_game, register_game
    from referee.games.opening import OpeningError
    from referee.games.spec import SpecError
    from referee.judge.clock import TimeControl
    from referee.judge.limits import Limits
    from referee.judge.match import Match
    from referee.judge.record_rows import MoveRecord
    from referee.judge.replay_check import check_replay
    from referee.judge.results import GameRecord, MatchResult, Player, Reason
    from referee.players.function_player import FunctionPlayer
    from referee.playing import Job, play, play_game
    from referee.process.player import SessionPlayer
    from referee.sandbox.detection import SandboxError, find_sandbox
else:
    from referee.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "referee.errors": ("RefereeError",),
            "referee.players.function_player": ("FunctionPlayer",),
            "referee.games.base": ("Game",),
            "referee.games.catalog": ("parse_game", "register_game"),
            "referee.games.opening": ("OpeningError",),
            "referee.games.spec": ("SpecError",),
            "referee.judge.clock": ("TimeControl",),
            "referee.judge.limits": ("Limits",),
            "referee.judge.match": ("Match",),
            "referee.judge.replay_check": ("check_replay",),
            "referee.judge.record_rows": ("MoveRecord",),
            "referee.judge.results": ("GameRecord", "MatchResult", "Player", "Reason"),
            "referee.playing": ("Job", "play", "play_game"),
            "referee.process.player": ("SessionPlayer",),
            "referee.sandbox.detection": ("SandboxError", "find_sandbox"),
        },
    )
