"""How a table is ordered: by a list of criteria, each deciding among those that the ones before leave level.

Pure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tournaments.standing import Standing

Lines = Sequence[Standing]

PRESETS = {
    "points": ("points", "wins"),
    "wins-then-speed": ("wins", "speed"),
    "swiss": ("points", "buchholz", "head-to-head", "wins"),
    "rating": ("rating",),
}
"""Name -> criteria.  ``wins-then-speed`` is the Manchester course's rule."""


def criteria_of(ranking: str | Sequence[str]) -> tuple[str, ...]:
    """The criteria of a preset, or a list of criteria as it is.  Raises ValueError for unknown ones."""
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
    """Set ``rank`` (those that nothing tells apart share one) and ``criteria`` of every line.

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
    """The groups that the criteria cannot tell apart, best first."""
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
    """Groups of equal merit, the greatest first."""
    groups: dict[float, list[Standing]] = {}
    for line in lines:
        groups.setdefault(merit(line), []).append(line)
    return [groups[value] for value in sorted(groups, reverse=True)]


def _least_if_missing(value: float | None) -> float:
    return float("-inf") if value is None else value


HEAD_TO_HEAD = "head-to-head"


def head_to_head(level: Lines) -> dict[str, float]:
    """Points in the games of those that are level, if all of these have met equally often; else 0 for all
    (after the FIDE Handbook, C.07, direct encounter: it decides only if all tied have met).
    """
    names = [line.name for line in level]
    met = {line.versus[name].games for line in level for name in names if name != line.name}
    if len(met) != 1 or met == {0}:
        return dict.fromkeys(names, 0.0)
    return {line.name: sum(line.versus[name].points for name in names if name != line.name) for line in level}


def _sonneborn_berger(line: Standing, everybody: Mapping[str, Standing]) -> float:
    """Points against each opponent times all points of that opponent (FIDE Handbook, C.07)."""
    return sum(versus.points * everybody[name].points for name, versus in line.versus.items())


def _buchholz(line: Standing, everybody: Mapping[str, Standing]) -> float:
    """The opponents' points, once for each game; a bye counts as games against a bot with as many points as
    this one (FIDE Handbook, C.07: the dummy opponent of an unplayed round).
    """
    met = sum(versus.games * everybody[name].points for name, versus in line.versus.items())
    return met + line.bye_points * line.points


def _speed(line: Standing, _everybody: Mapping[str, Standing]) -> float | None:
    """The average charged time of a move in milliseconds, negative since the lower one is better."""
    return None if line.mean_move_ms is None else -line.mean_move_ms


CRITERIA: dict[str, Callable[[Standing, Mapping[str, Standing]], float | None]] = {
    "points": lambda line, _: line.points,
    "wins": lambda line, _: line.wins,
    HEAD_TO_HEAD: lambda _line, _: None,  # depends on who else is level: see head_to_head
    "sonneborn-berger": _sonneborn_berger,
    "buchholz": _buchholz,
    "fewest-forfeits": lambda line, _: -line.forfeits,
    "speed": _speed,
    "rating": lambda line, _: None if line.rating is None else line.rating.value,
}
"""Name of a criterion -> (line, all lines by name) -> merit, the greater the better; None is worst."""
