"""Import of a roster, with a preview of its changes."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from referee.judge.verdict_text import counted
from tournaments.course.audit import Act
from tournaments.course.course import Course
from tournaments.course.model import Account
from tournaments.course.people.roster import RosterError, RosterResult, enrol, parse_roster
from tournaments.web.http.rendering import render
from tournaments.web.http.request_body import BODY_LIMIT, sent_text, text_of
from tournaments.web.http.request_context import Site, act, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.new_links import new_links, show_links

HERE = "/teach/roster/import"


class _UndoneError(Exception):
    """Rolls a transaction back."""


@dataclass(frozen=True)
class RosterPreview:
    """Changes that importing a roster would make."""

    added: tuple[tuple[Account, str], ...]
    """New accounts, with their teams' names."""
    moved: tuple[tuple[Account, str, str], ...]
    """Accounts, with the names of their old and new teams."""
    renamed: tuple[tuple[Account, str], ...]
    """Accounts, with their old names."""
    disabled: tuple[Account, ...]
    new_teams: tuple[str, ...]
    unchanged: int
    readdressed: tuple[Account, ...]
    """Accounts whose e-mail address would be set or changed."""
    mailed: int
    """Number of links that would go out by mail."""

    @property
    def changes(self) -> bool:
        """True if the import would change anything."""
        return bool(self.added or self.moved or self.renamed or self.new_teams or self.readdressed)


def preview_roster(course: Course, text: str, site: Site) -> RosterPreview:
    """Import a roster, roll it back, and return the changes.  Raises RosterError."""
    roster = parse_roster(text)
    found: list[RosterPreview] = []
    try:
        with course.transaction():
            teams = {team.id: team.name for team in course.teams.all()}
            before = {account.id: account for account in course.accounts.all()}
            result = enrol(course, roster, site.now())
            after = {team.id: team.name for team in course.teams.all()}
            found.append(_changes(result, before, teams, after))
            raise _UndoneError
    except _UndoneError:
        return found[0]


def _changes(
    result: RosterResult, before: dict[int, Account], teams: dict[int, str], after: dict[int, str]
) -> RosterPreview:
    def team(account: Account) -> str:
        return after.get(account.team_id or 0, "")

    return RosterPreview(
        added=tuple((account, team(account)) for account in result.added),
        moved=tuple((account, team(before[account.id]), team(account)) for account in result.moved),
        renamed=tuple((account, before[account.id].name) for account in result.renamed),
        disabled=result.disabled,
        new_teams=tuple(sorted(name for number, name in after.items() if number not in teams)),
        unchanged=result.unchanged,
        readdressed=result.readdressed,
        mailed=result.mailed,
    )


async def page(
    request: Request, text: str = "", problems: str = "", preview: RosterPreview | None = None
) -> Response:
    """Show the form for a roster, with its problems or the preview of its changes."""
    return render(
        request,
        "teach/roster_import.html",
        400 if problems else 200,
        active="teach",
        text=text,
        problems=problems.split("\n") if problems else [],
        preview=preview,
        sends_mail=site_of(request).course.outbox.is_on,
    )


async def send(request: Request) -> Response:
    """Import the roster if ``do`` is ``import``, and show the new links this once; else show its changes."""
    site, form = site_of(request), await request.form()
    text = await sent_text(form, "roster")
    try:
        if text_of(form, "do") != "import":
            return await page(request, text, preview=await in_thread(preview_roster, site.course, text, site))
        result = await act(request, lambda act: _import(site, text, act), "roster.import")
    except RosterError as error:
        return await page(request, text, str(error))
    links = await in_thread(new_links, request, site, result.links)
    done = (
        f"{counted(len(result.added), 'student was', 'students were')} added, "
        f"{len(result.moved)} moved to another team, {len(result.renamed)} renamed; "
        f"{counted(result.unchanged, 'is', 'are')} unchanged."
    )
    return show_links(request, links, "The roster is imported", done, ("/teach/roster", "To the roster"))


def _import(site: Site, text: str, act: Act) -> RosterResult:
    roster = parse_roster(text)
    result = enrol(site.course, roster, site.now())
    act.subject = counted(len(roster.rows), "student")
    act.detail = {
        "added": [account.login for account in result.added],
        "moved": [account.login for account in result.moved],
        "renamed": [account.login for account in result.renamed],
    }
    if result.readdressed:
        act.detail["readdressed"] = [account.login for account in result.readdressed]
    return result


ROUTES = (
    Route("GET", HERE, page, Access.LECTURER, "teach.roster.import"),
    Route("POST", HERE, send, Access.LECTURER, "teach.roster.import.send", body_limit=BODY_LIMIT),
)
