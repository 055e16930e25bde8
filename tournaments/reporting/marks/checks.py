"""Checks of a mark sheet: conditions that a bot passes or fails.  Pure."""

from fractions import Fraction

from pydantic import Field, model_validator

from tournaments.analysis.standing import Standing
from tournaments.reporting.marks.bands import Marks, MarksModel
from tournaments.reporting.marks.numbers import decimal, exact, share_of, shown_ms

NO_GAMES = "no games"


class Check(MarksModel):
    """One of a checks rule's ``checks``: all conditions that it names must hold."""

    name: str = Field(min_length=1, max_length=200)
    marks: Marks
    faults_at_most: int | None = Field(None, ge=0)
    games_at_least: int | None = Field(None, ge=1)
    unique_games_at_least: int | None = Field(None, ge=1)
    points_at_least: float | None = Field(None, ge=0, allow_inf_nan=False)
    mean_move_ms_at_most: float | None = Field(None, gt=0, allow_inf_nan=False)
    beats: str | None = None
    at_least: float | None = Field(None, gt=0, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _something(self) -> "Check":
        conditions = set(self.keys()) - {"name", "marks", "at_least"}
        if all(getattr(self, name) is None for name in conditions):
            names = [name for name in self.keys() if name in conditions]
            raise ValueError(f"checks nothing: give it one or more of {', '.join(names)}")
        if self.at_least is not None and self.beats is None:
            raise ValueError(
                "at_least is a share of points against the bot that beats names, which is missing"
            )
        return self

    def look(self, line: Standing) -> list[tuple[bool, str]]:
        """Return for each condition whether it holds, and the finding in words."""
        found = []
        if self.faults_at_most is not None:
            found.append((line.forfeits <= self.faults_at_most, f"{line.forfeits} lost by a fault"))
        if self.games_at_least is not None:
            found.append((line.games >= self.games_at_least, f"{line.games} games"))
        if self.unique_games_at_least is not None:
            found.append((line.unique >= self.unique_games_at_least, f"{line.unique} unique games"))
        if self.points_at_least is not None:
            found.append((line.points >= self.points_at_least, f"{line.points:g} points"))
        if self.mean_move_ms_at_most is not None:
            mean = None if line.mean_move_ms is None else shown_ms(line.mean_move_ms)
            fast = mean is not None and mean <= exact(self.mean_move_ms_at_most)
            found.append((fast, "no move" if mean is None else f"{decimal(mean)} ms a move"))
        if self.beats is not None:
            found.append(self._beats(line, self.beats))
        return found

    def _beats(self, line: Standing, name: str) -> tuple[bool, str]:
        versus = line.versus.get(name)
        if versus is None or not versus.games:
            return False, f"{NO_GAMES} against {name}"
        share, what = share_of(versus.points, versus.games)
        enough = share > Fraction(1, 2) if self.at_least is None else share >= exact(self.at_least)
        return enough, f"{what} against {name}"
