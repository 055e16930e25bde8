"""Students who read pages, follow links, watch games, and submit."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import trio

from benchmarks.load.client import LOST, Browser, Event
from benchmarks.load.measured import Measured
from benchmarks.load.scene import Student
from tournaments.bots.storage import content_digest
from tournaments.bots.upload.archive import read_upload

THINK_S = 5.0
"""Mean time between two pages in seconds; exponentially distributed."""
WATCH_S = 20.0
"""Maximum time for which a student watches one game, in seconds."""
SILENCE_S = 20.0
"""Longest regular silence of a stream in seconds; the server sends something every 15 s."""
AGAIN_S = 2.0
"""Delay before a browser opens a stream again in seconds, as in the server's ``retry`` field."""
ARRIVAL_S = 10.0
"""Time within which everybody opens the first page, in seconds: people do not arrive all at once."""
REFRESH_S = 10.0
"""Maximum delay before the pages' script loads new standings, in seconds."""
STARTER = Path(__file__).resolve().parents[2] / "sample_bots" / "starters" / "python"

HABITS = (
    ("/", 30),
    ("/standings", 15),
    ("/my", 15),
    ("/competitions", 10),
    ("/competitions/practice", 5),
    ("a link", 25),
)
"""Next page of a student, with its frequency in percent."""
KINDS = (
    ("home", r"/"),
    ("standings", r"/standings"),
    ("my bot", r"/my(/.*)?"),
    ("competitions", r"/competitions"),
    ("competition", r"/competitions/[^/]+"),
    ("games", r"/competitions/[^/]+/games"),
    ("game", r"/competitions/[^/]+/games/[^/]+"),
    ("live game", r"/competitions/[^/]+/live/[^/]+"),
    ("bot", r"/competitions/[^/]+/bots/[^/]+|/bots/[^/]+"),
)
"""Kinds of pages, by their paths; other links are not followed."""
EVENTS = re.compile(r'data-live-events="([^"]+)"')


def kind_of(path: str) -> str | None:
    """Return the kind of the page at a path; None for one that students do not read."""
    bare = path.partition("?")[0]
    if re.search(r"\.[a-z]+$", bare):  # a file to download
        return None
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, bare)), None)


@dataclass(frozen=True)
class Acknowledged:
    """Upload that the server acknowledged."""

    version: int
    """The version's id."""
    content: str
    """Digest under which the upload must be stored."""


