"""Pages of the roster: students, their teams, and their links for choosing a password."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.audit import Act
from tournaments.course.model import Account, CourseError, Role, Team, Version, VersionState
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import is_yes, text_of
from tournaments.web.http.request_context import Site, act, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.new_links import NewLink, make_link, replace_link, show_links
from tournaments.web.views.lists import Column, ListQuery, listed, natural_key

FIELDS = ("name", "team", "email")
"""Inputs of a student's page."""
SHOWN = "shown_"
"""Prefix of the hidden inputs with the values that the page shows."""


@dataclass(frozen=True)
class Person:
    """A line of the roster."""

    account: Account
    team: Team | None
    current: Version | None
    """Version that the team plays with."""
    newest: Version | None
    """Version that the team submitted last."""

    @property
    def state(self) -> str:
        """``invited``, ``active`` or ``disabled``."""
        return state_of(self.account)


def state_of(account: Account) -> str:
    """Return ``disabled``, ``active`` or, until a password is chosen, ``invited``."""
    if account.disabled:
        return "disabled"
    return "active" if account.has_password else "invited"


def people_of(site: Site) -> list[Person]:
    """Return all students."""
    teams = {team.id: team for team in site.course.teams.all()}
    current = site.course.versions.current()
    newest = site.course.versions.newest()
    return [
        Person(
            account,
            teams.get(account.team_id or 0),
            current.get(account.team_id or 0),
            newest.get(account.team_id or 0),
        )
        for account in site.course.accounts.all()
        if account.role is Role.STUDENT
    ]


def _newest(person: Person) -> int:
    return -1 if person.newest is None else person.newest.id


COLUMNS: dict[str, Column[Person]] = {
    "team": Column(
        "Team",
        lambda one: (
            one.team is None,
            natural_key(one.team.name if one.team else ""),
            natural_key(one.account.login),
        ),
    ),
    "login": Column("Login", lambda one: natural_key(one.account.login)),
    "name": Column("Name", lambda one: natural_key(one.account.name)),
    "account": Column("Account", lambda one: one.state),
    "newest": Column("Newest submission", _newest, is_descending=True),
}
STATES = ("active", "invited", "disabled")
BOTS = {"yes": "has a bot that plays", "no": "has no bot that plays"}
"""Filter value -> its words."""


async def page(request: Request, status: int = 200, wrong: str = "", **values: str) -> Response:
    """List all students and teams; ``wrong`` is the problem of a form with these values."""
    site = site_of(request)
    people = await in_thread(people_of, site)
    teams = await in_thread(site.course.teams.all)
    with_people = {person.account.team_id for person in people}
    query = ListQuery.read(request.query_params, COLUMNS, {"account": STATES, "bot": BOTS})

    def passes(person: Person) -> bool:
        account, bot = query.filters.get("account"), query.filters.get("bot")
        return account in (None, person.state) and (
            bot is None or (bot == "yes") == (person.current is not None)
        )

    found = listed(
        people,
        query,
        COLUMNS,
        lambda one: (one.account.login, one.account.name, one.team.name if one.team else "no team"),
        passes,
    )
    return render(
        request,
        "teach/roster.html",
        status,
        active="teach",
        people=people,
        listed=found,
        states=[(state, state) for state in STATES],
        bots=list(BOTS.items()),
        teams=sorted(teams, key=lambda team: natural_key(team.name)),
        empty=[team for team in teams if team.id not in with_people],
        failed=VersionState.FAILED,
        wrong=wrong,
        given={"login": "", "name": "", "team": ""} | values,
    )


async def add(request: Request) -> Response:
    """Add a student from the form; a missing team is made."""
    form = await request.form()
    given = {name: text_of(form, name).strip() for name in ("login", "name", "team")}
    try:
        link = await act(request, lambda act: _add(request, act, **given), "account.add")
    except CourseError as error:
        return await page(request, 400, str(error), **given)
    return show_links(
        request,
        [link],
        "A new student",
        f"{link.name} can sign in with this link.",
        ("/teach/roster", "Back to the roster"),
    )


def _add(request: Request, act: Act, login: str, name: str, team: str) -> NewLink:
    site, role = site_of(request), Role.STUDENT
    account = site.course.accounts.add(login, name or login, role, team_id(site, team), site.now())
    act.subject, act.detail = account.login, {"role": role, "team": team}
    return make_link(request, account, team)


def team_id(site: Site, name: str) -> int | None:
    """Return the id of the named team, which is made if missing; None for no name.  Raises CourseError."""
    if not name:
        return None
    found = site.course.teams.by_name(name)
    return (found or site.course.teams.add(name, site.now())).id


