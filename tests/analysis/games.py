"""Made-up games for tests of statistics."""

from collections.abc import Sequence

from tests.support.builders import make_summary
from tournaments.results.game_summary import GameSummary


def game(
    first: str = "one",
    second: str = "two",
    winner: int | None = 0,
    *,
    pair: str = "",
    opening: str = "",
    fingerprint: str = "",
    swapped: int | None = None,
) -> GameSummary:
    """A game between two bots."""
    summary = make_summary(first, second, winner)
    return summary._replace(pair=pair, opening=opening, fingerprint=fingerprint, swapped=swapped)


def pair_of(
    serial: int, kinds: Sequence[str], winners: Sequence[int | None], bots: tuple[str, str] = ("one", "two")
) -> list[GameSummary]:
    """Two games with exchanged sides; games of the same kind are identical."""
    return [
        game(first, second, winner, pair=f"r{serial:03d}", fingerprint=kind)
        for (first, second), kind, winner in zip((bots, bots[::-1]), kinds, winners, strict=True)
    ]


def games_of(text: str) -> list[GameSummary]:
    """Games as in ``ann>bob cid=dan``: the first bot won, or the game was drawn."""
    found = []
    for one in text.split():
        drawn = "=" in one
        first, second = one.split("=" if drawn else ">")
        found.append(make_summary(first, second, None if drawn else 0))
    return found
