"""People who play casual games against reference players, as the script of the page does."""

import json
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urlencode

import trio

from benchmarks.load.charges import Period
from benchmarks.load.client import LOST, Browser, Event
from benchmarks.load.measured import Measured
from benchmarks.load.scene import Student

THINK_S = 3.0
"""Mean time between two moves in seconds; exponentially distributed."""
OPPONENTS = ("ladder:1", "ladder:2", "ladder:3", "ladder:4")
GAMES = ("manchester", "kalah(4,3)", "kalamala")
CSRF = re.compile(r'data-csrf="([^"]+)"')
DATA = re.compile(r'id="play-data">(.*?)</script>', re.DOTALL)
CYCLES = 10
"""Number of alternating pauses and periods of play: the machine and the games change during a run.

With 3 of them, a run in which nobody played at all had ratios of 0.94 and 1.03 for its two bots.
"""
PLAYED_SHARE = 0.7
"""Share of the time in which people play; the rest is for comparison."""
REPLY_S = 60.0
"""Maximum wait for a bot in seconds; a longer one is an error."""


@dataclass(frozen=True)
class Played:
    """Casual game with its acknowledged moves."""

    address: str
    moves: tuple[str, ...]
    """Moves that the server acknowledged."""


@dataclass
class Players:
    """All people who play, and their games."""

    measured: Measured
    dice: random.Random
    over: trio.Event
    games: list[Played] = field(default_factory=list)
    playing: trio.Event = field(default_factory=trio.Event)
    """Set while people make moves; clear during the periods for comparison."""

    async def alternate(self, seconds: float) -> list[Period]:
        """Let all people play and pause alternately for this time, and return the periods."""
        periods = []
        for with_people in (False, True) * CYCLES:
            if with_people:
                self.playing.set()
            else:
                self.playing = trio.Event()
            begin = datetime.now(UTC)
            share = PLAYED_SHARE if with_people else 1 - PLAYED_SHARE
            await trio.sleep(seconds * share / CYCLES)
            periods.append(Period(begin, datetime.now(UTC), with_people))
        return periods

    async def _think(self, browser: Browser) -> None:
        """Wait as long as a person does before a move, and while everybody pauses."""
        await trio.sleep(self.dice.expovariate(1 / THINK_S))
        while not self.playing.is_set():
            browser.close()  # the server ends an idle connection, on which a move would have no answer
            await self.playing.wait()
            await trio.sleep(self.dice.expovariate(1 / THINK_S))  # people do not come back all at once

    async def play(self, student: Student, browser: Browser) -> None:
        """Play one game after the other until it is over."""
        while not self.over.is_set():
            await self._think(browser)
            fields = {
                "game": self.dice.choice(GAMES),
                "opponent": self.dice.choice(OPPONENTS),
                "side": "random",
                "name": student.login,
            }
            began = trio.current_time()
            answer = await browser.submit("/play", "/play", fields)
            if self.over.is_set():
                return  # the server may have ended before its answer
            self.measured.other("start of a casual game", began, answer)
            if answer.status != 303:
                continue
            page = await self.measured.page(browser, "casual game", answer.location)
            if page.status == 200:
                await self._play(browser, answer.location, page.text)

    async def _play(self, browser: Browser, path: str, page: str) -> None:
        token, source = CSRF.search(page), DATA.search(page)
        assert token is not None
        assert source is not None
        csrf, data = unescape(token[1]), json.loads(source[1])
        seat = data["you"]
        moves = [ply["move"] for ply in data["state"]["plies"]]
        state: dict[str, Any] = data["state"]
        number = len(self.games)
        self.games.append(Played(path.rpartition("/")[2], tuple(moves)))
        while not state["over"] and not self.over.is_set():
            if state["to_move"] != seat:
                state = await self._reply(browser, path, moves, seat) or state
                if state["to_move"] != seat and not state["over"] and not self.over.is_set():
                    self.measured.errors["casual game: no reply of the bot"] += 1
                    return
                continue
            await self._think(browser)
            move = self.dice.choice(state["legal"])["move"]
            body = {"csrf": csrf, "ply": len(moves), "move": move, "after": len(moves), "revision": 0}
            began = trio.current_time()
            answer = await browser.post(
                f"{path}/move",
                urlencode(body).encode(),
                "application/x-www-form-urlencoded",
                accept="application/json",
            )
            if self.over.is_set():
                return  # the server may have ended before its answer
            self.measured.note(
                self.measured.pages if self.measured.counts else self.measured.others,
                "casual move",
                began,
                answer,
            )
            if answer.status != 200:
                return
            state = json.loads(answer.body)
            moves += [ply["move"] for ply in state["plies"]]
            self.games[number] = Played(path.rpartition("/")[2], tuple(moves))

    async def _reply(self, browser: Browser, path: str, moves: list[str], seat: int) -> dict[str, Any] | None:
        """Wait for the bot's reply on the stream of the page; return the state then."""
        state: dict[str, Any] | None = None

        def on_event(event: Event) -> bool:
            nonlocal state
            if event.kind != "state":
                return False
            state = json.loads(event.data)
            moves.extend(ply["move"] for ply in state["plies"][len(moves) - state["after"] :])
            return bool(state["over"]) or state["to_move"] == seat

        began = trio.current_time()
        with trio.move_on_after(REPLY_S):
            await trio.lowlevel.checkpoint()
            try:
                await browser.follow(f"{path}/events?after={len(moves)}&revision=0", on_event)
            except LOST:
                return state
        self.measured.others["reply of a casual bot"].seconds.append(trio.current_time() - began)
        return state
