"""Conversion of a lecturer's rulings to journal entries, for the command line and the server."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import BOT, GAME, ON_PAIRINGS, Action, Entry
from tournaments.results.rulings import RulingError, Rulings
from tournaments.schedule.formats.swiss_pairing import can_avoid
from tournaments.schedule.pairing import NOBODY, round_under_way
from tournaments.schedule.plan import pairs_rounds


@dataclass(frozen=True, slots=True)
class Ruling:
    """A requested ruling, which is not checked yet."""

    action: Action
    subject: str
    """Key of a game, or name of a bot."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Additional data, see ``journal.Entry``."""


def withdrawal(summary: TournamentResults, bot: str, annul: bool | None = None) -> Ruling:
    """Return the withdrawal of a bot; ``annul``: its games count for nobody; None is the format's rule."""
    annulled = FORMAT_TABLES[summary.plan.kind].ANNULS if annul is None else annul
    return Ruling(Action.WITHDRAW, bot, {"annul": annulled})


def restoration(summary: TournamentResults, subject: str) -> Ruling:
    """Return the ruling that restores a void game or a withdrawn bot, ``subject``.

    Raises RulingError if rounds have begun without the bot meanwhile.
    """
    left = summary.rulings.withdrawn.get(subject)
    if left is not None and pairs_rounds(summary.plan.kind) and left.round < summary.rulings.rounds_begun:
        raise RulingError(
            f"{subject!r} withdrew in round {left.round}, and rounds were paired without it since; where "
            "late bots are taken, let it join anew (kalarena tournament add, with another --name)"
        )
    if subject in summary.bots:
        return Ruling(Action.RESTORE, subject, {"what": BOT, "keeps_annulled": True})
    return Ruling(Action.RESTORE, subject, {"what": GAME})


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """Pairings to fix and to forbid, or to take back; bots by name."""

    pairs: Sequence[tuple[str, str]] = ()
    byes: Sequence[str] = ()
    forbidden: Sequence[tuple[str, str]] = ()
    round_number: int | None = None
    """Round of the pairings, and the first one of a forbidden pairing; None is the next round."""
    undo: bool = False
    """True if earlier rulings on these pairings are taken back."""


def pairing_rulings(summary: TournamentResults, request: PairingRequest) -> list[Ruling]:
    """Return the rulings that a request stands for.

    Raises:
        RulingError: The format takes no manual pairings, or nothing is requested.

    """
    if not FORMAT_TABLES[summary.plan.kind].TAKES_MANUAL_PAIRINGS:
        kinds = " or ".join(kind for kind, table in FORMAT_TABLES.items() if table.TAKES_MANUAL_PAIRINGS)
        raise RulingError(
            f"a tournament of format {summary.plan.kind!r} takes no manual pairings, only one of format "
            f"{kinds!r} does"
        )
    number = request.round_number or summary.rulings.rounds_begun + 1
    wanted: list[tuple[Action, str, str | None]]
    wanted = [(Action.PAIR, one, other) for one, other in request.pairs]
    wanted += [(Action.BYE, bot, None) for bot in request.byes]
    wanted += [(Action.FORBID, one, other) for one, other in request.forbidden]
    if not wanted:
        raise RulingError("name two bots that meet, a bot that has a bye, or two bots that do not meet")
    rulings = []
    for action, subject, opponent in wanted:
        data: dict[str, Any] = {"for_round": number}
        if opponent is not None:
            data["opponent"] = opponent
        if request.undo:
            if action is Action.FORBID:
                data["shortens"] = True
            rulings.append(Ruling(Action.RESTORE, subject, {"what": action.value, **data}))
        else:
            rulings.append(Ruling(action, subject, data))
    return rulings


def entries_of(
    summary: TournamentResults, rulings: Sequence[Ruling], why: str, now: datetime, by: str | None = None
) -> list[Entry]:
    """Return the entries for rulings, for ``Store.note``.  Raises RulingError for an invalid ruling.

    ``by`` is the login of the account that makes them, None on the command line.
    All have one moment, and but for restored bots one round: a replacement begins when the replaced bot ends.
    """
    under_way = round_under_way(summary.schedule, summary.history)
    at = now.isoformat(timespec="seconds")
    entries: list[Entry] = []
    for ruling in rulings:
        known = Rulings(summary.file_bots, summary.kept, [*summary.journal, *entries])
        data = dict(ruling.data)
        if data.get("annul"):
            data["games"] = known.games_of(ruling.subject)
        if by is not None:
            data["by"] = by
        number = under_way
        if data.get("what") == BOT and ruling.subject in known.withdrawn and pairs_rounds(summary.plan.kind):
            # A withdrawal may complete a round. Until the next one begins, it is paired again with the bot.
            number = min(number, known.withdrawn[ruling.subject].round)
        entry = Entry(ruling.action, ruling.subject, " ".join(why.split()), number, at, data)
        known.check(entry)
        entries.append(entry)
    if any(entry.action in ON_PAIRINGS for entry in entries):
        _check_rounds(Rulings(summary.file_bots, summary.kept, [*summary.journal, *entries]), entries)
    return entries


def _check_rounds(rulings: Rulings, entries: Sequence[Entry]) -> None:
    """Raise RulingError if a coming round cannot be paired without bots that are forbidden to meet.

    ``rulings`` include ``entries``, the new ones.
    """
    following = rulings.rounds_begun + 1
    numbers = {following, *rulings.fixed}
    if any(entry.action is Action.FORBID for entry in entries):
        numbers |= {one.since for one in rulings.forbidden}
    for number in sorted(one for one in numbers if one >= following):
        playing = [bot for bot, entrant in enumerate(rulings.entrants) if entrant.plays(number)]
        manual = rulings.manual
        if not can_avoid(playing, manual.fixed_in(number, playing), manual.forbidden_in(number)):
            raise RulingError(
                f"round {number} cannot be paired like this: some of its bots would be left with opponents "
                "that they are forbidden to meet"
            )


def unexpected(summary: TournamentResults, entries: Sequence[Entry]) -> Iterator[str]:
    """Yield sentences on consequences of these entries that a lecturer might not expect."""
    rounds = {game.key: game.round for game in summary.kept}
    yield from _of_pairings(summary, entries)
    if not pairs_rounds(summary.plan.kind):
        return
    for entry in entries:
        game_round = rounds.get(entry.subject, entry.round) if entry.is_of_game else entry.round
        if game_round < entry.round:
            yield (
                f"round {game_round} is followed by rounds that are paired: this changes the table, not who "
                "met whom, or who went on"
            )
        if entry.action is Action.ADD and entry.round >= summary.plan.rounds:
            yield (
                f"round {entry.round}, the last one, is paired already: {entry.subject} plays only if the "
                "tournament's rounds are raised"
            )


def _of_pairings(summary: TournamentResults, entries: Sequence[Entry]) -> Iterator[str]:
    """Yield sentences on pairings that a lecturer might not expect."""
    rulings = summary.rulings
    for number in sorted({entry.data["for_round"] for entry in entries if entry.action in ON_PAIRINGS}):
        if number > summary.plan.rounds:
            yield (
                f"the tournament has {summary.plan.rounds} rounds: round {number} is played only if its "
                "rounds are raised"
            )
        byes = sum(NOBODY in pair for pair in rulings.fixed.get(number, ()))
        playing = sum(entrant.plays(number) for entrant in rulings.entrants)
        if byes and (playing - byes) % 2:
            yield f"one more bot has a bye in round {number}, since an odd number of bots is left"
