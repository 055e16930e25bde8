"""Which engine plays which game."""

from typing import TYPE_CHECKING, Any

from protocol.announced import AnnouncedTime
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from sample_bots.strong.engine import Engine
from sample_bots.strong.kalah_engine import KalahEngine
from sample_bots.strong.kalamala_engine import KalamalaEngine
from sample_bots.strong.player import StrongPlayer
from sample_bots.strong.time_use import TimeUse

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES: dict[type, type[KalahEngine] | type[KalamalaEngine]] = {Kalah: KalahEngine, Kalamala: KalamalaEngine}
"""Class of the rule book -> engine for a game of it."""


def engine_of(game: AnyGame) -> Engine | None:
    """The engine for a game; None if there is none."""
    make: Callable[[Any], Engine] | None = ENGINES.get(type(game))
    return None if make is None else make(game)


def warm_up(*games: type) -> None:
    """Compile the kernels for some kinds of games, by default for all, or load them."""
    for kind in games or ENGINES:
        ENGINES[kind].warm_up()


def strong_player(
    game: AnyGame, announced: AnnouncedTime, *, longest_s: float | None = None, nodes: int | None = None
) -> StrongPlayer:
    """A player with an engine of its own, whose kernels are loaded.  Raises ValueError if there is no
    engine."""
    engine = engine_of(game)
    if engine is None:
        raise ValueError(f"there is no engine for {game.name}")
    warm_up(type(game))
    return StrongPlayer(engine, TimeUse.of(announced), longest_s=longest_s, nodes=nodes)
