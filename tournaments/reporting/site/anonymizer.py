"""Anonymized tournaments and games for a report: pseudonyms, and nothing that identifies a bot.  Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Entry

_KEY = re.compile(r"(?P<round>r\d+-)(?P<one>\d+)(?P<sign>[v+])(?P<other>\d+)(?P<rest>.*)", re.DOTALL)
"""See ``tournaments.schedule.pairing.key_of``."""
DATE = 10
"""Characters of an ISO 8601 time that are its date."""
SHORT_NAME = 3
"""Names of at most so many characters are replaced only where they are words: ``a`` is in every text."""
HIDDEN = "(a bot)"
"""Replacement of a name whose letters fold in a way of their own, so that its bot cannot be determined."""
BRANCH_LETTERS = 2
"""First letters of names by which their pattern branches.  With 300 names a sentence takes 10 to 20 us; a
comparison with all names at each position would take 300 us."""


def name_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of all names without regard to case: of two that begin alike it matches the longer.

    Short names match only where they are words of their own, see SHORT_NAME.
    """
    different = {tuple(map(str.lower, name)): name for name in names}
    longest_first = sorted(different.values(), key=len, reverse=True)
    return re.compile(_alternatives(longest_first, 0), re.IGNORECASE | re.DOTALL)


def _alternatives(names: Sequence[str], same: int) -> str:
    """Return the pattern of names, longest first, whose first letters are the same up to this number."""
    if same == BRANCH_LETTERS:
        return "|".join(map(_one_name, names))
    branches: dict[str, list[str]] = {}
    for name in names:
        branches.setdefault(case_class(name[same]) if len(name) > same else "", []).append(name)
    shortest = branches.pop("", [])
    found = []
    for branch in branches.values():
        letters = "".join(sorted({re.escape(name[same]) for name in branch}))
        found.append(f"(?=.{{{same}}}[{letters}])(?:{_alternatives(branch, same + 1)})")
    return "|".join([*found, *map(_one_name, shortest)])


def _one_name(name: str) -> str:
    return rf"(?<!\w){re.escape(name)}(?!\w)" if len(name) <= SHORT_NAME else re.escape(name)


def case_class(letter: str) -> str:
    """Return a letter that is the same for all letters that regular expressions match without regard to case.

    These are more than upper and lower case: s and the long s, or three kinds of sigma.
    """
    return letter.lower()[0].upper()[0].lower()[0]


@dataclass(frozen=True)
class Anonymizer:
    """Replaces the names of bots by pseudonyms; without pseudonyms it changes nothing.

    Numbers in keys are positions in the tournament's file, so that they identify bots, too.  They become the
    pseudonyms' positions among ``names``, whose order must not reveal anything.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    """Name -> pseudonym."""
    bots: Sequence[str] = ()
    """The real names, in the order of their numbers in keys."""

    @property
    def on(self) -> bool:
        """True if there are names to hide."""
        return bool(self.names)

    def name(self, name: str) -> str:
        """Return the name or pseudonym by which a bot is shown."""
        return self.names.get(name, name)

    def text(self, text: str) -> str:
        """Return a text with the names of bots replaced, in every spelling.

        A name that is also a word is replaced only where it is a word of its own.
        """
        if not self.on:
            return text
        return self._pattern.sub(lambda match: self._folded.get(match[0].casefold(), HIDDEN), text)

    def key(self, key: str) -> str:
        """Return the shown form of the key of a game or of its pair."""
        match = _KEY.fullmatch(key) if self.on else None
        if match is None:
            return self.text(key)
        width = len(str(len(self.names)))
        one, other = (self._number(int(match[part]), width) for part in ("one", "other"))
        if match["sign"] == "+":
            one, other = sorted((one, other))
        return f"{match['round']}{one}{match['sign']}{other}{match['rest']}"

    def summary(
        self, summary: TournamentResults, known: Mapping[GameSummary, GameSummary] | None = None
    ) -> TournamentResults:
        """Return the tournament under other names.  Keys stay, since schedules use them; show ``key``.

        ``known`` maps games to the same games under these names, so that they are not renamed again.
        """
        if not self.on:
            return summary
        renamed = replace(
            summary,
            name=self.text(summary.name),
            file_bots=[self.name(name) for name in summary.file_bots],
            anchor=None if summary.anchor is None else self.name(summary.anchor),
            plan=replace(summary.plan, format=self._format(summary.plan.format)),
            kept=[(known or {}).get(game) or self._game(game) for game in summary.kept],
            journal=[self._entry(entry) for entry in summary.journal],
        )
        if summary.games:
            # Ratings are by number, which stays.  They take longest to compute; a server has them already.
            vars(renamed)["ratings"] = summary.ratings
        return renamed

    def record(self, record: GameRecord) -> GameRecord:
        """Return a game that does not identify the bots: without files, host and time of day."""
        if not self.on:
            return record
        one, other = (
            replace(player, name=self.name(player.name), command=(), cwd="", digest="", how="", reads=())
            for player in record.players
        )
        result = record.result
        return replace(
            record,
            key=self.key(record.key),
            players=(one, other),
            wire=[line._replace(line=self.text(line.line)) for line in record.wire],
            facts=[],
            stderr=("", ""),
            host="",
            versions={},
            started_at=record.started_at[:DATE],
            result=replace(result, detail=self.text(result.detail), note=""),
        )

    def _number(self, number: int, width: int) -> str:
        """Return the shown number of a bot; both numbers count from 1."""
        name = self.bots[number - 1] if 0 < number <= len(self.bots) else ""
        return f"{self._places.get(name, 0):0{width}d}"

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.names, 1)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        spellings = {form for names in map(_spellings, self.names) for form in names}
        return name_pattern(spellings)

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        """Any spelling of a name, without regard to upper and lower case -> its pseudonym."""
        return {form.casefold(): other for name, other in self.names.items() for form in _spellings(name)}

    def _game(self, game: GameSummary) -> GameSummary:
        first, second = self.name(game.first), self.name(game.second)
        return game._replace(first=first, second=second, detail=self.text(game.detail))

    def _entry(self, entry: Entry) -> Entry:
        named = not entry.is_of_game
        # All keys that Rulings reads, so that the table is the same.
        shown = ("annul", "games", "keeps_annulled", "replaces", "what", "opponent", "for_round", "shortens")
        data = {key: entry.data[key] for key in shown if key in entry.data}
        for key in {"replaces", "opponent"} & data.keys():
            data[key] = self.name(data[key])
        return replace(
            entry,
            subject=self.name(entry.subject) if named else entry.subject,
            why=self.text(entry.why),
            data=data,
            at=entry.at[:DATE],
        )

    def _format(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        # Challengers alone are bots: a bot may be named like a format, or like one of its options.
        shown = dict(parameters)
        if "challengers" in shown:
            shown["challengers"] = [self.name(name) for name in shown["challengers"]]
        return shown


def _spellings(name: str) -> set[str]:
    """Return a name's spellings: in messages, in programs, and in other cases, which change its length."""
    written = {name, visible(name), repr(name)[1:-1]}
    return written | {change(text) for text in written for change in (str.upper, str.lower, str.casefold)}
