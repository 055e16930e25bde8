"""A course's site for tests of pages: a real course in a database, a fake clock, and browsers.

Playwright's synchronous interface has an event loop of its own; ``running_site`` therefore serves a site on a
real socket in a thread of its own.
"""

import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import trio
from starlette.responses import Response

from tests.support.courses import FAST_PASSWORDS, NOW, set_password
from tournaments.course.course import Course
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import Account, Role, Team
from tournaments.database.base import Location
from tournaments.web.app import Application
from tournaments.web.http.request_context import Site
from tournaments.web.http.routing import Route
from tournaments.web.http.sessions import Cookie
from tournaments.web.routes import ROUTES
from tournaments.web.server import listen, serve, url_of

T = TypeVar("T")
PASSWORD = "correct horse battery"
ORIGIN = "http://testserver"
BROWSER = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}
"""Headers of a form that is sent from a page of the site."""
DOMAIN = "testserver.local"
"""Domain of the cookies of a host without a dot."""
CSRF = re.compile(r'name="csrf" value="([^"]+)"')
LOGINS = {"student": "student-1", "other": "student-2", "lecturer": "lecturer", "admin": "admin"}
"""Login by role: a student of Team 1, a student of Team 2, a lecturer, an admin."""
START_LIMIT_S = 120


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        self.at += timedelta(**by)


class Browser(httpx2.AsyncClient):
    """Follows no redirections, and sends forms as a browser does."""

    async def text(self, path: str, status: int = 200) -> str:
        """Return the text of an address, which must answer with this status."""
        answer = await self.get(path)
        assert answer.status_code == status, f"{path}: {answer.status_code} {answer.text}"
        return answer.text

    async def csrf(self, page: str) -> str:
        """Return the CSRF text of a page's forms."""
        shown = await self.get(page)
        found = CSRF.search(shown.text)
        assert found, f"{page} has no form: {shown.status_code}"
        return found[1]

    async def submit(
        self, page: str, fields: dict[str, Any] | None = None, to: str = "", **more: Any
    ) -> httpx2.Response:
        """Send a form of a page: to its own address, or to another."""
        data = {"csrf": await self.csrf(page)} | (fields or {})
        return await self.post(to or page, data=data, headers=BROWSER | more.pop("headers", {}), **more)

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
        """Yield a browser, which is signed in unless it is a visitor's."""
        transport = httpx2.ASGITransport(app=self.app)
        async with Browser(transport=transport, base_url=ORIGIN, **options) as browser:
            if role != "visitor":
                secret, _session = self.course.sessions.start(self.accounts[role].id, self.clock())
                answer = Response()
                self.site.cookies.write(answer, Cookie.SESSION, secret)
                name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
                browser.cookies.set(name, value, domain=DOMAIN, path="/")
            yield browser

    async def page(self, role: str, path: str, status: int = 200) -> str:
        """Return the text of an address as this role receives it, with this status."""
        async with self.browser(role) as browser:
            return await browser.text(path, status)

    def token(self, role: str, days: int | None = None) -> str:
        """Return a new API token."""
        secret, _ = self.course.tokens.make(self.accounts[role].id, "test", self.clock(), days)
        return secret

    def bearer(self, role: str) -> dict[str, str]:
        """Return the headers of an API request with a new token; none for a visitor."""
        return {} if role == "visitor" else {"Authorization": f"Bearer {self.token(role)}"}


@contextmanager
def open_world(
    location: Location,
    data: Path,
    service: Any = None,
    routes: Sequence[Route] = ROUTES,
    mail: MailHome | None = None,
    **options: Any,
) -> Iterator[World]:
    """Open the site of a course; two teams and four accounts are added to a course without teams."""
    clock = Clock()
    with Course(location, FAST_PASSWORDS, mail) as course:
        if not course.teams.all():
            _add_people(course)
        accounts = {}
        for role, login in LOGINS.items():
            account = course.accounts.by_login(login)
            assert account is not None
            accounts[role] = account
        site = Site(course, service, clock, data, b"k" * 32, routes, **options)
        yield World(site, clock, course, course.teams.all(), accounts)


def _add_people(course: Course) -> None:
    team_ids = {
        role: course.teams.add(f"Team {number}", NOW).id
        for number, role in enumerate(LOGINS, 1)
        if number < 3
    }
    for role, login in LOGINS.items():
        team_id = team_ids.get(role)
        account = course.accounts.add(login, login, Role("student" if team_id else role), team_id, NOW)
        set_password(course, account.id, PASSWORD)


@dataclass
class RunningSite:
    """A site on a real socket."""

    url: str
    _token: trio.lowlevel.TrioToken

    def do(self, work: Callable[..., T], *args: Any) -> T:
        """Call a function in the site's own thread."""
        return trio.from_thread.run_sync(work, *args, trio_token=self._token)


@contextmanager
def running_site(world: World) -> Iterator[RunningSite]:
    """Serve a world until the end of the block, which takes a second at most."""
    sockets = listen("127.0.0.1", 0)
    started = threading.Event()
    tokens: list[trio.lowlevel.TrioToken] = []

    async def main() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        async with trio.open_nursery() as nursery:
            await nursery.start(serve, world.app, sockets, world.site.closing)
            started.set()

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    try:
        assert started.wait(START_LIMIT_S)
        running = RunningSite(url_of(sockets), tokens[0])
        yield running
    finally:
        running.do(world.site.closing.set)
        thread.join(START_LIMIT_S)
        assert not thread.is_alive(), "the site did not end"
