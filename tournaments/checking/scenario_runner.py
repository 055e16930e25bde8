"""Playing of a check's scenarios, with a limit for the time and for the number of lost games.

All processes of checks start here.
"""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from referee.conformance.game import play_conformance_game
from referee.errors import RefereeError
from referee.games.catalog import parse_game
from referee.judge.clock import FAIR, TimeControl
from referee.judge.limits import Limits
from referee.judge.results import NO_OWN_CONTROLS, OwnControls, Player
from referee.judge.verdict_text import visible
from referee.playing import Job, play_alone
from referee.process.process_tree import has_counters
from referee.sandbox.bubblewrap import Sandbox
from tournaments.bots.resolve import resolve_bot
from tournaments.checking.evidence import OUT_OF_TIME, Evidence, PlayedScenario
from tournaments.checking.scenarios import Scenario, Settings

MAX_FAULTS = 4
"""Games lost by faults after which no further one of the same game is played: they would show the same."""
MAX_LATE = 2
"""The same number for games that were lost on time: each costs its limit."""
QUICK_MOVE_S = 1.0
"""Limit per move once a game was lost on time, if it is not shorter anyway."""
SHARE_OF_ONE = 1 / 6
"""Share of the time for the whole check after which the test opponent ends a conformance game."""
TRIES = 2
"""Attempts to play a scenario that fails by a fault of our host."""
SPARE_MARGIN_S = 0.5
"""Seconds forgiven in conformance games besides the margin where the fair clock does not run: delays by the
host are then charged, too."""
TEST_OPPONENT_MARGIN_S = 60.0
"""Seconds forgiven in each move of the test opponent, which waits until the bot is quiet.  Its other limits
are those of the check, so that TIME lines have the clocks of a tournament."""
TEST_OPPONENT = Player("test opponent", ("test opponent",), "/", how="a part of the check, not a program")
"""The test opponent in records."""
MORE_TIME = "give it more with --total-time, or less a move with --move-time"

OnScenario = Callable[[Scenario, int, int], None]
"""Called with the next scenario, its number from 1, and the greatest possible number of scenarios."""
OnPlayed = Callable[[PlayedScenario], None]
"""Called with each game when it has been played."""


class StoppedError(RefereeError):
    """The check was cancelled: its ``cancel_fd`` became readable."""


class ScenarioRunner:
    """Plays the scenarios of one check that can show something new, as far as the time allows."""

    def __init__(
        self,
        player: Player,
        settings: Settings,
        began: float,
        on_scenario: OnScenario,
        on_played: OnPlayed,
        cancel_fd: int | None,
    ) -> None:
        self.player, self.settings = player, settings
        self.played: list[PlayedScenario] = []
        self.host_fault = ""
        self._until = began + settings.total_s
        self._on_scenario, self._on_played, self._cancel_fd = on_scenario, on_played, cancel_fd
        self._control = settings.control
        self._number = 0

    def play_game(self, todo: Sequence[Scenario], game: str, total: int) -> Evidence:
        """Play the scenarios of one game.  Raises StoppedError."""
        played: list[PlayedScenario] = []
        left_out: dict[str, str] = {}
        for scenario in todo:
            self._number += 1
            reason = self._reason_to_skip(scenario, played)
            if not reason:
                self._on_scenario(scenario, self._number, total)
                each = self._play(scenario)
                if each is not None:
                    played.append(each)
                    self._shorten_moves(each)
                    continue
                reason = self._reason_to_skip(scenario, played) or "this host failed"
            left_out.setdefault(scenario.item, reason)
        limits = self.settings.limits
        return Evidence(
            game=parse_game(game).name,
            played=tuple(played),
            left_out=left_out,
            capabilities=self.player.capabilities,
            memory_mb=limits.memory_mb,
            stderr_bytes=limits.stderr_bytes,
            end_grace_s=limits.end_grace_s,
        )

    def _reason_to_skip(self, scenario: Scenario, played: list[PlayedScenario]) -> str:
        """Return the reason why a scenario is not played; empty if it can show something new."""
        faults = sum(each.lost_by_fault for each in played)
        late = sum(each.lost_on_time for each in played)
        if self.host_fault:
            return f"this host failed: {self.host_fault}"
        if any(each.never_started for each in self.played):
            return "it does not start"
        if late >= MAX_LATE:
            return f"left out after {late} games that were lost on time: put that right first"
        if faults >= MAX_FAULTS:
            return f"left out after {faults} games that were lost by faults: put these right first"
        if time.monotonic() > self._until:
            return f"{OUT_OF_TIME}, {self.settings.total_s:g} s, was used up: {MORE_TIME}"
        if scenario.opponent and played and all(each.was_ended_early for each in played):
            return f"{OUT_OF_TIME}, {self.settings.total_s:g} s, is too short for full games: {MORE_TIME}"
        return ""

    def _play(self, scenario: Scenario) -> PlayedScenario | None:
        """Play a scenario; return None if the time for the check was used up meanwhile, or our host failed.

        Raises StoppedError.
        """
        for _ in range(TRIES):
            with _deadline_fd(self._until, self._cancel_fd) as deadline_fd:
                try:
                    each = play_scenario(
                        scenario,
                        self.player,
                        self._control,
                        self.settings.limits,
                        self.settings.sandbox,
                        self.settings.total_s * SHARE_OF_ONE,
                        deadline_fd,
                    )
                except RefereeError as error:
                    if self._cancel_fd is not None and select.select([self._cancel_fd], [], [], 0)[0]:
                        raise StoppedError from error
                    if time.monotonic() >= self._until:
                        return None
                    fault = str(error)
                    continue
            if each.opponent_failed:
                fault = f"the opponent, a bot of Kalarena, failed: {each.record.result.detail}"
                continue
            self.host_fault = ""
            self.played.append(each)
            self._on_played(each)
            return each
        self.host_fault = visible(fault)
        return None

    def _shorten_moves(self, each: PlayedScenario) -> None:
        """Shorten the limit per move, which need not be waited for again, after a game lost on time."""
        control = self._control
        if each.lost_on_time and (control.move_s is None or control.move_s > QUICK_MOVE_S):
            self._control = replace(control, move_s=QUICK_MOVE_S)


