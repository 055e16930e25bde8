"""A course's site for tests of pages: a real course in a file, a fake service, a fake clock, and browsers."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from argon2.profiles import CHEAPEST
from starlette.responses import Response

from tournaments.course.course import Course
from tournaments.course.model import Account, Role, Team
from tournaments.course.passwords import Passwords
from tournaments.database.base import Location
from tournaments.web.app import Application
from tournaments.web.http.request_context import Site
from tournaments.web.http.routing import Route
from tournaments.web.http.sessions import Cookie
from tournaments.web.routes import ROUTES

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PASSWORD = "correct horse battery"
ORIGIN = "http://testserver"
DOMAIN = "testserver.local"
"""As cookies are kept of a host without a dot."""
CSRF = re.compile(r'name="csrf" value="([^"]+)"')
ROLES = ("visitor", "student", "other", "lecturer", "admin")
"""Who may come: a visitor, a student of Team 1, one of Team 2, a lecturer, an admin."""
LOGINS = {"student": "student-1", "other": "student-2", "lecturer": "lecturer", "admin": "admin"}


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        self.at += timedelta(**by)


class Browser(httpx2.AsyncClient):
    """Follows no redirections, sends forms as a browser does."""

    async def submit(
        self, page: str, fields: dict[str, Any] | None = None, to: str = "", **more: Any
    ) -> httpx2.Response:
        """Send a form of a page: to its own address, or to another."""
        shown = await self.get(page)
        found = CSRF.search(shown.text)
        assert found, f"{page} has no form: {shown.status_code}"
        headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}
        return await self.post(to or page, data={"csrf": found[1]} | (fields or {}), headers=headers, **more)

    async def sign_in(self, login: str, password: str = PASSWORD) -> None:
        answer = await self.submit("/sign-in", {"login": login, "password": password})
        assert answer.status_code == 303, answer.text


@dataclass
class World:
    """A site with two teams, a lecturer and an admin."""

    site: Site
    clock: Clock
    course: Course
    teams: list[Team]
    accounts: dict[str, Account]
    """By role."""
    app: Application = field(init=False)

    def __post_init__(self) -> None:
        self.app = Application(self.site)

    @asynccontextmanager
    async def browser(self, role: str = "visitor", **options: Any) -> AsyncIterator[Browser]:
        """A browser, signed in unless it is a visitor's."""
        transport = httpx2.ASGITransport(app=self.app)
        async with Browser(transport=transport, base_url=ORIGIN, **options) as browser:
            if role != "visitor":
                secret, _session = self.course.sessions.start(self.accounts[role].id, self.clock())
                answer = Response()
                self.site.cookies.write(answer, Cookie.SESSION, secret)
                name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
                browser.cookies.set(name, value, domain=DOMAIN, path="/")
            yield browser


@contextmanager
def open_world(
    place: Location, data: Path, service: Any = None, routes: Sequence[Route] = ROUTES, **options: Any
) -> Iterator[World]:
    """The site at a place without tables."""
    clock = Clock()
    with Course(place, Passwords(CHEAPEST)) as course:
        teams = [course.teams.add(f"Team {number}", NOW) for number in (1, 2)]
        accounts = {}
        for role, login in LOGINS.items():
            team = {"student": teams[0].id, "other": teams[1].id}.get(role)
            account = course.accounts.add(login, login, Role("student" if team else role), team, NOW)
            course.accounts.set_password(account.id, PASSWORD)
            accounts[role] = account
        site = Site(course, service, clock, data, b"k" * 32, routes, **options)
        yield World(site, clock, course, teams, accounts)
