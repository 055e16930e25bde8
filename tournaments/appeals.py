"""From what a lecturer rules to entries of the journal, for the command line and the server alike."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tournaments.format_tables import FORMAT_TABLES
from tournaments.journal import BOT, GAME, Action, Entry
from tournaments.rulings import RulingError, Rulings
from tournaments.schedule import round_under_way
from tournaments.summary import Summary


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is to be ruled, before anybody looked whether it can be."""

    action: Action
    subject: str
    """Key of a game, or name of a bot."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """See ``journal.Entry``."""


def withdrawal(summary: Summary, bot: str, annul: bool | None = None) -> Ruling:
    """A bot leaves; ``annul`` is whether its games count for nobody, None what the format does."""
    annulled = FORMAT_TABLES[summary.plan.kind].ANNULS if annul is None else annul
    return Ruling(Action.WITHDRAW, bot, {"annul": annulled})


def restoration(summary: Summary, subject: str) -> Ruling:
    """A ruling is taken back: ``subject`` is a game that was void, or a bot that withdrew.

    Raises RulingError if rounds were paired without the bot meanwhile.
    """
    left = summary.rulings.withdrawn.get(subject)
    under_way = round_under_way(summary.schedule, summary.history)
    if left is not None and FORMAT_TABLES[summary.plan.kind].PAIRS_ROUNDS and left.round < under_way:
        raise RulingError(
            f"{subject!r} withdrew in round {left.round}, and rounds were paired without it since; where "
            "late bots are taken, let it join anew (kalarena tournament add, with another --name)"
        )
    return Ruling(Action.RESTORE, subject, {"what": BOT if subject in summary.bots else GAME})


def entries_of(summary: Summary, rulings: Sequence[Ruling], why: str, now: datetime) -> list[Entry]:
    """The entries that rulings lead to, for ``Store.note``.  Raises RulingError if one makes no sense.

    All have one round and one moment: who takes another one's place begins when that one ends.
    """
    under_way = round_under_way(summary.schedule, summary.history)
    at = now.isoformat(timespec="seconds")
    entries: list[Entry] = []
    for ruling in rulings:
        known = Rulings(summary.file_bots, summary.kept, [*summary.journal, *entries])
        data = dict(ruling.data)
        if data.get("annul"):
            data["games"] = known.games_of(ruling.subject)
        entry = Entry(ruling.action, ruling.subject, " ".join(why.split()), under_way, at, data)
        known.check(entry)
        entries.append(entry)
    return entries


def unexpected(summary: Summary, entries: Sequence[Entry]) -> Iterator[str]:
    """What a lecturer might not expect of these entries, as sentences."""
    rounds = {game.key: game.round for game in summary.kept}
    for entry in entries:
        game_round = rounds.get(entry.subject, entry.round) if entry.is_of_game else entry.round
        if FORMAT_TABLES[summary.plan.kind].PAIRS_ROUNDS and game_round < entry.round:
            yield (
                f"round {game_round} is followed by rounds that are paired: this changes the table, not who "
                "met whom, or who went on"
            )
