"""Signed cookies, the cache of sessions, and the limit of threads for pages."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Event

import pytest
import trio
from itsdangerous import URLSafeTimedSerializer
from starlette.responses import Response
from trio.testing import wait_all_tasks_blocked

from tests.support.courses import FAST_PASSWORDS, NOW, add_student, note, use_link
from tournaments.course.course import Course
from tournaments.course.model import LinkPurpose
from tournaments.database.base import Location
from tournaments.web.http.routing import MOST_THREADS, in_thread
from tournaments.web.http.sessions import MAX_AGE, Cookie, Cookies, SessionCache

KEY = b"k" * 32


# Cookies.


def written(cookies: Cookies, cookie: Cookie, value: str) -> tuple[str, str, str]:
    """Return the name, the value and the attributes of a cookie as it is sent."""
    response = Response()
    cookies.write(response, cookie, value)
    pair, _, attributes = response.headers["set-cookie"].partition("; ")
    name, _, text = pair.partition("=")
    return name, text, attributes


@pytest.mark.parametrize("cookie", Cookie)
def test_a_cookie_is_read_as_it_was_written(cookie: Cookie) -> None:
    cookies = Cookies(KEY, secure=False)
    name, text, attributes = written(cookies, cookie, "a value; with = signs")
    assert cookies.read({name: text}, cookie) == "a value; with = signs"
    assert attributes == f"HttpOnly; Max-Age={cookie.value.lasts_s}; Path=/; SameSite=lax"


def test_behind_tls_no_other_site_can_set_a_cookie() -> None:
    name, _, attributes = written(Cookies(KEY, secure=True), Cookie.SESSION, "x")
    assert name == "__Host-kalarena-session"
    assert "; Secure" in attributes
    assert "Domain" not in attributes


def test_forged_cookies_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cookies = Cookies(KEY, secure=False)
    name, text, _ = written(cookies, Cookie.SESSION, "secret")
    forged = str(URLSafeTimedSerializer(b"other" * 8, salt="kalarena session").dumps("secret"))
    _, of_another_kind, _ = written(cookies, Cookie.NOTE, "secret")
    for wrong in (forged, of_another_kind, text[:-1], "x" + text, "", "secret", "ä", "." * 100):
        assert cookies.read({name: wrong}, Cookie.SESSION) is None
    assert cookies.read({}, Cookie.SESSION) is None
    monkeypatch.setattr("time.time", lambda: 2.0**31)
    assert cookies.read({name: text}, Cookie.SESSION) is None  # it is too old


@pytest.mark.parametrize("cookie", Cookie)
def test_cookies_are_read_when_the_clock_was_put_back(
    monkeypatch: pytest.MonkeyPatch, cookie: Cookie
) -> None:
    cookies = Cookies(KEY, secure=False)
    name, text, _ = written(cookies, cookie, "value")
    earlier = time.time() - 3600
    monkeypatch.setattr("time.time", lambda: earlier)
    assert cookies.read({name: text}, cookie) == "value"


# The cache of sessions: a change by this process counts at once, a change by another one after MAX_AGE.


class Scene:
    """A student who is signed in, and a clock that stands."""

    def __init__(self, course: Course, location: Location) -> None:
        self.course = course
        self.location = location
        self.now = NOW
        self.student = add_student(course, course.teams.add("Team 1", NOW))
        self.secret, self.session = course.sessions.start(self.student.id, NOW)
        self.sessions = SessionCache(course, lambda: self.now)

    async def is_signed_in(self) -> bool:
        found = await self.sessions.get(self.secret)
        assert found in (None, (self.session, self.course.accounts.get(self.student.id)))
        return found is not None

    def end_elsewhere(self) -> None:
        """End the session in another process."""
        with Course(self.location, FAST_PASSWORDS) as other:
            other.sessions.end(self.secret)


@pytest.fixture
def scene(place: Location) -> Iterator[Scene]:
    with Course(place, FAST_PASSWORDS) as course:
        yield Scene(course, place)


async def test_a_session_is_cached_for_a_moment_whatever_else_is_written(scene: Scene) -> None:
    assert await scene.is_signed_in()
    scene.end_elsewhere()
    note(scene.course, NOW, scene.student.id, "submit", "x")
    scene.course.settings.change(title="Another course")
    assert await scene.is_signed_in()
    scene.now += MAX_AGE
    assert not await scene.is_signed_in()


async def test_the_cache_keeps_the_newest_sessions(scene: Scene) -> None:
    scene.sessions = SessionCache(scene.course, lambda: scene.now, most=1)
    assert await scene.is_signed_in()
    another, _session = scene.course.sessions.start(scene.student.id, NOW)
    scene.end_elsewhere()
    assert await scene.is_signed_in()  # a new session does not remove others from the cache
    assert await scene.sessions.get(another) is not None
    assert not await scene.is_signed_in()


CHANGES: dict[str, Callable[[Scene], object]] = {
    "signed out": lambda scene: scene.course.sessions.end(scene.secret),
    "disabled": lambda scene: scene.course.accounts.set_disabled(scene.student.id, True),
    "a link used": lambda scene: use_link(
        scene.course,
        scene.course.links.make(scene.student.id, LinkPurpose.RESET, NOW),
        "another long password",
        NOW,
    ),
    "too old": lambda scene: setattr(scene, "now", scene.session.expires_at + timedelta(seconds=1)),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_session_ends_at_once(scene: Scene, change: str) -> None:
    assert await scene.is_signed_in()
    CHANGES[change](scene)
    assert not await scene.is_signed_in()


async def test_a_change_counts_when_it_is_committed(scene: Scene) -> None:
    assert await scene.is_signed_in()
    with scene.course.transaction():
        scene.course.sessions.end(scene.secret)
        assert await scene.is_signed_in()  # as others see it
    assert not await scene.is_signed_in()


async def test_an_unknown_secret_is_not_cached(scene: Scene) -> None:
    scene.course.sessions.end(scene.secret)
    assert not await scene.is_signed_in()
    assert await scene.sessions.get("guessed") is None
    scene.secret, scene.session = scene.course.sessions.start(scene.student.id, NOW)
    assert await scene.is_signed_in()


# Threads.


async def test_pages_use_few_threads_so_that_others_have_the_rest() -> None:
    begun, go_on = 0, Event()

    def wait() -> None:
        nonlocal begun
        begun += 1
        go_on.wait(30)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(MOST_THREADS + 3):
                nursery.start_soon(in_thread, wait)
            while begun < MOST_THREADS:
                await trio.to_thread.run_sync(int)
            await wait_all_tasks_blocked()
            await trio.to_thread.run_sync(int)
            assert begun == MOST_THREADS
            go_on.set()
    assert begun == MOST_THREADS + 3
    assert await in_thread(int, "ff", base=16) == 255
