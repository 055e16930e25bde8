"""Bots that join a tournament of the server after its creation, and their storage in its journal."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from referee.judge.results import Player
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.late_entries import note_of
from tournaments.config.tournament import CANNOT_TAKE_OPENINGS, Tournament, name_clash
from tournaments.course.model import BotChoice
from tournaments.course.people.teams import Teams
from tournaments.course.settings import check_reference
from tournaments.course.versions import Versions
from tournaments.reporting.ruling_requests import Ruling, withdrawal
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import RulingError
from tournaments.schedule.pairing import round_under_way
from tournaments.schedule.plan import pairs_rounds
from tournaments.server.competitions.entrants import Candidate, candidates, changed_files
from tournaments.server.competitions.tournament_spec import Entered, TournamentSpec, TournamentSpecError

NO_FOLDER = ""
"""Value of the journal's field for a folder: the bots of a server are no folders, but versions or players."""


def late_candidate(
    spec: TournamentSpec, choice: BotChoice, versions: Versions, teams: Teams, now: datetime
) -> Candidate:
    """Return the chosen version, which must have qualified, or the chosen reference player.

    Raises TournamentSpecError.
    """
    if choice.reference is not None:
        try:
            check_reference(choice.reference)
        except ValueError as error:
            raise TournamentSpecError([str(error)]) from error
        return Candidate(choice.reference)
    bots = [] if choice.version_id is None else [choice.version_id]
    one = spec.model_copy(update={"bots": bots, "references": []})
    found = candidates(one, versions, teams, None, now)
    if not found:
        raise TournamentSpecError(["choose the version or the reference player that joins"])
    return found[0]


def joining(
    summary: TournamentResults,
    candidate: Candidate,
    player: Player,
    replaces: str | None = None,
    field: Sequence[Entered] = (),
) -> list[Ruling]:
    """Return the rulings by which a bot joins, in the place of ``replaces`` if it is not None.

    ``field`` are the entrants of the beginning.  Raises RulingError if the bot cannot join now.
    """
    kind, name, version = summary.plan.kind, candidate.name, candidate.version
    if not FORMAT_TABLES[kind].TAKES_LATE_BOTS:
        raise RulingError(
            f"a tournament of format {kind!r} takes no bot after it was created: make another tournament"
        )
    if version is not None:  # a team that was renamed has another name here
        entered = {one.version: one.name for one in (*field, *late_entrants(summary.journal))}
        name = entered.get(version.id, name)
    if name in summary.rulings.withdrawn:
        raise RulingError(f"{name!r} is entered already, and has withdrawn: rule that it plays on")
    if name in summary.bots:
        raise RulingError(f"{name!r} is entered already")
    clash = name_clash(name, summary.bots)
    if clash is not None:
        raise RulingError(f"the names {clash!r} and {name!r} are too like one another")
    if summary.plan.openings and "openings" not in player.capabilities:
        raise RulingError(f"{name} {CANNOT_TAKE_OPENINGS}")
    if version is not None and version.digest != player.digest:
        raise RulingError(f"{name} is not what was checked: have this version checked again")
    under_way = round_under_way(summary.schedule, summary.history)
    if pairs_rounds(kind) and under_way >= summary.plan.rounds:
        raise RulingError(
            f"the last round of this tournament, {under_way}, is paired, so that a bot that joins now would "
            "play no game: make another tournament"
        )
    entrant = candidate.entered(player.digest)
    data = {
        **note_of(player, name, NO_FOLDER, replaces),
        "version": entrant.version,
        "reference": entrant.reference,
    }
    leaves = replaces is not None and replaces not in summary.rulings.withdrawn
    left = [withdrawal(summary, replaces)] if replaces is not None and leaves else []
    return [*left, Ruling(Action.ADD, name, data)]


def late_entrants(journal: Sequence[Entry]) -> list[Entered]:
    """Return the bots that have joined, in their order.  Raises TournamentSpecError for a damaged journal."""
    found = []
    for entry in journal:
        if entry.action is not Action.ADD:
            continue
        try:
            found.append(
                Entered(
                    name=entry.subject,
                    digest=entry.data["digest"],
                    version=entry.data["version"],
                    reference=entry.data["reference"],
                )
            )
        except (LookupError, ValueError) as error:
            raise TournamentSpecError(
                [f"entry {entry.number} of the journal names no bot of this server: {entry}"]
            ) from error
    return found


def with_late_entrants(
    tournament: Tournament, entered: Sequence[Entered], players: Mapping[str, Player]
) -> Tournament:
    """Return the tournament with the bots that have joined.

    Raises TournamentSpecError if the files of a bot have changed since.
    """
    added = tuple(players[one.name] for one in entered)
    problems = list(changed_files(entered, added))
    if problems:
        raise TournamentSpecError(problems)
    return tournament.model_copy(update={"added": added})
