"""Students who look at pages, follow links, watch what plays, and submit."""

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
"""Between two pages, on average; exponentially distributed."""
WATCH_S = 20.0
"""So long at most somebody watches one game."""
SILENCE_S = 20.0
"""The server sends something every 15 s at least."""
AGAIN_S = 2.0
"""Browsers open a stream again so much later: what the server asks them for."""
ARRIVAL_S = 10.0
"""Within so long everybody has opened the first page: people are not synchronized to the millisecond."""
REFRESH_S = 10.0
"""The pages' own script waits so long at most before it loads new standings."""
STARTER = Path(__file__).resolve().parents[2] / "sample_bots" / "starters" / "python"

HABITS = (
    ("/", 30),
    ("/standings", 15),
    ("/my", 15),
    ("/competitions", 10),
    ("/competitions/practice", 5),
    ("a link", 25),
)
"""What somebody looks at next, out of 100 times."""
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
    """The kind of page at a path; None if it is none that students look at."""
    bare = path.partition("?")[0]
    if re.search(r"\.[a-z]+$", bare):  # a file to download
        return None
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, bare)), None)


@dataclass(frozen=True)
class Acknowledged:
    """An upload that the server said it has."""

    version: int
    """Its id."""
    content: str
    """The digest that it must be found under."""


@dataclass
class Class:
    """All students, and what they saw."""

    students: Sequence[Student]
    port: int
    measured: Measured
    dice: random.Random
    acknowledged: list[Acknowledged] = field(default_factory=list)
    streams: int = 0
    """That are open."""
    finished: set[tuple[str, str]] = field(default_factory=set)
    """Competition and key of games that were watched to their end, whose record the server said it has."""
    over: trio.Event = field(default_factory=trio.Event)
    """Set when everybody stops, with all pages left open."""

    async def sign_in(self, student: Student, browser: Browser) -> None:
        """By the form."""
        began = trio.current_time()
        answer = await browser.submit(
            "/sign-in", "/sign-in", {"login": student.login, "password": student.password, "next": "/"}
        )
        self.measured.other("sign-in", began, answer)
        if answer.status != 303:
            raise RuntimeError(f"{student.login} could not sign in: status {answer.status}")

    async def browse(self, student: Student, browser: Browser) -> None:
        """Look at pages until it is over, with one of them kept up to date all the time."""
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

        def told(event: Event) -> bool:
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
            await self._follow(browser, path, told)
            if not is_over:
                self._broken_off("a game")

    async def _watch_home(self, browser: Browser, nursery: trio.Nursery) -> None:
        standings = -1
        spoke = trio.current_time()

        def told(event: Event) -> bool:
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
            await self._follow(browser, "/events", told)
            self._broken_off("what plays")
            await trio.sleep(AGAIN_S)

    async def _refresh(self, browser: Browser) -> None:
        """As the home page's script does when the standings have changed, on a connection of its own."""
        await trio.sleep(self.dice.uniform(0, REFRESH_S))
        if not self.over.is_set():
            other = browser.another()
            await self.measured.page(other, "home", "/")
            other.close()

    async def _follow(self, browser: Browser, path: str, told: Callable[[Event], bool]) -> None:
        self.streams += 1
        try:
            await browser.follow(path, told)
        except LOST:
            return
        finally:
            self.streams -= 1

    def _broken_off(self, what: str) -> None:
        if not self.over.is_set():
            self.measured.errors[f"stream of {what}: broken off"] += 1

    async def upload(self, student: Student, number: int) -> Acknowledged | None:
        """A version that nobody has submitted yet, by the API; what the server acknowledged."""
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
    """The starter kit's bot, which answers at once, with something that makes it another one."""
    archive = BytesIO()
    with ZipFile(archive, "w") as zipped:
        for name in ("bot.py", "bot.toml"):
            zipped.write(STARTER / name, name)
        zipped.writestr("notes.txt", f"version {number}\n")
    return archive.getvalue()
