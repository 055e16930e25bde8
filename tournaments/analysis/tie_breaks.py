"""Order of a table by a list of criteria, each of which breaks the ties of those before (pure)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tournaments.analysis.standing import Standing

Lines = Sequence[Standing]

PRESETS = {
    "points": ("points", "wins"),
    "wins-then-speed": ("wins", "speed"),
    "swiss": ("points", "buchholz", "head-to-head", "wins"),
    "rating": ("rating",),
    "score": ("score", "wins"),
    "swiss-match": ("match-points", "points", "buchholz", "head-to-head", "wins"),
}
"""Name -> criteria.  ``wins-then-speed`` is the Manchester course's rule."""


def criteria_of(ranking: str | Sequence[str]) -> tuple[str, ...]:
    """Return the criteria of a preset, or a list of criteria unchanged.

    Raises ValueError for unknown ones.
    """
    if isinstance(ranking, str):
        if ranking not in PRESETS:
            raise ValueError(f"no ranking {ranking!r}; there are {', '.join(PRESETS)}")
        return PRESETS[ranking]
    for name in ranking:
        if name not in CRITERIA:
            raise ValueError(f"no criterion {name!r}; there are {', '.join(CRITERIA)}")
    if len(set(ranking)) != len(ranking) or not ranking:
        raise ValueError("a ranking needs criteria, each of them once")
    return tuple(ranking)


def order(lines: Lines, ranking: Sequence[str], places: Mapping[str, int]) -> None:
    """Set ``rank`` (shared by bots that are tied on all criteria) and ``criteria`` of every line.

    Bots that withdrew, and of which no game counts, come last.
    """
    everybody = {line.name: line for line in lines}
    values = {}
    for name in ranking:
        if name != HEAD_TO_HEAD:
            values[name] = {line.name: CRITERIA[name](line, everybody) for line in lines}
    for line in lines:
        line.criteria = {name: values[name][line.name] if name in values else None for name in ranking}
    last = len(lines) + 1
    gone = {line.name for line in lines if line.withdrawn and not line.games}
    rank = 1
    for level in _split(lines, lambda line: -last - 1 if line.name in gone else -places.get(line.name, last)):
        for group in _ordered(level, list(ranking), values):
            for line in group:
                line.rank = rank
            rank += len(group)


def _ordered(
    level: Lines, ranking: list[str], values: Mapping[str, Mapping[str, float | None]]
) -> Iterator[Lines]:
    """Yield the groups that are tied on all criteria, best first."""
    if len(level) == 1 or not ranking:
        yield level
        return
    name, *rest = ranking
    if name == HEAD_TO_HEAD:
        found: Mapping[str, float | None] = head_to_head(level)
        for line in level:
            line.criteria[name] = found[line.name]
    else:
        found = values[name]
    for group in _split(level, lambda line: _least_if_missing(found[line.name])):
        yield from _ordered(group, rest, values)


def _split(lines: Lines, merit: Callable[[Standing], float]) -> list[Lines]:
    """Return groups of equal merit, the greatest first."""
    groups: dict[float, list[Standing]] = {}
    for line in lines:
        groups.setdefault(merit(line), []).append(line)
    return [groups[value] for value in sorted(groups, reverse=True)]


def _least_if_missing(value: float | None) -> float:
    return float("-inf") if value is None else value


HEAD_TO_HEAD = "head-to-head"
MATCH_POINTS = "match-points"


def head_to_head(level: Lines) -> dict[str, float]:
    """Return points in the games between tied bots, if all of these have met equally often; else 0 for all.

    This follows the FIDE Handbook, C.07, direct encounter: it decides only if all tied have met.
    """
    names = [line.name for line in level]
    met = {_against(line, name)[0] for line in level for name in names if name != line.name}
    if len(met) != 1 or met == {0}:
        return dict.fromkeys(names, 0.0)
    return {line.name: sum(_against(line, name)[1] for name in names if name != line.name) for line in level}


def _score(line: Standing) -> float:
    """Return the match points of a bot; its points, where points are given for games.

    The tie-breaks of FIDE are computed from the score that decides pairings (FIDE Handbook, C.07).
    """
    return line.points if line.match_points is None else line.match_points


def _against(line: Standing, opponent: str) -> tuple[int, float]:
    """Return how often a bot met another, and its score: in matches, where match points are given."""
    versus = line.versus[opponent]
    if line.match_points is None:
        return versus.games, versus.points
    return versus.matches, versus.match_points


def _sonneborn_berger(line: Standing, everybody: Mapping[str, Standing]) -> float:
    """Return the score against each opponent times the whole score of that opponent (FIDE Handbook, C.07)."""
    return sum(_against(line, name)[1] * _score(everybody[name]) for name in line.versus)


def _buchholz(line: Standing, everybody: Mapping[str, Standing]) -> float:
    """Return the sum of the opponents' scores, once for each game or match.

    A bye counts as games, or a match, against a bot with the same score (FIDE Handbook, C.07: the dummy
    opponent of an unplayed round).
    """
    met = sum(_against(line, name)[0] * _score(everybody[name]) for name in line.versus)
    byes = line.bye_points if line.match_points is None else line.bye_matches
    return met + byes * _score(line)


def _speed(line: Standing, _everybody: Mapping[str, Standing]) -> float | None:
    """Return the average charged time of a move in milliseconds, negative since less is better."""
    return None if line.mean_move_ms is None else -line.mean_move_ms


CRITERIA: dict[str, Callable[[Standing, Mapping[str, Standing]], float | None]] = {
    "points": lambda line, _: line.points,
    "wins": lambda line, _: line.wins,
    HEAD_TO_HEAD: lambda _line, _: None,  # depends on the tied bots: see head_to_head
    "sonneborn-berger": _sonneborn_berger,
    "buchholz": _buchholz,
    "fewest-forfeits": lambda line, _: -line.forfeits,
    "speed": _speed,
    "rating": lambda line, _: None if line.rating is None else line.rating.value,
    "score": lambda line, _: line.score,
    MATCH_POINTS: lambda line, _: line.match_points,
}
"""Name of a criterion -> (line, all lines by name) -> merit, the greater the better; None is worst."""
