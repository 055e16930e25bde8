"""The reference ladder: ten levels for each game, each stronger than the one below.

The lower levels are people (kalah_people.py, kalamala_people.py), the upper ones searches that look at more
and more positions.  How far apart the levels are is measured, see the table in sample_bots/README.md (``make
ladder``).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocol.announced import AnnouncedTime
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from sample_bots.conversation import Choose, OnTime
from sample_bots.ladder import kalah_people, kalamala_people
from sample_bots.ladder.reader import Reader
from sample_bots.options import LOWEST_LEVEL
from sample_bots.random_bot import random_mover
from sample_bots.strong.player import StrongPlayer
from sample_bots.strong.time_use import TimeUse

LONGEST_MOVE_S = 1.0
"""The highest level thinks no longer than this about a move, however much time it has: somebody waits for
it."""

MakePerson = Callable[[random.Random], Choose]


@dataclass(frozen=True)
class Level:
    """One rung: a person, a reader, or a search with a budget."""

    about: str
    """What it sees and what it overlooks, for people."""
    person: MakePerson | None = None
    depth: int | None = None
    """Moves that a reader looks ahead; None for everybody else."""
    nodes: int | None = None
    """Positions that a search looks at, at most; None is no such bound."""

    @property
    def searches(self) -> bool:
        """Whether it is an engine's search, which is compiled where that can be had."""
        return self.person is None and self.depth is None


def _search(nodes: int) -> Level:
    return Level(f"searches {nodes:,} positions a move", nodes=nodes)


_RANDOM = Level("plays any legal move", lambda generator: random_mover(generator.getrandbits(60)))
_STRONGEST = Level(f"searches for as long as it may, at most {LONGEST_MOVE_S:g} s a move")


def _reader(depth: int) -> Level:
    return Level(f"reads {depth} sowings ahead and counts the stores there", depth=depth)


KALAH_LEVELS = (
    _RANDOM,
    Level("sees an extra turn in the pits next to its store, and nothing else", kalah_people.eager),
    Level("takes what brings most seeds at once; thinks of no second sowing", kalah_people.collector),
    Level("plans its whole turn; never looks at the reply", kalah_people.planner),
    _reader(3),
    _reader(4),
    _reader(6),
    _search(2_000),
    _search(14_000),
    _STRONGEST,
)

KALAMALA_LEVELS = (
    _RANDOM,
    Level("pushes a stone off the board when it can; sees nothing else", kalamala_people.pusher),
    Level("guards its own stones, too; sees no danger before it is there", kalamala_people.guard),
    Level("takes stones and the centre; never looks at the reply", kalamala_people.centre),
    _search(25),
    _search(150),
    _search(550),
    _search(1_900),
    _search(6_500),
    _STRONGEST,
)

LADDERS: dict[type, tuple[Level, ...]] = {Kalah: KALAH_LEVELS, Kalamala: KALAMALA_LEVELS}
"""Class of the rule book -> its levels, from 1 on."""


def level_of(game: AnyGame, number: int) -> Level:
    """A level of a game's ladder, from LOWEST_LEVEL to HIGHEST_LEVEL.  Raises ValueError if the game has no
    ladder."""
    levels = LADDERS.get(type(game))
    if levels is None:
        raise ValueError(f"there is no ladder for {game.name}")
    return levels[number - LOWEST_LEVEL]


def ladder_player(
    game: AnyGame, number: int, seed: int | None, announced: AnnouncedTime
) -> tuple[Choose, OnTime | None]:
    """The player of a level: how it chooses, and how it hears of its time.

    ``seed`` decides what people draw by lot; None is chance.
    """
    level = level_of(game, number)
    if level.person is not None:
        return level.person(random.Random(seed)), None
    if level.depth is not None:
        time_use = TimeUse.of(announced)
        reader = StrongPlayer(Reader(game, level.depth), time_use, longest_s=LONGEST_MOVE_S)
        return reader, reader.hear_time
    # Imported only here: it loads the compiled kernels, which takes a second.
    from sample_bots.strong.engines import strong_player

    player = strong_player(game, announced, longest_s=LONGEST_MOVE_S, nodes=level.nodes)
    return player, player.hear_time


def describe(game: Any) -> list[str]:
    """What each level does, from the lowest on."""
    return [level.about for level in LADDERS[type(game)]]
