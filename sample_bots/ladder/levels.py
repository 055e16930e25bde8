"""The levels of the reference ladder: ten for each game, each stronger than the one below.

The lower levels are heuristic players, the middle ones of Kalah look a fixed number of moves ahead, and the
upper ones are engines with a growing number of nodes.  The table in sample_bots/README.md has the measured
distances of the levels (``make ladder``).
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocol.announced import AnnouncedTime
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from sample_bots.conversation import Choose, OnTime
from sample_bots.evaluation import evaluation_of
from sample_bots.ladder import heuristic_players
from sample_bots.options import LOWEST_LEVEL
from sample_bots.random_bot import random_mover
from sample_bots.search import AlphaBeta, OutOfTimeError
from sample_bots.strong.engine import SearchLimits, SearchResult, StrongPlayer
from sample_bots.strong.time_manager import TimeManager

LONGEST_MOVE_S = 1.0
"""Maximum time for a move of the highest level in seconds, since a person may be waiting for it."""

MakePlayer = Callable[[random.Random], Choose]


@dataclass(frozen=True)
class Level:
    """One level: a heuristic player, a player of fixed depth, or an engine with a limit of nodes."""

    about: str
    """Description: the features that the player looks at or ignores."""
    heuristic: MakePlayer | None = None
    depth: int | None = None
    """Moves that a player of fixed depth looks ahead; None for all others."""
    nodes: int | None = None
    """Maximum nodes of an engine; None for no such limit."""

    @property
    def searches(self) -> bool:
        """True if the level is an engine, whose kernels are compiled if possible."""
        return self.heuristic is None and self.depth is None


class FixedDepthPlayer:
    """``Engine`` that searches the rule book itself to a fixed depth; deterministic if it has the time.

    On the boards of the table that takes milliseconds.  On the largest boards it may not reach its depth.
    """

    def __init__(self, game: AnyGame, depth: int, now: Callable[[], float] = time.monotonic) -> None:
        """``depth`` is the number of moves that the player looks ahead."""
        self._game = game
        self._depth = depth
        self._now = now

    def search(self, state: Any, limits: SearchLimits) -> SearchResult:
        """Return the best move, see ``Engine``; the limit of nodes is ignored.

        The value is in the unit of the game's evaluation.
        """
        deadline = None if limits.seconds is None else self._now() + limits.seconds
        stop = None if deadline is None else lambda: self._now() > deadline
        search = AlphaBeta(self._game, evaluation_of(self._game), stop)
        result = SearchResult(self._game.legal_moves(state)[0], 0, 0, 0, proven=False)
        try:
            for depth in range(1, min(self._depth, limits.depth or self._depth) + 1):
                move, value = search.best(state, depth)
                result = SearchResult(move, value, depth, search.nodes, proven=False, line=(move,))
        except OutOfTimeError:
            pass  # the result of the last depth stands
        return result

    def clear(self) -> None:
        """Do nothing, since there is no memory."""


def _engine(nodes: int) -> Level:
    return Level(f"searches {nodes:,} positions a move", nodes=nodes)


def _fixed_depth(depth: int) -> Level:
    return Level(f"reads {depth} sowings ahead and counts the stores there", depth=depth)


_RANDOM = Level("plays any legal move", lambda generator: random_mover(generator.getrandbits(60)))
_STRONGEST = Level(f"searches for as long as it may, at most {LONGEST_MOVE_S:g} s a move")

KALAH_LEVELS = (
    _RANDOM,
    Level("sees an extra turn in the pits next to its store, and nothing else", heuristic_players.eager),
    Level("takes what brings most seeds at once; thinks of no second sowing", heuristic_players.collector),
    Level("plans its whole turn; never looks at the reply", heuristic_players.planner),
    _fixed_depth(3),
    _fixed_depth(4),
    _fixed_depth(6),
    _engine(2_000),
    _engine(14_000),
    _STRONGEST,
)

KALAMALA_LEVELS = (
    _RANDOM,
    Level("pushes a stone off the board when it can; sees nothing else", heuristic_players.pusher),
    Level("guards its own stones, too; sees no danger before it is there", heuristic_players.guard),
    Level("takes stones and the centre; never looks at the reply", heuristic_players.centre),
    _engine(25),
    _engine(150),
    _engine(550),
    _engine(1_900),
    _engine(6_500),
    _STRONGEST,
)

LADDERS: dict[type, tuple[Level, ...]] = {Kalah: KALAH_LEVELS, Kalamala: KALAMALA_LEVELS}
"""Class of the rule book -> its levels, from 1 on."""


def level_of(game: AnyGame, number: int) -> Level:
    """Return a level of a game's ladder.  Raises ValueError if the game has no ladder."""
    levels = LADDERS.get(type(game))
    if levels is None:
        raise ValueError(f"there is no ladder for {game.name}")
    return levels[number - LOWEST_LEVEL]


def ladder_player(
    game: AnyGame, number: int, seed: int | None, announced: AnnouncedTime
) -> tuple[Choose, OnTime | None]:
    """Return the player of a level, and its function for TIME lines if it has one.

    ``seed`` determines the random choices of heuristic players; None is a seed from the system.
    """
    level = level_of(game, number)
    if level.heuristic is not None:
        return level.heuristic(random.Random(seed)), None
    if level.depth is not None:
        engine = FixedDepthPlayer(game, level.depth)
        time_manager = TimeManager.from_announced(announced)
        fixed_depth = StrongPlayer(engine, time_manager, longest_s=LONGEST_MOVE_S)
        return fixed_depth, fixed_depth.on_time
    # Imported only here: it loads the compiled kernels, which takes a second.
    from sample_bots.strong.engines import strong_player

    player = strong_player(game, announced, longest_s=LONGEST_MOVE_S, nodes=level.nodes)
    return player, player.on_time