@dataclass
class Class:
    """All students, with their uploads and the games that they watched."""

    students: Sequence[Student]
    port: int
    measured: Measured
    dice: random.Random
    acknowledged: list[Acknowledged] = field(default_factory=list)
    streams: int = 0
    """Number of open streams."""
    finished: set[tuple[str, str]] = field(default_factory=set)
    """Competition and key of games that were watched to their end, so that they must be stored."""
    over: trio.Event = field(default_factory=trio.Event)
    """Set when everybody stops; all pages stay open."""

    async def sign_in(self, student: Student, browser: Browser) -> None:
        """Sign in by the form."""
        began = trio.current_time()
        answer = await browser.submit(
            "/sign-in", "/sign-in", {"login": student.login, "password": student.password, "next": "/"}
        )
        self.measured.other("sign-in", began, answer)
        if answer.status != 303:
            raise RuntimeError(f"{student.login} could not sign in: status {answer.status}")

    async def browse(self, student: Student, browser: Browser) -> None:
        """Read pages until the load is over; the first page is kept up to date by its stream."""
        await trio.sleep(self.dice.uniform(0.0, ARRIVAL_S))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_home, browser, nursery)
            links: list[str] = []
            while not self.over.is_set():
                await trio.sleep(self.dice.expovariate(1 / THINK_S))
                if self.over.is_set():
                    break
                paths, weights = zip(*HABITS, strict=True)
                (path,) = self.dice.choices(paths, weights)
                if path == "a link":
                    followed = [link for link in links if kind_of(link) is not None]
                    path = self.dice.choice(followed or ["/"])
                links = await self._look(browser, path)
            await trio.sleep_forever()  # the page stays open

    async def _look(self, browser: Browser, path: str) -> list[str]:
        kind = kind_of(path)
        assert kind is not None
        answer = await self.measured.page(browser, kind, path)
        if kind == "live game" and answer.status == 303:  # it is over
            answer = await self.measured.page(browser, "game", answer.location)
        if answer.status != 200:
            return []
        found = EVENTS.search(answer.text)
        if found is not None:
            await self._watch_game(browser, path.split("/")[2], found[1])
        return answer.links

    async def _watch_game(self, browser: Browser, slug: str, path: str) -> None:
        known, is_over = 0, False

        def on_event(event: Event) -> bool:
            nonlocal known, is_over
            if not event.kind:
                return False
            self.measured.streams["events of games"] += 1
            data = json.loads(event.data) or {}
            if event.kind == "state":
                self.measured.streams["gaps in games"] += data["after"] != known
                known += len(data["plies"])
            elif event.kind == "over" and data.get("href"):
                self.finished.add((slug, data["href"].rpartition("/")[2]))
            is_over = event.kind == "gone" or "href" in data
            return is_over

        self.measured.streams["games watched"] += 1
        with trio.move_on_after(WATCH_S):
            await self._follow(browser, path, on_event)
            if not is_over:
                self._broken_off("a game")

    async def _watch_home(self, browser: Browser, nursery: trio.Nursery) -> None:
        standings = -1
        spoke = trio.current_time()

        def on_event(event: Event) -> bool:
            nonlocal standings, spoke
            now = trio.current_time()
            self.measured.streams["silences"] += now - spoke > SILENCE_S
            spoke = now
            if event.kind:
                self.measured.streams["events of what plays"] += 1
                number = int(event.id)
                self.measured.streams["standings that went back"] += number < standings
                standings = number
            if event.kind == "standings" and not self.over.is_set():
                nursery.start_soon(self._refresh, browser)
            return False

        while not self.over.is_set():
            await self._follow(browser, "/events", on_event)
            self._broken_off("what plays")
            await trio.sleep(AGAIN_S)

    async def _refresh(self, browser: Browser) -> None:
        """Load the first page again, as its script does when the standings have changed."""
        await trio.sleep(self.dice.uniform(0, REFRESH_S))
        if not self.over.is_set():
            other = browser.another()
            await self.measured.page(other, "home", "/")
            other.close()

    async def _follow(self, browser: Browser, path: str, on_event: Callable[[Event], bool]) -> None:
        self.streams += 1
        try:
            await browser.follow(path, on_event)
        except LOST:
            return
        finally:
            self.streams -= 1

    def _broken_off(self, what: str) -> None:
        if not self.over.is_set():
            self.measured.errors[f"stream of {what}: broken off"] += 1

    async def upload(self, student: Student, number: int) -> Acknowledged | None:
        """Submit a new version by the API; return the acknowledged upload, or None if it failed."""
        browser = Browser(self.port, student.address, student.token)
        archive = bot(number)
        began = trio.current_time()
        answer = await browser.post("/api/v1/submissions?name=bot.zip", archive, "application/octet-stream")
        self.measured.other("upload", began, answer)
        browser.close()
        if answer.status != 201:
            return None
        content = content_digest(read_upload("bot.zip", BytesIO(archive)).files)
        made = Acknowledged(json.loads(answer.body)["version"]["id"], content)
        self.acknowledged.append(made)
        return made


def bot(number: int) -> bytes:
    """Return an archive of the starter kit's bot, with a file that makes it different from all others."""
    archive = BytesIO()
    with ZipFile(archive, "w") as zipped:
        for name in ("bot.py", "bot.toml"):
            zipped.write(STARTER / name, name)
        zipped.writestr("notes.txt", f"version {number}\n")
    return archive.getvalue()
