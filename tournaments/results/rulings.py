"""Application of a journal's rulings to the games that were played, and the results that count (pure).

A game that is replayed keeps its pairing's key, with the attempt behind it: ``r001-1v3`` is first played
under that key, then as ``r001-1v3~2``.  All attempts stay in the store.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry, pairing_words
from tournaments.schedule.pairing import NOBODY, Entrant, ForbiddenPairing, History, ManualPairings, Result

ATTEMPT = "~"
"""Separator of a pairing's key and the number of the attempt; no key of a pairing contains it."""


class RulingError(ValueError):
    """An invalid ruling; the message gives the reason."""


def _without_zeros(key: str) -> str:
    """Return a game's key with the bots' numbers as short as possible: r001-1v2 for r001-01v02."""
    return re.sub(r"(?<=[-v])0+", "", key)


def pairing_key(key: str) -> str:
    """Return the key of the pairing for which a game was played."""
    return key.partition(ATTEMPT)[0]


def attempt_of(key: str) -> int:
    """Return the number of a game's attempt, counted from 1."""
    return int(key.partition(ATTEMPT)[2] or 1)


def attempt_key(pairing: str, attempt: int) -> str:
    """Return the key under which the n-th attempt of a pairing is played."""
    return pairing if attempt == 1 else f"{pairing}{ATTEMPT}{attempt}"


