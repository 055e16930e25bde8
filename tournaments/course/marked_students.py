"""Students and bots of a tournament, as data for a mark sheet (pure)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tournaments.course.model import FINISH, Account, Competitor, Event, Role
from tournaments.reporting.marks.people import People, Student


@dataclass(frozen=True)
class Marked:
    """Bots and students of one tournament."""

    people: People
    references: tuple[str, ...]
    """Bots that get no mark: reference players, and versions of a team that plays with a newer one."""
    remarks: tuple[str, ...]
    """Sentences on facts that are not wrong, but may be unintended."""


def roster_entry(accounts: Sequence[Account]) -> dict[str, int | None]:
    """Return the roster for the journal's entry FINISH: the login of each student -> the id of its team."""
    students = [account for account in accounts if account.role is Role.STUDENT and not account.disabled]
    return {account.login: account.team_id for account in students}


def entry_moments(
    competitors: Sequence[Competitor], teams: Mapping[int, int], joined: Mapping[str, datetime]
) -> dict[int, datetime | None]:
    """Return the moment at which each team's first bot joined; None if it was there from the beginning.

    ``teams`` maps the id of each version to the id of its team, and ``joined`` each late bot to its moment.
    """
    moments: dict[int, datetime | None] = {}
    for competitor in competitors:
        if competitor.version_id is not None:
            team_id, at = teams[competitor.version_id], joined.get(competitor.name)
            before = moments.setdefault(team_id, at)
            moments[team_id] = None if at is None or before is None else min(at, before)
    return moments


def roster_at_end(
    accounts: Sequence[Account], events: Sequence[Event], entered: Mapping[int, datetime | None]
) -> list[Account]:
    """Return the accounts with the teams that they had when a tournament ended for the first time.

    ``events`` are the entries of the journal on the tournament, oldest first, and ``entered`` are the teams
    with a bot; see ``entry_moments``.  Students who came later are left out, and students who were disabled
    later are active.  If a team's first bot joined after the end, its students are those of the next end, or
    the present ones before that, without students of teams that had a bot already.  Without an entry on the
    end, the accounts are returned as they are.
    """
    ends = [event for event in events if event.action == FINISH]
    if not ends:
        return list(accounts)
    first = ends[0]
    late = {team_id: at for team_id, at in entered.items() if at is not None and at > first.at}
    at_first = first.detail["roster"]
    had_bot = {login for login, team_id in at_first.items() if team_id in entered and team_id not in late}
    roster = {login: None if team_id in late else team_id for login, team_id in at_first.items()}
    for late_team, at in late.items():
        later = next((end.detail["roster"] for end in ends if end.at > at), roster_entry(accounts))
        members = [login for login, team_id in later.items() if team_id == late_team]
        roster |= {login: late_team for login in members if login not in had_bot}
    return [
        replace(account, team_id=roster[account.login], disabled=False, role=Role.STUDENT)
        for account in accounts
        if account.login in roster
    ]


def marked_people(
    competitors: Sequence[Competitor],
    teams: Mapping[int, int],
    accounts: Sequence[Account],
    bots: Collection[str],
    withdrawn: Collection[str] = (),
    left_out: Collection[str] = (),
) -> Marked:
    """Return the students of the bots that play in a tournament.

    ``accounts`` are those of ``roster_at_end``, and ``left_out`` the logins of other active students.
    ``teams`` maps the id of each version to the id of its team.  ``bots`` are the bots in the results: after
    a restore of a backup, the results may lack bots that joined late.  A team is marked by its newest bot in
    the results that has not withdrawn; if all of these have, by the newest; if there is none, by the newest
    competitor.  Accounts that are disabled, and those of lecturers, get no mark.  Students whose team has no
    competitor are listed without a bot.
    """
    of_team: dict[int, list[Competitor]] = {}
    references = []
    for competitor in competitors:
        if competitor.version_id is None:
            references.append(competitor.name)
        else:
            of_team.setdefault(teams[competitor.version_id], []).append(competitor)
    students = [account for account in accounts if account.role is Role.STUDENT]
    active = sorted((account for account in students if not account.disabled), key=lambda one: one.login)
    groups: dict[str, list[Student]] = {}
    remarks = []
    for team_id, own in of_team.items():
        newest = max(own, key=lambda bot: (bot.name in bots, bot.name not in withdrawn, bot.version_id))
        members = [_student(account) for account in active if account.team_id == team_id]
        if members:
            groups[newest.name] = members
        for bot in own:
            if bot.name not in bots:
                remarks.append(
                    f"{bot.name!r} was entered in this tournament, but its results do not contain it: "
                    "check the mark of its team"
                )
            elif bot is not newest and bot.name not in withdrawn:
                references.append(bot.name)
                remarks.append(f"{bot.name!r} gets no mark: {newest.name!r} of the same team does")
    no_bot = [_student(account) for account in active if account.team_id not in of_team]
    gone = [account.login for account in students if account.disabled]
    if gone:
        remarks.append(f"disabled accounts get no row: {', '.join(sorted(gone))}")
    if left_out:
        remarks.append(
            "accounts that were added or enabled after the tournament ended get no row: "
            f"{', '.join(sorted(left_out))}"
        )
    return Marked(People(groups, with_ids=True, no_bot=no_bot), tuple(references), tuple(remarks))


def _student(account: Account) -> Student:
    return Student(account.name, account.login)
