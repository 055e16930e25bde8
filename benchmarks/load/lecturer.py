"""The lecturer, who creates a tournament, starts it, and loads the dashboard regularly."""

import re
from html import unescape

import trio

from benchmarks.load.client import Browser
from benchmarks.load.measured import Measured
from benchmarks.load.students import Class

LOOK_S = 5.0
NEW = "/teach/tournaments/new"
FAILURES = re.compile(r'id="failures".*?</section>', re.DOTALL)
TAGS = re.compile(r"<[^>]+>")
GAMES_A_SECOND = 10
"""More games than a server plays, so that the tournament lasts as long as the load."""


async def make_tournament(
    everybody: Class, browser: Browser, bots: int, references: tuple[str, ...], seconds: float
) -> str:
    """Create and start a round robin of all teams that have a bot; return its slug."""
    number = bots + len(references)
    rounds = 1 + round(seconds * GAMES_A_SECOND / (number * (number - 1)))
    fields = {
        "format": "round-robin",
        "title": "Load",
        "rounds": str(rounds),
        "game": "manchester",
        "time.move_s": "10",
        "time.increment_s": "0",
        "seed": "1",
        "bots": "current",
        "references": " ".join(references),
        "do": "create",
    }
    began = trio.current_time()
    answer = await browser.submit(NEW, NEW, fields)
    everybody.measured.other("new tournament", began, answer)
    if answer.status != 303:
        raise RuntimeError(f"the tournament could not be made: {problems(answer.text)}")
    page = answer.location
    began = trio.current_time()
    answer = await browser.submit(page, f"{page}/start", {})
    everybody.measured.other("start of a tournament", began, answer)
    if answer.status != 303:
        raise RuntimeError(f"the tournament could not be started: {problems(answer.text)}")
    return page.rpartition("/")[2]


def problems(page: str) -> str:
    """Return the problems that a page shows, as a text."""
    found = re.search(r'class="complaint".*?</(?:div|p)>', page, re.DOTALL)
    return unescape(TAGS.sub(" ", found[0] if found else page[-500:])).strip()


async def supervise(measured: Measured, browser: Browser, slug: str, over: trio.Event) -> None:
    """Load the dashboard and the tournament's page regularly, until the load is over."""
    while not over.is_set():
        await measured.page(browser, "dashboard", "/teach")
        await measured.page(browser, "tournament control", f"/teach/tournaments/{slug}")
        with trio.move_on_after(LOOK_S):
            await over.wait()


async def failures_of_ours(browser: Browser) -> list[str]:
    """Return the server's own failures, as the dashboard lists them."""
    answer = await browser.get("/teach")
    if answer.status != 200:
        return [f"the dashboard could not be loaded: status {answer.status}"]
    found = FAILURES.search(answer.text)
    return [] if found is None else [unescape(" ".join(TAGS.sub(" ", found[0]).split()))]