@dataclass
class Rulings:
    """Games and journal together."""

    names: Sequence[str]
    """Names of the bots of the tournament's file."""
    games: Sequence[GameSummary] = ()
    """All games that were ever played."""
    entries: Sequence[Entry] = ()
    entrants: list[Entrant] = field(default_factory=list, init=False)
    bots: list[str] = field(default_factory=list, init=False)
    """Names of all bots: those of the file, then those that were added."""
    withdrawn: dict[str, Entry] = field(default_factory=dict, init=False)
    """Name of a bot -> entry by which it withdrew."""
    set_aside: dict[str, Entry] = field(default_factory=dict, init=False)
    """Key of a game that does not count -> entry with the reason."""
    results: dict[str, Result] = field(default_factory=dict, init=False)
    """Key of a pairing -> its current result."""
    earlier: dict[str, list[tuple[int, Result | None]]] = field(default_factory=dict, init=False)
    """Earlier results, see ``History``."""
    fixed: dict[int, list[tuple[int, int]]] = field(default_factory=dict, init=False)
    """Fixed pairings by round, see ``ManualPairings``."""
    forbidden: list[ForbiddenPairing] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.bots = list(self.names)
        self.entrants = [Entrant() for _ in self.names]
        self._attempts: dict[str, int] = {}
        for game in self.games:
            if ATTEMPT not in game.key:
                self.results[game.key] = result_of(game)
        for entry in self.entries:
            try:
                self._apply(entry)
            except (LookupError, ValueError, TypeError, AttributeError) as error:
                raise RulingError(
                    f"entry {entry.number} of the journal fits no game or bot here: {entry.action} "
                    f"{entry.subject}: is the file damaged?"
                ) from error

    @cached_property
    def _by_key(self) -> dict[str, GameSummary]:
        return {game.key: game for game in self.games}

    def _apply(self, entry: Entry) -> None:
        match entry.action:
            case Action.VOID:
                self._set_aside(entry.subject, entry)
            case Action.REPLAY:
                pairing = pairing_key(entry.subject)
                self._set_aside(entry.subject, entry)
                del self.results[pairing]
                self._attempts[pairing] = attempt_of(entry.subject) + 1
                again = self._by_key.get(self.job_key(pairing))
                if again is not None:
                    self.results[pairing] = result_of(again)
            case Action.WITHDRAW:
                number = self.bots.index(entry.subject)
                self.entrants[number] = replace(self.entrants[number], until=entry.round)
                self.withdrawn[entry.subject] = entry
                if entry.data.get("annul"):
                    for key in entry.data.get("games", self.games_of(entry.subject)):
                        self._set_aside(key, entry)
            case Action.ADD:
                other = entry.data.get("replaces")
                place = self.bots.index(other) if other is not None else None
                self.bots.append(entry.subject)
                self.entrants.append(Entrant(since=entry.round + 1, replaces=place))
            case Action.PAIR | Action.BYE:
                self.fixed.setdefault(int(entry.data["for_round"]), []).append(self._pair_of(entry))
            case Action.FORBID:
                self.forbidden.append(
                    ForbiddenPairing(frozenset(self._pair_of(entry)), int(entry.data["for_round"]))
                )
            case Action.RESTORE if entry.of_pairing is not None:
                self._release(entry)
            case Action.RESTORE if entry.is_of_game:
                self._bring_back(entry.subject, entry)
            case Action.RESTORE:
                number = self.bots.index(entry.subject)
                self.entrants[number] = replace(self.entrants[number], until=None)
                # It has its rank on a ladder back: the bots that replaced it, all withdrawn, lose that rank.
                self.entrants = [
                    replace(one, replaces=None) if one.replaces == number else one for one in self.entrants
                ]
                left = self.withdrawn.pop(entry.subject)
                for key in [key for key, why in self.set_aside.items() if why is left]:
                    self._bring_back(key, entry)

    def _pair_of(self, entry: Entry) -> tuple[int, int]:
        """Return the numbers of the two bots of an entry on a pairing; NOBODY in a bye."""
        opponent = entry.data.get("opponent")
        return self.bots.index(entry.subject), NOBODY if opponent is None else self.bots.index(opponent)

    def _release(self, entry: Entry) -> None:
        """Take back that a pairing was fixed or forbidden."""
        number, pair = int(entry.data["for_round"]), frozenset(self._pair_of(entry))
        if entry.of_pairing is Action.FORBID:
            # Entries of earlier versions did not shorten, and the pairings of later rounds depend on that.
            last = number if entry.data.get("shortens") else inf
            self.forbidden = [
                replace(one, until=number - 1)
                if one.bots == pair and (one.until is None or one.until >= last)
                else one
                for one in self.forbidden
            ]
        else:
            self.fixed[number] = [one for one in self.fixed[number] if frozenset(one) != pair]

    def _bring_back(self, key: str, entry: Entry) -> None:
        # Earlier versions brought back all games, and their tables and pairings depend on that.
        annulment = self._annulment_of(key) if entry.data.get("keeps_annulled") else None
        if annulment is None:
            self._count(key, entry, counts=True)
            del self.set_aside[key]
        else:
            self.set_aside[key] = annulment

    def _annulment_of(self, key: str) -> Entry | None:
        """Return the withdrawal of one of a game's bots that annuls its games; None if there is none."""
        game = self._by_key[key]
        entries = (self.withdrawn[name] for name in (game.first, game.second) if name in self.withdrawn)
        return next((entry for entry in entries if entry.data.get("annul")), None)

    def _set_aside(self, key: str, entry: Entry) -> None:
        self._count(key, entry, counts=False)
        self.set_aside[key] = entry

    def _count(self, key: str, entry: Entry, *, counts: bool) -> None:
        """Change whether a game's result counts."""
        pairing = pairing_key(key)
        before = self.results[pairing]
        self.earlier.setdefault(pairing, []).append((entry.round, before))
        self.results[pairing] = before._replace(counts=counts)

    @property
    def history(self) -> History:
        """History for the schedule.  ``results`` may go on growing."""
        return History(self.results, self.earlier, self.manual)

    @property
    def manual(self) -> ManualPairings:
        """Pairings that were fixed or forbidden."""
        return ManualPairings(self.fixed, self.forbidden)

    @property
    def rounds_begun(self) -> int:
        """Last round with a stored game; 0 before the first game."""
        return max((game.round for game in self.games), default=0)

    @property
    def counted(self) -> list[GameSummary]:
        """Games that count, in the order of their keys."""
        if not self.entries:
            return list(self.games)
        return [
            game
            for game in self.games
            if game.key not in self.set_aside and game.key == self.job_key(pairing_key(game.key))
        ]

    def games_of(self, bot: str) -> list[str]:
        """Return the keys of a bot's games that count: those that are annulled if it withdraws now."""
        current = (self._by_key[self.job_key(pairing)] for pairing in self.results)
        return [
            game.key
            for game in current
            if bot in (game.first, game.second) and game.key not in self.set_aside
        ]

    def job_key(self, pairing: str) -> str:
        """Return the key of a pairing's current attempt."""
        return attempt_key(pairing, self._attempts.get(pairing, 1))

    def check(self, entry: Entry) -> None:
        """Raise RulingError if an entry cannot be made now."""
        if not entry.why.strip():
            raise RulingError("say why: a ruling without a reason cannot be defended")
        if entry.action in (Action.VOID, Action.REPLAY):
            self._check_game(entry)
        elif entry.action is Action.WITHDRAW:
            self._check_plays(entry.subject)
        elif entry.of_pairing is not None:
            self._check_pairing(entry)
        elif entry.action is Action.RESTORE:
            self._check_restored(entry)
        else:
            if entry.subject in self.bots:
                raise RulingError(f"there is a bot {entry.subject!r} already: give the new one another name")
            if entry.data.get("replaces") is not None:
                self._check_known(entry.data["replaces"])

    def _check_game(self, entry: Entry) -> None:
        game = self._by_key.get(entry.subject)
        if game is None:
            padded = (key for key in self._by_key if _without_zeros(key) == _without_zeros(entry.subject))
            hint = next((f"; did you mean {key!r}?" for key in padded), "")
            raise RulingError(f"there is no game {entry.subject!r} here{hint}")
        if entry.subject != (current := self.job_key(pairing_key(entry.subject))):
            raise RulingError(
                f"game {entry.subject!r} was set aside already, and is played again as {current!r}"
            )
        earlier = self.set_aside.get(entry.subject)
        if earlier is not None and (entry.action is Action.VOID or earlier.action is Action.WITHDRAW):
            raise RulingError(f"game {entry.subject!r} counts for nobody already ({earlier})")
        if entry.action is Action.REPLAY:
            for name in (game.first, game.second):
                if name in self.withdrawn:
                    raise RulingError(
                        f"{name!r} has withdrawn: game {entry.subject!r} can be void, not replayed"
                    )

    def _check_restored(self, entry: Entry) -> None:
        subject = entry.subject
        if entry.is_of_game:
            why = self.set_aside.get(subject)
            if why is None:
                raise RulingError(f"there is no game {subject!r} here that was set aside")
            if why.action is Action.REPLAY:
                again = self.job_key(pairing_key(subject))
                raise RulingError(f"game {subject!r} is played again as {again!r}, and cannot be restored")
            annulment = self._annulment_of(subject)
            if annulment is not None:
                raise RulingError(
                    f"{annulment.subject!r} has withdrawn, and with it this game: restore the bot"
                )
            return
        self._check_known(subject)
        if subject not in self.withdrawn:
            raise RulingError(f"{subject!r} has not withdrawn")
        versions = {self.bots.index(subject)}
        for number, entrant in enumerate(self.entrants):  # a version comes after the bot that it replaces
            if entrant.replaces in versions:
                versions.add(number)
                if (other := self.bots[number]) not in self.withdrawn:
                    raise RulingError(f"{other!r} replaces {subject!r}: withdraw {other!r} first")

    def _check_pairing(self, entry: Entry) -> None:
        number, opponent = entry.data["for_round"], entry.data.get("opponent")
        names = [entry.subject] if opponent is None else [entry.subject, opponent]
        for name in names:
            self._check_known(name)
        if len(set(names)) < len(names):
            raise RulingError(f"{entry.subject!r} cannot meet itself: name two bots")
        if number <= self.rounds_begun:
            raise RulingError(
                f"round {number} has begun, and its pairings stay as they are: the next round is "
                f"{self.rounds_begun + 1}"
            )
        pair = frozenset(self._pair_of(entry))
        is_forbidden = pair in self.manual.forbidden_in(number)
        if entry.action is Action.RESTORE:
            if not (is_forbidden if entry.of_pairing is Action.FORBID else pair in self._fixed_in(number)):
                ruled = pairing_words(replace(entry, action=entry.of_pairing or entry.action))
                raise RulingError(
                    f"there is nothing to take back: nobody ruled that {entry.subject!r} {ruled}"
                )
            return
        for name in names:
            self._check_plays(name)
        both = f"{entry.subject!r} and {opponent!r}"
        if entry.action is Action.FORBID:
            if any(one.bots == pair and one.since <= number and one.until is None for one in self.forbidden):
                raise RulingError(f"{both} are already forbidden to meet")
            for later in sorted(self.fixed):
                if later >= number and pair in self._fixed_in(later):
                    raise RulingError(f"{both} meet in round {later} by a ruling: take that back first")
            return
        if is_forbidden:
            raise RulingError(f"{both} are forbidden to meet: take that back first")
        for name in names:
            bot = self.bots.index(name)
            if self.entrants[bot].since > number:
                raise RulingError(f"{name!r} joins in round {self.entrants[bot].since}, after round {number}")
            if any(bot in other for other in self._fixed_in(number)):
                raise RulingError(
                    f"{name!r} has a fixed pairing in round {number} already: take it back first"
                )

    def _fixed_in(self, number: int) -> list[frozenset[int]]:
        return [frozenset(pair) for pair in self.fixed.get(number, ())]

    def _check_known(self, name: str) -> None:
        if name not in self.bots:
            raise RulingError(f"there is no bot {name!r} here; there are {', '.join(self.bots)}")

    def _check_plays(self, name: str) -> None:
        self._check_known(name)
        if name in self.withdrawn:
            raise RulingError(f"{name!r} has withdrawn already")


def result_of(game: GameSummary) -> Result:
    """Return the result of a game for a schedule."""
    margin = 0 if game.score is None else game.score[0] - game.score[1]
    return Result(game.winner, margin, game.likeness)
