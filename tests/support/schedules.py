"""Small tournaments without games: entrants, rules for winners, and the play of due pairings."""

import sys
from collections.abc import Callable, Mapping
from types import FrameType

from tournaments.schedule.pairing import Entrant, History, Pairing, Result, Schedule

FIRST, DRAW, SECOND = Result(0), Result(None), Result(1)
VOID = Result(0, margin=40, counts=False)


def better_wins(game: Pairing) -> Result:
    """The bot with the lower number wins."""
    return FIRST if game.first < game.second else SECOND


def first_wins(game: Pairing) -> Result:
    """Every pair of games is level."""
    return FIRST


def drawn(game: Pairing) -> Result:
    """Every game is drawn."""
    return DRAW


def play(
    schedule: Schedule,
    rule: Callable[[Pairing], Result] = better_wins,
    known: Mapping[str, Result] = {},
    until_round: float = float("inf"),
) -> dict[str, Result]:
    """Play the due pairings in their order, up to a round."""
    results = dict(known)
    while due := [game for game in schedule.due(History(results)) if game.round <= until_round]:
        results |= {game.key: rule(game) for game in due}
    return results


def bots(count: int, **until: int) -> list[Entrant]:
    """Entrants; ``b3=2`` makes bot 3 withdraw in round 2."""
    return [Entrant(until=until.get(f"b{number}")) for number in range(count)]


def met(schedule: Schedule, results: Mapping[str, Result], number: int) -> list[tuple[int, int]]:
    """Return the pairs of a round by index, the better seed first."""
    pairs = [
        (game.first, game.second)
        for game in schedule.pairings(History(results))
        if game.round == number and game.first < game.second
    ]
    return list(dict.fromkeys(pairs))


def history_of(results: Mapping[str, Result], *rulings: tuple[str, int, Result | None]) -> History:
    """Results, on which rulings were made: the key, the round under way, the result from then on."""
    now = dict(results)
    earlier: dict[str, list[tuple[int, Result | None]]] = {}
    for key, under_way, ruled in rulings:
        earlier[key] = [*earlier.get(key, []), (under_way, now.pop(key, None))]
        if ruled is not None:
            now[key] = ruled
    return History(now, earlier)


def number_of_calls(work: Callable[[], object]) -> int:
    """Return the number of calls of Python functions, and of steps of generators, that some work needs."""
    calls = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
