"""The rules file of a mark sheet, marks.toml: its tables and keys, and clear errors in them."""

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from referee.games.spec import did_you_mean
from tournaments.files.validation_errors import render
from tournaments.reporting.marks.adjustments import Adjustments, Late, Override, Penalty
from tournaments.reporting.marks.bands import MOST_MARKS, LevelBand, MarksModel, Number, RankBand
from tournaments.reporting.marks.checks import Check
from tournaments.reporting.marks.marking import DEFAULT_STEP, Scheme
from tournaments.reporting.marks.numbers import exact
from tournaments.reporting.marks.people import People, PeopleError, Student, people_of, read_people
from tournaments.reporting.marks.rules import RULE_KINDS, MarkRule, RankRule
from tournaments.reporting.marks.sheet import FIXED_COLUMNS


class MarksError(ValueError):
    """Rules that cannot be used; the message has one line for each thing that is wrong."""


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]], BeforeValidator(_names), Field(min_length=1)
]


class MarksFile(MarksModel):
    """The whole file."""

    least: Number = Field(0.0, alias="min")
    most: Number | None = Field(None, alias="max")
    round: float = Field(float(DEFAULT_STEP), gt=0, le=MOST_MARKS, allow_inf_nan=False)
    rounding: Literal["half-up", "half-even", "up", "down"] = "half-up"
    rows: Literal["student", "group"] = "student"
    order: Literal["mark", "name"] = "mark"
    missing: Literal["error", "zero"] = "error"
    withdrawn: Literal["error", "zero", "marked"] = "error"
    references: list[str] = Field(default_factory=list)
    students_file: str | None = None
    students: dict[str, Names] | None = None
    penalty: list[Penalty] = Field(default_factory=list)
    override: list[Override] = Field(default_factory=list)
    rule: list[MarkRule] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "MarksFile":
        problems = []
        if self.most is not None and self.most <= self.least:
            problems.append(f"max must be more than min, not {self.most:g} and {self.least:g}")
        if self.students is not None and self.students_file is not None:
            problems.append("students and students_file: give one of them")
        taken: dict[str, int] = {}
        for number, rule in enumerate(self.rule, 1):
            other = taken.setdefault(rule.name.lower(), number)
            if other != number:
                problems.append(f"rule[{number}].name: rule[{other}] is called {rule.name!r} already")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def scheme(self) -> Scheme:
        """The scheme by which marks are made."""
        most = None if self.most is None else exact(self.most)
        return Scheme(tuple(self.rule), exact(self.least), most, exact(self.round), self.rounding)

    @property
    def adjustments(self) -> Adjustments:
        """Decisions about single students and bots."""
        return Adjustments(self.penalty, self.override)


@dataclass(frozen=True)
class MarkPlan:
    """A rules file that fits a tournament: the marked people and bots, and the rules."""

    file: MarksFile
    people: People | None
    """None: a row for each bot."""
    marked: Sequence[str]
    """The bots of the tournament that are marked."""
    missing: Sequence[str]
    """Bots of students that are not in the tournament."""
    left: Sequence[str] = ()
    """Bots of students that withdrew, and get nothing from any rule."""
    remarks: Sequence[str] = ()
    """Remarks on settings that are allowed, but may not be intended."""


def load_marks(path: Path) -> tuple[MarksFile, People | None]:
    """Read a rules file, and the file of students that it names.

    Raises MarksError with all errors in them, a line each.  Errors in single students of a file that can be
    used otherwise are left to ``plan_marks``.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # Windows puts a byte order mark first
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise MarksError(f"{path}: cannot be read: {reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise MarksError(f"{path}: this is not TOML: {error}") from error
    file: MarksFile | None = None
    problems = []
    try:
        file = MarksFile.model_validate(data)
    except ValidationError as error:
        problems.append(_lines(path, list(_complaints(error))))
    people, wrong = _people(path, data, file)
    problems += wrong
    if file is None or wrong:
        if people is not None:
            problems += [
                _lines(students_path(path, data.get("students_file")) or path, people.problems)
            ] * bool(people.problems)
        raise MarksError("\n".join(problems))
    return file, people


def read_marks(text: str) -> tuple[MarksFile, People | None]:
    """Read rules from a text without a file of students, and the students of its own table, if it has one.

    Raises MarksError with all errors in it, a line each.
    """
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise MarksError(f"this is not TOML: {error}") from error
    problems = []
    if "students_file" in data:
        problems.append("students_file: there is no such file here: leave it out")
        del data["students_file"]
    try:
        file = MarksFile.model_validate(data)
    except ValidationError as error:
        raise MarksError("\n".join([*problems, *_complaints(error)])) from error
    if problems:
        raise MarksError("\n".join(problems))
    return file, None if file.students is None else people_of(file.students)


def students_path(path: Path, name: object) -> Path | None:
    """Return the file of students that the rules file at ``path`` names; None if ``name`` is no name."""
    return path.parent / name if isinstance(name, str) else None


def _people(path: Path, data: Mapping[str, Any], file: MarksFile | None) -> tuple[People | None, list[str]]:
    """Return the students, despite any errors in the rules, and the errors in the students' file."""
    where = students_path(path, data.get("students_file"))
    if where is None:
        told = data.get("students")
        if not isinstance(told, dict):
            return None, []
        groups = {bot: _names(names) for bot, names in told.items()}
        sound = all(isinstance(names, list) and set(map(type, names)) <= {str} for names in groups.values())
        return (people_of(groups) if sound else None), []
    try:
        people = read_people(where)
    except PeopleError as error:
        return None, [_lines(where, str(error).split("\n"))]
    titles = {column.lower() for column in FIXED_COLUMNS}
    if file is not None:
        titles |= {title.lower() for rule in file.rule for title in (*rule.titles, rule.title_before)}
    clashes = [
        f"the column {column!r} is one of the mark sheet already: give yours another title"
        for column in people.columns
        if column.lower() in titles
    ]
    return people, [_lines(where, clashes)] if clashes else []


