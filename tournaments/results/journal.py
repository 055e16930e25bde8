"""The journal of a tournament: an append-only list of rulings on games, bots and pairings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """Kinds of rulings."""

    VOID = "void"
    """A game does not count, and is not played again."""
    REPLAY = "replay"
    """A game does not count, and is played again."""
    WITHDRAW = "withdraw"
    """A bot withdraws.

    ``data["annul"]`` is true if its games do not count; then ``data["games"]`` has their keys: if the bot is
    restored, it may play others.
    """
    ADD = "add"
    """A bot joins.

    ``data`` has ``bot`` (as in a tournament file), ``base`` (the folder of its relative paths), ``digest``,
    and ``replaces``, the name of the bot that it replaces, or None.
    """
    RESTORE = "restore"
    """A ruling is taken back.

    A game that was void counts again, a bot that withdrew plays on, with the games that were annulled, a
    pairing is not fixed or forbidden any more.  ``data["what"]`` is ``game``, ``bot``, or the action on a
    pairing, with that action's own data.  With ``data["keeps_annulled"]``, a game stays annulled as long as
    the withdrawal of its other bot annuls it.  Entries of earlier versions lack this key, and bring it back.
    With ``data["shortens"]``, a pairing that is forbidden until a later round is forbidden only until the
    round before ``data["for_round"]``.  Entries of earlier versions lack this key, and do not change such a
    pairing.
    """
    PAIR = "pair"
    """A bot meets ``data["opponent"]`` in the round ``data["for_round"]``."""
    BYE = "bye"
    """A bot has a bye in the round ``data["for_round"]``."""
    FORBID = "forbid"
    """A bot does not meet ``data["opponent"]`` from the round ``data["for_round"]`` on.  If that is taken
    back, ``data["for_round"]`` is the first round in which the two may meet again."""


ON_PAIRINGS = (Action.PAIR, Action.BYE, Action.FORBID)
"""Actions on the pairings of a round that has not begun."""


GAME, BOT = "game", "bot"
"""Subjects of an entry that restores."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One ruling."""

    action: Action
    subject: str
    """Key of a game, or name of a bot."""
    why: str
    round: int
    """Current round: its pairings, and those of earlier rounds, are not changed."""
    at: str
    """Time in UTC, ISO 8601."""
    data: Mapping[str, Any] = field(default_factory=dict)
    number: int | None = None
    """Number, counted from 1; None until the entry is stored."""

    @property
    def is_of_game(self) -> bool:
        """True if the subject is a game, and not a bot."""
        return self.action in (Action.VOID, Action.REPLAY) or self.data.get("what") == GAME

    @property
    def by(self) -> str | None:
        """Login of the account that made the ruling on a server, ``data["by"]``; None elsewhere."""
        return self.data.get("by")

    @property
    def of_pairing(self) -> Action | None:
        """Action on a pairing that is taken, or taken back; None if the entry has another subject."""
        action = self.data.get("what") if self.action is Action.RESTORE else self.action
        return Action(action) if action in ON_PAIRINGS else None

    def __str__(self) -> str:
        extra = ""
        if self.of_pairing is not None:
            extra = f" ({pairing_words(self)})"
        elif self.action is Action.WITHDRAW:
            extra = " (its games count for nobody)" if self.data.get("annul") else " (its games still count)"
        elif self.action is Action.ADD and self.data.get("replaces"):
            extra = f" (in the place of {self.data['replaces']})"
        return f"{self.action} {self.subject}{extra}: {self.why}"


def withdrawn_bots(journal: Iterable[Entry]) -> set[str]:
    """Return the names of the bots that have withdrawn, and were not restored."""
    gone: set[str] = set()
    for entry in journal:
        if entry.action is Action.WITHDRAW:
            gone.add(entry.subject)
        elif entry.action is Action.RESTORE and entry.data.get("what") == BOT:
            gone.discard(entry.subject)
    return gone


def pairing_words(entry: Entry) -> str:
    """Return the meaning of an entry on a pairing for its subject, as a predicate."""
    opponent, number = entry.data.get("opponent"), entry.data["for_round"]
    is_taken_back = entry.action is Action.RESTORE
    match entry.of_pairing:
        case Action.PAIR:
            return f"{'need not meet' if is_taken_back else 'meets'} {opponent} in round {number}"
        case Action.BYE:
            return f"{'need not have' if is_taken_back else 'has'} a bye in round {number}"
    return f"{'may meet' if is_taken_back else 'does not meet'} {opponent} from round {number} on"
