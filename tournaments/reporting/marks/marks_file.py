"""Rules file of a mark sheet, marks.toml: its tables and keys, and their errors."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from tournaments.files.toml_file import TomlError, parse_toml, read_toml
from tournaments.files.validation_errors import problem_line
from tournaments.reporting.marks.adjustments import Adjustments, Override, Penalty
from tournaments.reporting.marks.marking import DEFAULT_STEP, Scheme
from tournaments.reporting.marks.numbers import MOST_MARKS, MarksModel, Number, exact
from tournaments.reporting.marks.people import People, PeopleError, people_of, read_people
from tournaments.reporting.marks.rules import MarkRule
from tournaments.reporting.marks.sheet import FIXED_COLUMNS


class MarksError(ValueError):
    """Rules that cannot be used; the message has one line for each error."""


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


def load_marks(path: Path) -> tuple[MarksFile, People | None]:
    """Read a rules file, and the file of students that it names.

    Raises MarksError with all errors in them, a line each.  Errors in single students of a file that can be
    used otherwise are left to ``plan_marks``.
    """
    try:
        data = read_toml(path)
    except TomlError as error:
        raise MarksError(f"{path}: {error}") from error
    file: MarksFile | None = None
    problems = []
    try:
        file = MarksFile.model_validate(data)
    except ValidationError as error:
        problems.append(_lines(path, list(_validation_problems(error))))
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
        data = parse_toml(text)
    except TomlError as error:
        raise MarksError(str(error)) from error
    problems = []
    if "students_file" in data:
        problems.append("students_file: there is no such file here: leave it out")
        del data["students_file"]
    try:
        file = MarksFile.model_validate(data)
    except ValidationError as error:
        raise MarksError("\n".join([*problems, *_validation_problems(error)])) from error
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
        table = data.get("students")
        if not isinstance(table, dict):
            return None, []
        groups = {bot: _names(names) for bot, names in table.items()}
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


def _validation_problems(error: ValidationError) -> Iterator[str]:
    for item in error.errors():
        location = item["loc"]
        if location in (("rule",), ("penalty",), ("override",)) and item["type"] == "list_type":
            yield f"{location[0]}: write [[{location[0]}]] for each {location[0]}, with its keys below"
            continue
        lines = problem_line(item, MarksFile).replace("at least 1 item", "at least one entry")
        yield from lines.split("\n")


def _lines(path: Path, problems: Sequence[str]) -> str:
    return "\n".join(f"{path}: {problem}" for problem in problems)