def plan_marks(
    file: MarksFile, people: People | None, bots: Sequence[str], withdrawn: Collection[str] = ()
) -> MarkPlan:
    """Return the plan for a tournament with these bots, of which some have withdrawn.

    Raises MarksError with everything that does not fit, and all errors in single students.
    """
    groups: Mapping[str, Sequence[Student]] = {} if people is None else people.groups
    gone = withdrawn if file.withdrawn != "marked" else ()
    named = [bot for bot in bots if (bot not in file.references if people is None else bot in groups)]
    marked = [bot for bot in named if bot not in gone]
    left = [bot for bot in named if bot in gone and people is not None]
    absent = [bot for bot in groups if bot not in bots]
    problems = [
        f"references: {_unknown(name, bots)}" for name in dict.fromkeys(file.references) if name not in bots
    ]
    problems += [
        f"references: {name!r} is a reference player, and a bot of {', '.join(map(str, groups[name]))}"
        for name in dict.fromkeys(file.references)
        if name in groups
    ]
    problems += _unfit_opponents(file, bots, [*marked, *left])
    problems += file.adjustments.problems(people, marked, file.scheme, by_group=file.rows == "group")
    if file.missing == "error":
        problems += _missing(people, absent, bots)
    if people is not None:
        problems += [f"students: {problem}" for problem in people.problems]
        if file.withdrawn == "error":
            problems += _withdrawn(people, left)
        problems += [
            f"students: nobody has the bot {bot!r}: name its students, or put it into references"
            for bot in bots
            if bot not in groups and bot not in file.references and bot not in withdrawn
        ]
    if not marked and not problems:
        or_left = " or has withdrawn" if gone else ""
        problems.append(f"references: every bot is one{or_left}, so that nobody gets a mark")
    if problems:
        raise MarksError("\n".join(problems))
    remarks = [
        f"rule {rule.name!r}: with {len(marked)} marked bots nobody can be in the band {band!r}"
        for rule in file.rule
        if isinstance(rule, RankRule)
        for band in rule.unused(len(marked))
    ]
    return MarkPlan(file, people, marked, absent, left, remarks)


def _unfit_opponents(file: MarksFile, bots: Sequence[str], marked: Sequence[str]) -> Iterator[str]:
    for number, rule in enumerate(file.rule, 1):
        for where, name in rule.opponents_named:
            if name not in bots:
                yield f"rule[{number}].{where}: {_unknown(name, bots)}"
            elif name in marked:
                yield (
                    f"rule[{number}].{where}: {name!r} is marked itself, and cannot be what marks "
                    "are measured by: put it into references"
                )


def _missing(people: People | None, absent: Sequence[str], bots: Sequence[str]) -> Iterator[str]:
    if people is None:
        return
    instead = '(or set missing = "zero")'
    for bot in absent:
        for student in people.groups[bot]:
            yield f"students: {_place(student)}{student}: {_unknown(bot, bots)} {instead}"
    for student in people.no_bot:
        yield f"students: {_place(student)}{student} has no bot {instead}"


def _withdrawn(people: People, left: Sequence[str]) -> Iterator[str]:
    for bot in left:
        for student in people.groups[bot]:
            yield (
                f"students: {_place(student)}{student}: the bot {bot!r} has withdrawn: name the one that "
                'took its place, or set withdrawn = "zero" (nothing from any rule) or "marked" (by its games '
                "that count)"
            )


def _place(student: Student) -> str:
    return "" if student.line is None else f"line {student.line}: "


def _unknown(name: str, bots: Sequence[str]) -> str:
    hint = did_you_mean(name, list(bots)) or f"; there are {', '.join(bots)}"
    return f"there is no bot {name!r} in this tournament{hint}"


def _complaints(error: ValidationError) -> Iterator[str]:
    for item in error.errors():
        location = item["loc"]
        if location[:1] == ("rule",) and len(location) > 2:  # pydantic puts the kind of a rule into its place
            place = (*location[:2], *location[3:])
        else:
            place = location
        if location in (("rule",), ("penalty",), ("override",)) and item["type"] == "list_type":
            yield f"{location[0]}: write [[{location[0]}]] for each {location[0]}, with its keys below"
            continue
        told = render({**item, "loc": place}, lambda _, at=location: known_keys(at))  # type: ignore[misc]
        told = told.removeprefix(": ").replace("at least 1 words", "at least one entry")
        yield from told.split("\n")


DECISIONS: Mapping[str, type[MarksModel]] = {"penalty": Penalty, "override": Override}
"""Name of a table -> its keys."""


def known_keys(location: tuple[Any, ...]) -> list[str]:
    """Return the keys that exist where a key was unknown."""
    if location[0] in DECISIONS and len(location) > 2:
        return (Late if location[2] == "late" and len(location) > 3 else DECISIONS[location[0]]).keys()
    if location[0] != "rule" or len(location) < 4:
        return MarksFile.keys()
    kind = str(location[2])
    if location[3] == "checks" and len(location) > 4:
        return Check.keys()
    if location[3] == "bands" and len(location) > 4:
        return (RankBand if kind == "rank" else LevelBand).keys()
    return RULE_KINDS[kind].keys()


def _lines(path: Path, problems: Sequence[str]) -> str:
    return "\n".join(f"{path}: {problem}" for problem in problems)
