"""Sessions with made-up counters: no bot loses time by the referee, by its host or by its opponent.

The clock is real: a reading that takes long stands for a referee that had no CPU.
"""

import time
from contextlib import closing
from typing import Any, cast

import pytest
import trio

from referee.games.catalog import parse_game
from referee.judge.clock import TimeControl
from referee.judge.match import Match
from referee.judge.results import Player, Reason
from referee.process import turn_timer
from referee.process.cpu_accounting import Reading, ThreadTimes
from referee.process.player import SessionPlayer
from referee.process.poller import Poller
from referee.process.process_tree import ProcessTree
from referee.session import Session

pytestmark = pytest.mark.usefixtures("counters")

MOVE_S = 0.3
LONG_MOVE_S = 5.0
"""Limit of a move that must not be over before the third reading, on a busy machine either."""


class Waits:
    """The referee's own wait for a CPU."""

    def __init__(self) -> None:
        self.ns = 0

    def wait_ns(self) -> int:
        return self.ns

    def close(self) -> None:
        pass


class MadeUpPlayer(SessionPlayer):
    """A player with the counters of one thread, which waits for a CPU from its turn on until it replies."""

    def __init__(self, index: int) -> None:
        super().__init__(index, Player("", (), "/"))
        self.turn_began_ns: int | None = None
        self.waited_ns = 0
        self.match: Match[Any, Any] | None = None
        self.reads = 0
        """Readings in this turn."""

    @property
    def tree(self) -> ProcessTree:
        return cast("ProcessTree", self)

    def receive(self, line: str) -> None:
        if line == "START;South":
            self.turn_began_ns = time.monotonic_ns()
        elif line.endswith("YOU"):
            self.end(1)  # the second player ends the game

    def reply(self, *, has_waited: bool = True) -> None:
        if self.turn_began_ns is not None:
            self.waited_ns = time.monotonic_ns() - self.turn_began_ns if has_waited else 0
            self.turn_began_ns = None
            self.send("MOVE;1")

    def read(self) -> Reading:
        is_thinking = self.turn_began_ns is not None
        self.reads += is_thinking
        thread = ThreadTimes(0, self.waited_ns, not is_thinking, is_thinking)
        return Reading(0, {1: thread}, time.monotonic_ns())

    def is_queued(self) -> bool:
        return self.turn_began_ns is not None

    def activity(self) -> str:
        return "running"

    def has_running_thread(self) -> bool:
        return True

    def set_on_turn(self, *, on_turn: bool) -> None:
        pass


class ScriptedPlayer(MadeUpPlayer):
    """A player that sends a text of one or more lines in each of its turns; an empty text is not sent.

    It sends a text with CPU time at the third reading in its turn, and any other text at once.  Its opponent
    uses a tenth of that CPU time.
    """

    def __init__(self, index: int, turns: list[tuple[str, int]]) -> None:
        super().__init__(index)
        self.turns = turns
        """Text of each turn, and the turn's CPU time in microseconds."""
        self.cpu_us = 0
        self.opponent: ScriptedPlayer
        self.goes_first = True
        """True if the player has the processors before its opponent."""
        self.went_first = False
        """The same value at the last reply of the player that took CPU time."""

    def receive(self, line: str) -> None:
        if line != "START;South" and not line.endswith("YOU"):
            return
        if not self.turns:
            self.end(1)
        elif self.turns[0][1]:
            self.reads, self.turn_began_ns = 0, time.monotonic_ns()
        elif text := self.turns.pop(0)[0]:
            self.send(text)

    def read(self) -> Reading:
        for player in (self, self.opponent):
            player.reads += 1
            if player.turn_began_ns is not None and player.reads == 3:
                text, cpu_us = player.turns.pop(0)
                player.cpu_us += cpu_us
                player.opponent.cpu_us += cpu_us // 10
                player.went_first = player.goes_first and not player.opponent.goes_first
                player.turn_began_ns = None
                player.send(text)
        return Reading(self.cpu_us * 1000, {1: ThreadTimes(self.cpu_us * 1000, 0, 0)}, time.monotonic_ns())

    def activity(self) -> str:
        return "reading"

    def has_running_thread(self) -> bool:
        return False

    def set_on_turn(self, *, on_turn: bool) -> None:
        self.goes_first = on_turn


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: True)
    monkeypatch.setattr(turn_timer, "OwnWait", lambda: waits)
    return waits


