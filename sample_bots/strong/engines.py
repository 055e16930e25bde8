"""Engines by game.  Importing this module loads numba."""

from typing import TYPE_CHECKING, Any

from protocol.announced import AnnouncedTime
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from sample_bots.strong.engine import Engine, StrongPlayer
from sample_bots.strong.kalah.engine import KalahEngine
from sample_bots.strong.kalamala.engine import KalamalaEngine
from sample_bots.strong.time_manager import TimeManager

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES: dict[type, type[KalahEngine] | type[KalamalaEngine]] = {Kalah: KalahEngine, Kalamala: KalamalaEngine}
"""Class of the rule book -> class of the engine."""


def engine_of(game: AnyGame) -> Engine | None:
    """Return a new engine for a game; None if there is none."""
    make: Callable[[Any], Engine] | None = ENGINES.get(type(game))
    return None if make is None else make(game)


def warm_up(*games: type) -> None:
    """Compile or load the kernels for some classes of games, by default for all."""
    for kind in games or ENGINES:
        ENGINES[kind].warm_up()


def strong_player(
    game: AnyGame, announced: AnnouncedTime, *, longest_s: float | None = None, nodes: int | None = None
) -> StrongPlayer:
    """Return a player with a new engine, and load its kernels.  Raises ValueError if there is no engine."""
    engine = engine_of(game)
    if engine is None:
        raise ValueError(f"there is no engine for {game.name}")
    warm_up(type(game))
    return StrongPlayer(engine, TimeManager.from_announced(announced), longest_s=longest_s, nodes=nodes)