def play_scenario(
    scenario: Scenario,
    player: Player,
    control: TimeControl,
    limits: Limits,
    sandbox: Sandbox,
    enough_s: float = float("inf"),
    cancel_fd: int | None = None,
) -> PlayedScenario:
    """Play a scenario; the test opponent ends a conformance game after ``enough_s`` seconds.

    Raises RefereeError for failures of ours, and when ``cancel_fd`` becomes readable.
    """
    opponent = scenario.test_opponent
    own_controls: OwnControls = NO_OWN_CONTROLS
    if opponent is None:
        other = resolve_bot(scenario.opponent, Path.cwd(), game=scenario.game)
    else:
        other = TEST_OPPONENT
        if control.clock != FAIR or not has_counters():
            control = replace(control, margin_s=control.margin_s + SPARE_MARGIN_S)
        patient = replace(control, margin_s=TEST_OPPONENT_MARGIN_S)
        own_controls = (None, patient) if scenario.index == 0 else (patient, None)
    players = (player, other) if scenario.index == 0 else (other, player)
    job = Job(
        scenario.key,
        scenario.game,
        players,
        control,
        limits,
        scenario.opening,
        sandbox,
        own_controls=own_controls,
    )
    if opponent is None:
        return PlayedScenario(scenario, play_alone(job, cancel_fd=cancel_fd))
    played = play_conformance_game(job, scenario.index, opponent, enough_s=enough_s, cancel_fd=cancel_fd)
    return PlayedScenario(scenario, played.record, played.observed)


@contextlib.contextmanager
def _deadline_fd(until: float, cancel_fd: int | None) -> Iterator[int]:
    """Yield a descriptor that is readable after a time of the monotonic clock, or when ``cancel_fd`` is."""
    reader, writer = os.pipe()
    stop_reader, stop_writer = os.pipe()

    def wait() -> None:
        watched = [stop_reader] if cancel_fd is None else [stop_reader, cancel_fd]
        ready, _, _ = select.select(watched, [], [], max(0.0, until - time.monotonic()))
        if stop_reader not in ready:
            os.write(writer, b"!")

    thread = threading.Thread(target=wait, name="bound of a game", daemon=True)
    thread.start()
    try:
        yield reader
    finally:
        os.write(stop_writer, b"!")
        thread.join()
        for descriptor in (reader, writer, stop_reader, stop_writer):
            os.close(descriptor)
