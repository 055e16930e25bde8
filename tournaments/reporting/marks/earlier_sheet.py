"""Earlier mark sheet, read from its JSON form for a comparison.  Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, Field

from tournaments.reporting.marks.people import BETWEEN_MEMBERS

RESULTS_DIGEST = "results_sha256"
"""Key of the digest of the results that a sheet is based on."""
ABOUT = ("games", "games_total", "rules_sha256", "students_sha256", RESULTS_DIGEST)
"""Keys of the earlier sheet that are repeated in a sheet that was compared with it."""

SINCE = "since"
"""Key of a sheet that was itself compared with an earlier one."""

Key = tuple[Any, ...]


class EarlierError(ValueError):
    """The text is no sheet to compare with; the message contains the reason."""


@dataclass(frozen=True)
class EarlierRow:
    """A row of the earlier sheet.  Rows with the same marks are equal, whatever their labels."""

    label: str = field(compare=False)
    """The students' names, or the bot's."""
    mark: float
    given: Mapping[str, float]
    """Name of a rule -> the marks that it gave."""

    def to_json(self) -> dict[str, Any]:
        """Return the values under the keys of a row's JSON form."""
        rules = [{"name": name, "marks": marks} for name, marks in self.given.items()]
        return {"mark": self.mark, "rules": rules}


@dataclass(frozen=True)
class EarlierSheet:
    """The compared parts of an earlier sheet."""

    rows: Mapping[Key, EarlierRow]
    about: Mapping[str, Any]
    """Its games and digests."""


def row_key(students: Sequence[tuple[str, str]], bot: str) -> Key:
    """Return the identity of a row: the students' names and ids, or without students the bot's name.

    A student whose bot was replaced by another one keeps the row.
    """
    return tuple(sorted(students)) or (bot,)


Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Student(BaseModel):
    name: str
    id: str


class _RuleMark(BaseModel):
    name: str
    marks: Finite


class _Row(BaseModel):
    students: list[_Student]
    bot: str
    mark: Finite
    rules: list[_RuleMark]


class _Sheet(BaseModel):
    tournament: str
    rows: list[_Row]


def earlier_sheet(text: str, tournament: str) -> EarlierSheet:
    """Read the JSON form of a sheet of this tournament.  Raises EarlierError."""
    try:
        whole = json.loads(text)
        sheet = _Sheet.model_validate(whole)
    except ValueError as error:  # JSONDecodeError, ValidationError
        raise EarlierError("this is no mark sheet in its JSON form: make it with --format json") from error
    if sheet.tournament != tournament:
        raise EarlierError(
            f"this is a sheet of another tournament, {sheet.tournament!r}, not of {tournament!r}"
        )
    if SINCE in whole:
        raise EarlierError("this sheet has only what had changed: compare with one made without --since")
    rows = {
        row_key([(student.name, student.id) for student in row.students], row.bot): EarlierRow(
            BETWEEN_MEMBERS.join(student.name for student in row.students) or row.bot,
            row.mark,
            {given.name: given.marks for given in row.rules},
        )
        for row in sheet.rows
    }
    return EarlierSheet(rows, {name: whole[name] for name in ABOUT if name in whole})
