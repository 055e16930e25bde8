"""Playing of a scenario: a game between processes, or an interview.  All processes of checks start here."""

import contextlib
import os
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from referee.conformance.game import play_conformance_game
from referee.judge.clock import FAIR, TimeControl
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.play import Job, play_alone
from referee.process.process_tree import has_counters
from referee.sandbox.bubblewrap import Sandbox
from tournaments.bots.resolve import resolve_bot
from tournaments.checking.played import Played
from tournaments.checking.scenarios import Scenario

SPARE_MARGIN_S = 0.5
"""Seconds forgiven in interviews besides the margin where the fair clock does not run: delays by the host are
then charged, too."""
EXAMINER = Player("examiner", ("examiner",), "/", how="a part of the check, not a program")


def play_scenario(
    scenario: Scenario,
    player: Player,
    control: TimeControl,
    limits: Limits,
    sandbox: Sandbox,
    enough_s: float = float("inf"),
    leash: int | None = None,
) -> Played:
    """Play a scenario; an interview comes to its end after ``enough_s`` seconds.

    Raises RefereeError for failures of ours, and when the leash becomes readable."""
    if scenario.examiner is None:
        players = _ordered(
            player, resolve_bot(scenario.opponent, Path.cwd(), game=scenario.game), scenario.index
        )
        job = Job(scenario.key, scenario.game, players, control, limits, scenario.opening, sandbox)
        return Played(scenario, play_alone(job, leash=leash))
    players = _ordered(player, EXAMINER, scenario.index)
    if control.clock != FAIR or not has_counters():
        control = replace(control, margin_s=control.margin_s + SPARE_MARGIN_S)
    job = Job(scenario.key, scenario.game, players, control, limits, scenario.opening, sandbox)
    talk = play_conformance_game(job, scenario.index, scenario.examiner, enough_s=enough_s, leash=leash)
    return Played(scenario, talk.record, talk.seen)


@dataclass
class Bound:
    """A limit for one game."""

    descriptor: int
    """A descriptor that becomes readable after some seconds, or when the leash does."""
    leash: int | None

    def is_stopped(self) -> bool:
        """Return whether the leash ended the game."""
        return self.leash is not None and bool(select.select([self.leash], [], [], 0)[0])


@contextlib.contextmanager
def bounded(leash: int | None, seconds: float) -> Iterator[Bound]:
    """Bound the games that are played in this block by a time and, if there is one, a leash."""
    reader, writer = os.pipe()
    stop_reader, stop_writer = os.pipe()

    def wait() -> None:
        watched = [stop_reader] if leash is None else [stop_reader, leash]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if stop_reader not in ready:
            os.write(writer, b"!")

    thread = threading.Thread(target=wait, name="bound of a game", daemon=True)
    thread.start()
    try:
        yield Bound(reader, leash)
    finally:
        os.write(stop_writer, b"!")
        thread.join()
        for descriptor in (reader, writer, stop_reader, stop_writer):
            os.close(descriptor)


def _ordered(bot: Player, other: Player, index: int) -> tuple[Player, Player]:
    return (bot, other) if index == 0 else (other, bot)
