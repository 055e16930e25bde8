"""One-time links, shown once: only their digests are kept."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Account, LinkPurpose
from tournaments.reporting.tables import inert
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import Site, act, site_address, site_of

COLUMNS = ("login", "name", "team", "link")


@dataclass(frozen=True)
class NewLink:
    """A link that was just made, with its account's login, name and team."""

    login: str
    name: str
    team: str
    link: str
    is_mailed: bool = False
    """True if the link goes out by mail, too."""


def make_link(request: Request, account: Account, team: str = "") -> NewLink:
    """Make a link for choosing a password, which voids an earlier one.  Blocks.  Raises CourseError."""
    site = site_of(request)
    purpose = LinkPurpose.RESET if account.has_password else LinkPurpose.INVITATION
    secret = site.course.links.make(account.id, purpose, site.now())
    is_mailed = site.course.outbox.is_on and site.course.addresses.of(account.id).address is not None
    return NewLink(account.login, account.name, team, address(request, secret), is_mailed)


async def replace_link(request: Request, account: Account, back: tuple[str, str]) -> Response:
    """Make a new link for an account, and show it this once; ``back`` as for ``show_links``.

    Raises CourseError.
    """
    made = await act(request, lambda _act: make_link(request, account), "account.link", account.login)
    return show_links(
        request, [made], f"A link for {account.login}", "An earlier link is no longer valid.", back
    )


def address(request: Request, secret: str) -> str:
    """Return the address of a link."""
    return f"{site_address(request)}/links/{secret}"


def new_links(request: Request, site: Site, secrets: Mapping[str, str]) -> list[NewLink]:
    """Return links with names and teams, ordered by login; ``secrets`` maps logins to secrets of links."""
    teams = {team.id: team.name for team in site.course.teams.all()}
    accounts = {account.login: account for account in site.course.accounts.all()}
    mailed = site.course.addresses.known() if site.course.outbox.is_on else frozenset()
    return [
        NewLink(
            login,
            accounts[login].name,
            teams.get(accounts[login].team_id or 0, ""),
            address(request, secrets[login]),
            accounts[login].id in mailed,
        )
        for login in sorted(secrets)
    ]


def show_links(
    request: Request, links: Sequence[NewLink], title: str, done: str, back: tuple[str, str]
) -> Response:
    """Show the links, this once; ``back`` is the address and the name of the page to go on to."""
    response = render(
        request,
        "teach/links.html",
        active="teach",
        links=links,
        title=title,
        done=done,
        back=back,
        csv=f"data:text/csv;charset=utf-8,{quote(links_csv(links))}",
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def links_csv(links: Sequence[NewLink]) -> str:
    """Return the links as CSV, for a program that sends mail."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([inert(link.login), inert(link.name), inert(link.team), link.link] for link in links)
    return out.getvalue()