async def played(first: MadeUpPlayer, move_s: float = MOVE_S) -> Match[Any, Any]:
    """Return the match after the second player's end, or after the verdict on the first player."""
    players = (first, MadeUpPlayer(1))
    control = TimeControl(move_s=move_s, margin_s=0.0, setup_s=0.0)
    match: Match[Any, Any] = Match(parse_game("kalah(2,1)"), control, ("Ada", "Bob"))
    await play(match, players)
    return match


async def play(match: Match[Any, Any], players: tuple[MadeUpPlayer, MadeUpPlayer]) -> Session:
    """Play a match to its end; return its session."""
    for player in players:
        player.match = match
        player.wait_ready()
    with closing(Session(match, players)) as session, trio.fail_after(30):
        await session.referee(match.start(time.monotonic()))
    for player in players:
        player.close()
    return session


async def test_a_reply_that_comes_while_the_counters_are_read_is_not_late(counters: Waits) -> None:
    class InterruptedReferee(MadeUpPlayer):
        def read(self) -> Reading:
            reading = super().read()
            if self.reads == 3:
                self.reply()
                counters.ns += 250_000_000
            return reading

    match = await played(InterruptedReferee(0), LONG_MOVE_S)
    # On a busy machine a check of the limits comes in the same turn; its readings take microseconds.
    wait_us = match.moves[0].referee_wait_us
    assert wait_us is not None
    assert 250_000 <= wait_us < 500_000


async def test_a_reply_that_comes_while_the_other_bots_memory_is_read_is_not_late() -> None:
    class LargePlayer(MadeUpPlayer):
        def limit_passed(self) -> None:
            if opponent.turn_began_ns is not None:
                opponent.reply(has_waited=False)
                time.sleep(2 * MOVE_S)

    opponent, large = MadeUpPlayer(0), LargePlayer(1)
    control = TimeControl(move_s=MOVE_S, margin_s=0.0, setup_s=0.0)
    match: Match[Any, Any] = Match(parse_game("kalah(2,1)"), control, ("Ada", "Bob"))
    await play(match, (opponent, large))
    assert match.moves, match.result
    assert match.moves[0].wall_us > 2 * MOVE_S * 1e6
    assert match.moves[0].charged_us < MOVE_S * 1e6


async def test_a_bot_gains_no_time_by_readings_of_its_own_memory() -> None:
    class LargePlayer(MadeUpPlayer):
        def limit_passed(self) -> None:
            if self.turn_began_ns is not None:
                self.reply(has_waited=False)
                time.sleep(2 * MOVE_S)

    match = await played(LargePlayer(0))
    assert match.result is not None
    assert match.result.reason is Reason.TIMEOUT


async def test_a_wait_that_ends_while_a_deadline_is_checked_counts() -> None:
    class GetsItsCpu(MadeUpPlayer):
        def is_queued(self) -> bool:
            self.reply()
            return False

    match = await played(GetsItsCpu(0))
    assert match.moves, match.result
    assert match.moves[0].wait_us  # from the first reading on, which comes late on a busy machine


async def test_a_reply_that_came_before_the_referee_noticed_the_time_is_read_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    player = MadeUpPlayer(0)
    wait = Poller.wait

    async def wait_too_long(self: Poller, timeout_s: float) -> list[tuple[int, str]]:
        found = await wait(self, timeout_s)
        assert player.match is not None
        deadline = player.match.deadline
        if not found and player.match.on_turn == 0 and deadline is not None and time.monotonic() > deadline:
            player.reply(has_waited=False)
        return found

    monkeypatch.setattr(Poller, "wait", wait_too_long)
    match = await played(player)
    assert match.result is not None
    assert match.result.reason is Reason.TIMEOUT
    assert "before its reply 'MOVE;1' was complete" in match.result.detail