async def student(request: Request, status: int = 200, wrong: str = "", **values: str) -> Response:
    """Show all that can be changed of a student; ``wrong`` is the problem of a form with these values."""
    site, account = site_of(request), await _account_in_path(request)
    teams = await in_thread(site.course.teams.all)
    versions = (
        [] if account.team_id is None else await in_thread(site.course.versions.of_team, account.team_id)
    )
    team = next((team for team in teams if team.id == account.team_id), None)
    mail = await in_thread(site.course.addresses.of, account.id)
    saved = {"name": account.name, "team": team.name if team else "", "email": mail.address or ""}
    return render(
        request,
        "teach/student.html",
        status,
        active="teach",
        account=account,
        state=state_of(account),
        teams=teams,
        versions=versions,
        mail=mail,
        sends_mail=site.course.outbox.is_on,
        wrong=wrong,
        given=saved | {SHOWN + field: value for field, value in saved.items()} | values,
    )


async def _account_in_path(request: Request) -> Account:
    """Return the student in the address; lecturers may not change other accounts."""
    site = site_of(request)
    account = await in_thread(site.course.accounts.get, request.path_params["account"])
    if account is None or account.role is not Role.STUDENT:
        raise NotFound("There is no such student.")
    return account


async def link(request: Request) -> Response:
    """Make a new link for choosing a password, and show it this once."""
    account = await _account_in_path(request)
    try:
        return await replace_link(
            request, account, (f"/teach/roster/{account.id}", f"Back to {account.login}")
        )
    except CourseError as error:
        return await student(request, 400, str(error))


async def disable(request: Request) -> Response:
    """Disable a student's account, or enable it again."""
    account = await _account_in_path(request)
    disabled = is_yes(await request.form(), "disabled")
    return await set_disabled(request, account, disabled, f"/teach/roster/{account.id}")


async def set_disabled(request: Request, account: Account, disabled: bool, path: str) -> Response:
    """Disable or enable an account, and redirect to a page that shows it."""
    accounts = site_of(request).course.accounts
    action = "account.disable" if disabled else "account.enable"
    await act(request, lambda _act: accounts.set_disabled(account.id, disabled), action, account.login)
    done = "cannot sign in any more" if disabled else "can sign in again"
    return see_other(request, path, f"{account.login} {done}.")


async def change(request: Request) -> Response:
    """Change the values of a student that the user changed on the page; all of them if that is unknown."""
    site, account, form = site_of(request), await _account_in_path(request), await request.form()
    given = {field: text_of(form, field).strip() for field in FIELDS}
    shown = {field: text_of(form, SHOWN + field) for field in FIELDS if SHOWN + field in form}
    # Others may have changed the rest in the meantime.
    chosen = {field: value for field, value in given.items() if value != shown.get(field)}
    try:
        await act(
            request, lambda act: _change(site, act, account.id, **chosen), "account.change", account.login
        )
    except CourseError as error:
        kept = {SHOWN + field: value for field, value in shown.items()}
        return await student(request, 400, str(error), **given, **kept)
    return see_other(request, f"/teach/roster/{account.id}", "Saved.")


def _change(
    site: Site, act: Act, account_id: int, name: str | None = None, team: str | None = None, email: str = ""
) -> None:
    accounts = site.course.accounts
    before = accounts.get(account_id)
    assert before is not None  # accounts are never deleted
    changed = before
    if name is not None and name != before.name:
        changed = accounts.rename(account_id, name)
    if team is not None and (wanted := team_id(site, team)) != before.team_id:
        changed = accounts.move(account_id, wanted)
    is_readdressed = (
        bool(email) and site.course.outbox.is_on and site.course.addresses.enrol(account_id, email)
    )
    own = None if changed.team_id is None else site.course.teams.get(changed.team_id)
    act.detail = {"name": changed.name, "team": "" if own is None else own.name}
    act.is_recorded = changed != before or is_readdressed


async def rename_team(request: Request) -> Response:
    """Rename a team; games that were played keep the old name."""
    site, form = site_of(request), await request.form()
    number = request.path_params["team"]
    team = await in_thread(site.course.teams.get, number)
    if team is None:
        raise NotFound("There is no such team.")
    name = text_of(form, "name").strip()
    try:
        renamed = await act(request, lambda act: _rename(site, act, number, name), "team.rename", team.name)
    except CourseError as error:
        return await page(request, 400, str(error), **{f"team-{number}": name})
    return see_other(request, "/teach/roster#teams", f"{team.name} is now called {renamed.name}.")


def _rename(site: Site, act: Act, number: int, name: str) -> Team:
    renamed = site.course.teams.rename(number, name)
    act.detail["name"] = renamed.name
    return renamed


ROUTES = (
    Route("GET", "/teach/roster", page, Access.LECTURER, "teach.roster"),
    Route("POST", "/teach/roster/add", add, Access.LECTURER, "teach.roster.add"),
    Route("GET", "/teach/roster/{account:int}", student, Access.LECTURER, "teach.student"),
    Route("POST", "/teach/roster/{account:int}/link", link, Access.LECTURER, "teach.student.link"),
    Route("POST", "/teach/roster/{account:int}/disable", disable, Access.LECTURER, "teach.student.disable"),
    Route("POST", "/teach/roster/{account:int}/change", change, Access.LECTURER, "teach.student.change"),
    Route("POST", "/teach/teams/{team:int}/rename", rename_team, Access.LECTURER, "teach.team.rename"),
)
