"""When a game that is over is told of: not while the end of its worker may still be coming."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from referee.judge.results import MatchResult, Reason
from tests.builders import make_record
from tests.test_engines import job
from tests.test_faults import honest
from tournaments.engines.remote.worker import game_process
from tournaments.engines.remote.worker.game_process import ENDED, GAME, GIVE_UP, Order, ended_before_its_time


def lost(reason: Reason, status: int | None, winner: int | None = 1) -> dict[str, Any]:
    """What a record has where player 0 lost, or nobody did; the other's process is ended by the referee."""
    return {
        "result": MatchResult(winner, reason, "a sentence", None),
        "exit_status": (status, -9) if winner else (-9, status),
    }


@pytest.mark.parametrize(
    ("changes", "is_so"),
    [
        (lost(Reason.EXIT, -15), True),
        (lost(Reason.EXIT, -15, winner=0), True),
        (lost(Reason.EXIT, 0), True),  # a bot may handle the signal
        (lost(Reason.EXIT, 128 + 15), True),
        (lost(Reason.START, -15), True),
        (lost(Reason.TIMEOUT, -9), False),  # the referee's doing
        (lost(Reason.SCORE, -9), False),
        (lost(Reason.SCORE, -9, winner=None), False),
    ],
)
def test_which_games_were_ended_by_a_bots_end(changes: dict[str, Any], is_so: bool) -> None:
    assert ended_before_its_time(make_record(**changes)) is is_so


@pytest.fixture
def leash() -> Iterator[tuple[int, int]]:
    """Where it is read, and where it is written."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize(
    ("changes", "settle_s", "given_up", "kind"),
    [
        (lost(Reason.EXIT, -15), 600.0, True, ENDED),
        (lost(Reason.EXIT, -15), 0.0, False, GAME),
        (lost(Reason.SCORE, -9), 600.0, True, GAME),
        (lost(Reason.SCORE, -9), 600.0, False, GAME),
    ],
)
def test_a_game_that_may_have_ended_with_its_worker_is_told_of_later(
    monkeypatch: pytest.MonkeyPatch,
    leash: tuple[int, int],
    changes: dict[str, Any],
    settle_s: float,
    given_up: bool,
    kind: bytes,
) -> None:
    monkeypatch.setattr(game_process, "SETTLE_S", settle_s)
    monkeypatch.setattr(game_process, "play_alone", lambda *_, **__: make_record(**changes))
    reads, writes = leash
    if given_up:
        os.write(writes, GIVE_UP)
    asked = job(honest(), honest())
    answer = game_process._play(Order(asked, asked.players), reads)
    assert answer[:1] == kind