async def test_a_turn_after_an_early_line_is_measured_on_the_bot_that_has_it() -> None:
    first = ScriptedPlayer(0, [("MOVE;1", 0), ("MOVE;6", 0), ("MOVE;5", 7000)])
    second = ScriptedPlayer(1, [("MOVE;1\nMOVE;6", 300), ("", 0)])
    first.opponent, second.opponent = second, first
    control = TimeControl(move_s=LONG_MOVE_S, margin_s=0.0, setup_s=0.0)
    match: Match[Any, Any] = Match(parse_game("kalah(6,4)"), control, ("Ada", "Bob"))
    session = await play(match, (first, second))
    assert [(move.player, move.move) for move in match.moves[2:]] == [(0, "6"), (1, "6"), (0, "5")]
    assert [move.cpu_us for move in match.moves if move.player == 1] == [300, None]
    assert match.moves[-1].cpu_us == 7000
    assert first.went_first
    assert session.timer.off_turn == (30, 700)


async def test_start_counts_as_read_by_a_bot_that_ends_between_two_checks() -> None:
    class ReadsMeanwhile(MadeUpPlayer):
        """Player that reads START and closes its input between two checks of the referee."""

        is_later = False

        def has_read_all(self) -> bool:
            found, self.is_later = self.is_later, True
            return found

        has_closed_input = has_read_all

        def read(self) -> Reading:
            reading = super().read()
            if self.reads >= 3:
                self.reply(has_waited=False)
            return reading

    match = await played(ReadsMeanwhile(0), LONG_MOVE_S)
    assert match.moves, match.result


class StalledPlayer(ScriptedPlayer):
    """A player that has not read START, most often because it has waited for a CPU since its start."""

    began_ns = 0
    has_started = False
    is_stalled = True

    def wait_ready(self) -> None:
        super().wait_ready()
        self.began_ns = time.monotonic_ns()

    def has_read_all(self) -> bool:
        return self.has_started

    def read(self) -> Reading:
        if self.has_started:
            return super().read()
        at_ns = time.monotonic_ns()
        waited_ns = at_ns - self.began_ns if self.is_stalled else 0
        return Reading(0, {1: ThreadTimes(0, waited_ns, 0, True)}, at_ns)


@pytest.mark.parametrize("is_stalled", [True, False])
@pytest.mark.parametrize("sender", [0, 1])
async def test_the_counters_decide_about_a_start_also_if_a_line_comes_after_the_limit(
    monkeypatch: pytest.MonkeyPatch, sender: int, is_stalled: bool
) -> None:
    first, second = ScriptedPlayer(0, [("MOVE;1", 0)]), StalledPlayer(1, [("", 0)])
    if sender == 0:
        first.turns, second.turns = [("", 0)], []
    first.opponent, second.opponent = second, first
    second.is_stalled = is_stalled
    control = TimeControl(move_s=LONG_MOVE_S, start_s=MOVE_S, margin_s=0.0, setup_s=0.0)
    match: Match[Any, Any] = Match(parse_game("kalah(6,4)"), control, ("Ada", "Bob"))
    poll_once = Poller.poll_once

    def poll_after_a_line(self: Poller) -> list[tuple[int, str]]:
        """Poll just before the referee handles the deadline; a line has come by then."""
        deadline = match.deadline
        if match.starting == 1 and deadline is not None and time.monotonic() > deadline:
            (first, second)[sender].send("MOVE;1")
            second.has_started = True
        return poll_once(self)

    monkeypatch.setattr(Poller, "poll_once", poll_after_a_line)
    await play(match, (first, second))
    assert match.result is not None
    passed = [fact.name for fact in match.facts].count("TimePassed")
    if is_stalled:
        assert (match.result.reason, passed) == (Reason.EXIT, 1)  # the player with no turn left ends
        assert [move.player for move in match.moves] == [0, 1][: 1 + sender]
    else:
        assert (match.result.reason, match.result.winner, passed) == (Reason.START, 0, 1)
        assert [line.line for line in match.wire][1:] == ["END", "END"]
