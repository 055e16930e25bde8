"""The order of the bots of a group."""

from collections.abc import Iterable, Mapping, Sequence

from tournaments.schedule.pairing import Pairing, Result


def ranked(bots: Sequence[int], games: Iterable[Pairing], results: Mapping[str, Result]) -> list[int]:
    """The bots, best first.

    By points (1 for a win, 0.5 for a draw, nothing for a void game); then by the points of the games among
    those level on points; then by wins; then by the sum of the games' margins; then as they were given.
    Games without a result do not count.  Those against bots that are not given do.
    """
    points = dict.fromkeys(bots, 0.0)
    wins = dict.fromkeys(bots, 0)
    margins = dict.fromkeys(bots, 0)
    scored: list[tuple[int, int, float]] = []
    for game in games:
        result = results.get(game.key)
        if result is None or not result.counts:
            continue
        for side, (bot, other) in enumerate(((game.first, game.second), (game.second, game.first))):
            if bot in points:
                got = 0.5 if result.winner is None else float(result.winner == side)
                points[bot] += got
                wins[bot] += result.winner == side
                margins[bot] += -result.margin if side else result.margin
                scored.append((bot, other, got))
    among = dict.fromkeys(bots, 0.0)
    for bot, other, got in scored:
        if other in points and points[other] == points[bot]:
            among[bot] += got
    return sorted(bots, key=lambda bot: (-points[bot], -among[bot], -wins[bot], -margins[bot]))
