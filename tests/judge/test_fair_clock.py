"""The fair clock, without processes: charged time, and the judge's answer to a deadline that passed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.judge.clock import QUEUED_EXTENSION_US, TimeControl, charged_us, host_fault_us
from referee.judge.events import LineReceived, OffTurnUsage, TimePassed, Usage
from referee.judge.results import Reason
from tests.support.judging import Judged

TIMES = st.integers(0, 10**9)
USAGES = st.builds(Usage, TIMES, TIMES, TIMES)
FAIR = TimeControl(move_s=1.0, margin_s=0.0, setup_s=0.0)
WALL = TimeControl(move_s=1.0, margin_s=0.0, setup_s=0.0, clock="wall")


@given(TIMES, TIMES, USAGES, TIMES)
def test_the_formula_of_the_contract_and_its_monotony(
    wall_us: int, more_us: int, usage: Usage, waited_us: int
) -> None:
    charged = charged_us(wall_us, usage)
    fair_us = max(wall_us - usage.wait_us - usage.referee_wait_us, usage.cpu_us)
    assert charged == min(wall_us, fair_us) >= 0
    assert charged_us(wall_us, None) == charged_us(wall_us, Usage(0, 0, 0)) == wall_us
    # More time is never charged less, and more waiting never more.
    assert charged <= charged_us(wall_us + more_us, usage)
    assert charged <= charged_us(wall_us, usage._replace(cpu_us=usage.cpu_us + more_us))
    assert charged >= charged_us(wall_us, usage._replace(wait_us=usage.wait_us + waited_us))
    assert charged >= charged_us(wall_us, usage._replace(referee_wait_us=usage.referee_wait_us + waited_us))


def passed(judged: Judged, at: float, *usage: int, doing: str = "running") -> None:
    judged.tell(TimePassed(at, ("", ""), Usage(*usage) if usage else None, doing))


def reply(judged: Judged, at: float, *usage: int, line: str = "MOVE;2") -> None:
    player = judged.match.on_turn
    assert player is not None
    judged.tell(LineReceived(player, at, line, Usage(*usage) if usage else None))


def test_an_unconfirmed_deadline_is_put_off_by_the_rest_of_the_limit() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 300_000, 500_000, 125_000)  # 1.25 s, of which 0.625 s are charged
    assert judged.match.result is None
    assert judged.match.deadline == 1.25 + 0.375
    assert [fact.name for fact in judged.match.facts if fact.name == "TimePassed"] == ["TimePassed"]
    reply(judged, 1.5, 400_000, 750_000, 0)
    assert judged.match.moves[0][2:] == (1_500_000, 750_000, 400_000, 750_000, 0)
    assert judged.match.on_turn == 1


@pytest.mark.parametrize(
    ("usage", "doing", "deadline"),
    [
        ((0, 250_000, 0), "running", 1.251),  # exactly the limit is in time: a millisecond at least
        # The wait of a bot in the run queue is not counted yet.
        ((500_000, 0, 0), "queued", 1.25 + QUEUED_EXTENSION_US / 1e6),
        ((1_125_000, 0, 0), "queued", None),  # its CPU time is over
        ((1_250_000, 1_000_000, 0), "running", None),  # 8 threads on one core that wait for each other
    ],
)
def test_the_deadline_after_the_counters_were_read(
    usage: tuple[int, int, int], doing: str, deadline: float | None
) -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, *usage, doing=doing)
    assert judged.match.deadline == deadline
    if deadline is None:
        assert judged.verdict == (1, Reason.TIMEOUT)


def test_a_confirmed_deadline_loses_and_the_sentence_names_the_times() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 300_000, 500_000, 0)
    passed(judged, 1.75, 300_000, 625_000, 0)
    assert judged.verdict == (1, Reason.TIMEOUT)
    assert (
        "the limit is 1 s a move, and 1.750 s passed: the bot used 0.300 s of CPU time, and waited 0.625 s "
        "while other programs had the CPU, which is not charged; 1.125 s are charged" in judged.result.detail
    )
    assert "still computing" in judged.result.detail
    judged = Judged(FAIR)
    passed(judged, 1.25, 1_250_000, 0, 0)
    assert "waited 0.000 s while other programs had the CPU" in judged.result.detail


def test_a_reply_before_a_deadline_that_was_put_off_is_late_by_its_charged_time() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 100_000, 0, 0, doing="queued")
    passed(judged, 1.5, 100_000, 750_000, 0)  # 0.75 s are charged: put off to 1.75 s
    assert judged.match.deadline == 1.75
    reply(judged, 1.75, 1_250_000, 0, 0)
    assert judged.verdict == (1, Reason.TIMEOUT)
    assert "1.750 s are charged before its reply" in judged.result.detail


def test_a_bot_that_the_host_keeps_from_starting_has_more_time() -> None:
    judged = Judged(TimeControl(move_s=1.0, start_s=2.0), asleep=(1,))
    passed(judged, 2.5, 200_000, 1_500_000, 0)  # 1 s of 2 s is charged
    assert judged.match.result is None
    assert judged.match.deadline == 3.5
    passed(judged, 5.0, 2_100_000, 2_000_000, 0)
    assert judged.result.reason is Reason.START
    judged = Judged(TimeControl(move_s=1.0, start_s=2.0), asleep=(1,))
    passed(judged, 2.5, 200_000, 0, 0, doing="waiting")  # it sleeps
    assert judged.result.reason is Reason.START


def test_a_reply_after_the_deadline_counts_if_its_charged_time_is_in_the_limit() -> None:
    judged = Judged(FAIR)
    reply(judged, 2.0, 500_000, 750_000, 250_000)
    assert judged.match.moves[0].charged_us == 1_000_000
    assert judged.match.result is None
    judged = Judged(FAIR)
    reply(judged, 2.0, 500_000, 250_000, 250_000)
    assert judged.result.reason is Reason.TIMEOUT
    assert "1.500 s are charged" in judged.result.detail
    assert "before its reply 'MOVE;2' was complete" in judged.result.detail
    judged = Judged(FAIR)
    reply(judged, 1.25)  # without counters all time is charged
    assert judged.result.reason is Reason.TIMEOUT


@pytest.mark.parametrize("doing", ["running", "queued"])
def test_a_host_that_keeps_a_bot_waiting_without_end_is_at_fault_itself(doing: str) -> None:
    judged = Judged(FAIR)
    cap_s = host_fault_us(1_000_000) / 1e6
    assert cap_s == 21.0  # 20 times the limit, and a second
    passed(judged, cap_s, 100_000, 20_500_000, 0, doing=doing)
    assert judged.match.result is None
    with pytest.raises(RefereeError, match=r"this host kept Ada waiting .* 21\.750 s passed, 0\.750 s"):
        passed(judged, cap_s + 0.75, 100_000, 21_000_000, 0, doing=doing)
    judged = Judged(FAIR)
    passed(judged, 30.0, 1_125_000, 29_000_000, 0)  # a bot that used its time still loses
    assert judged.result.reason is Reason.TIMEOUT


# A bot that is starved by its opponent

WAITED = Usage(100_000, 21_400_000, 0)
SPUN = OffTurnUsage(42_000_000, 21_700_000, 2)
"""CPU time of an opponent that used nearly all of two cores for 21.75 s."""


def starved(usage: Usage = WAITED, off_turn: OffTurnUsage | None = SPUN, **options: Any) -> Judged:
    """Return a judge after the cap of the first turn, of 21 s."""
    judged = Judged(FAIR, **{"is_confined": True, **options})
    judged.tell(TimePassed(20.5, ("", ""), Usage(100_000, 20_000_000, 0), "queued", off_turn=off_turn))
    assert judged.match.facts[-1].data == (("", ""), (100_000, 20_000_000, 0), "queued")  # as ever
    judged.tell(TimePassed(21.75, ("", ""), usage, "queued", off_turn=off_turn))
    return judged


def test_a_bot_that_starves_its_opponent_loses_with_the_evidence() -> None:
    judged = starved()
    assert judged.verdict == (0, Reason.CPU)
    assert judged.result.fault == "off-turn-cpu"
    assert judged.result.detail == (
        "Bob (North) lost: its processes used 42.000 s of CPU time on 2 cores while it was not on turn, 97% "
        "of all that its opponent left: in 21.750 s Ada, which was to move, used 0.100 s and waited 21.400 s "
        "for a CPU"
    )
    assert judged.match.facts[-1].data[3] == SPUN
    assert [said[-1] for said in judged.said] == ["END", "END"]  # it has not ended
    judged = Judged(FAIR, is_confined=True)
    judged.tell(LineReceived(0, 21.75, "MOVE;2", WAITED, off_turn=SPUN))
    assert judged.verdict == (0, Reason.CPU)
    assert judged.match.facts[-1].data == ("MOVE;2", WAITED, SPUN)


@pytest.mark.parametrize(
    ("usage", "off_turn"),
    [
        (WAITED, None),
        (WAITED, SPUN._replace(cpu_us=4_300_000)),  # the host's own programs used nine times as much
        # They used three times as much, and it has few threads.
        (Usage(600_000, 21_000_000, 0), SPUN._replace(cpu_us=10_600_000)),
        (WAITED, SPUN._replace(cpu_us=21_700_000, cores=16)),  # a ponderer of one thread, on 16 cores
        (WAITED, SPUN._replace(span_us=300_000_000)),  # most of it was after the turn
        (Usage(100_000, 12_000_000, 100_000), SPUN),  # it was asleep, too
    ],
)
def test_a_wait_that_the_opponent_did_not_cause_is_the_hosts_fault(
    usage: Usage, off_turn: OffTurnUsage | None
) -> None:
    with pytest.raises(RefereeError, match="this host kept Ada waiting"):
        starved(usage, off_turn)


@pytest.mark.parametrize(
    ("usage", "off_turn"),
    [
        (WAITED, SPUN._replace(cpu_us=4_400_000)),  # 44 times as much as its opponent, a tenth of all
        (Usage(600_000, 21_000_000, 0), SPUN._replace(cpu_us=10_800_000)),  # a quarter of all
    ],
)
def test_a_crowd_of_threads_starves_its_opponent_on_a_busy_host_too(
    usage: Usage, off_turn: OffTurnUsage
) -> None:
    assert starved(usage, off_turn).verdict == (0, Reason.CPU)


def test_a_bot_that_may_have_lowered_its_own_priority_was_starved_by_nobody() -> None:
    with pytest.raises(RefereeError, match="this host kept Ada waiting"):
        starved(is_confined=False)


def test_a_starved_bot_that_used_its_time_loses_by_that() -> None:
    judged = Judged(FAIR, is_confined=True)
    judged.tell(TimePassed(21.75, ("", ""), Usage(1_100_000, 20_400_000, 0), "running", off_turn=SPUN))
    assert judged.verdict == (1, Reason.TIMEOUT)


def test_starving_is_measured_by_the_turn_and_not_by_the_game() -> None:
    judged = Judged(FAIR, is_confined=True)
    for at in (15.0, 30.0):
        reply(judged, at, 100_000, 14_500_000, 0)
    judged.tell(TimePassed(50.5, ("", ""), Usage(100_000, 20_000_000, 0), "queued", off_turn=SPUN))
    judged.tell(TimePassed(51.75, ("", ""), WAITED, "queued", off_turn=SPUN))
    assert judged.verdict == (0, Reason.CPU)
    assert "in 21.750 s Ada, which was to move," in judged.result.detail


@pytest.mark.parametrize("awaited", [0, 1])
def test_a_bot_that_starves_the_start_of_its_opponent_loses(awaited: int) -> None:
    control = TimeControl(move_s=1.0, start_s=2.0)
    usage, off_turn = Usage(100_000, 40_500_000, 0), OffTurnUsage(80_000_000, 42_000_000, 2)
    judged = Judged(control, asleep=(awaited,), is_confined=True)
    judged.tell(TimePassed(42.0, ("", ""), usage, "queued", off_turn=off_turn))
    assert judged.verdict == (awaited, Reason.CPU)
    assert "which was to start," in judged.result.detail
    judged = Judged(control, asleep=(awaited,), is_confined=True)
    off_turn = off_turn._replace(cpu_us=8_000_000)
    with pytest.raises(RefereeError, match="that its start could not be timed"):
        judged.tell(TimePassed(42.0, ("", ""), usage, "queued", off_turn=off_turn))


def test_the_wall_clock_charges_all_and_records_the_counters() -> None:
    judged = Judged(WALL)
    reply(judged, 0.75, 100_000, 500_000, 0)
    assert judged.match.moves[0][2:6] == (750_000, 750_000, 100_000, 500_000)
    passed(judged, 2.0, 100_000, 1_000_000, 0, doing="queued")
    assert judged.verdict == (0, Reason.TIMEOUT)
    assert "charged" not in judged.result.detail


def test_a_game_clock_is_charged_the_charged_time_and_shows_it() -> None:
    control = TimeControl(game_s=4.0, increment_s=0.5, margin_s=0.0, setup_s=0.0)
    judged = Judged(control, timed=(True, True))
    reply(judged, 2.0, 500_000, 1_000_000, 250_000)
    assert judged.match.moves[0].charged_us == 750_000
    assert judged.said[1][-2] == "TIME;4000;3750"  # 4 - 0.75 + 0.5
    reply(judged, 2.0)
    assert judged.said[0][-2] == "TIME;3750;4500"
    assert judged.match.deadline == 2.0 + 3.75


def test_the_games_limit_is_confirmed_by_charged_time_too() -> None:
    judged = Judged(TimeControl(game_s=1.0, margin_s=0.0, setup_s=0.0))
    reply(judged, 0.5)
    reply(judged, 0.5)
    passed(judged, 1.25, 0, 500_000, 0)  # 0.25 s of 0.5 s
    assert judged.match.deadline == 1.5
    passed(judged, 1.75, 750_000, 500_000, 0)
    assert "0.500 s of it were left for this move" in judged.result.detail


def test_the_setup_of_the_first_turn_is_not_charged() -> None:
    judged = Judged(TimeControl(game_s=1.0, margin_s=0.0, setup_s=0.5))
    reply(judged, 1.75, 0, 500_000, 0)  # 1.25 s charged, 0.5 s free
    assert judged.match.moves[0].charged_us == 750_000
    passed(judged, 2.875, 0, 0, 0)
    assert judged.verdict == (0, Reason.TIMEOUT)


@pytest.mark.parametrize(("judge", "charged"), [(5, (500_000, 1_000_000)), (6, (0, 0))])
def test_a_player_with_a_longer_time_for_setting_up_has_it_in_its_first_turn(
    judge: int, charged: tuple[int, int]
) -> None:
    own = TimeControl(game_s=2.0, margin_s=0.0, setup_s=1.0)
    control = TimeControl(game_s=2.0, margin_s=0.0, setup_s=0.5)
    judged = Judged(control, own_controls=(own, own), judge=judge)
    for at in (1.0, 2.0):
        reply(judged, at, line="MOVE;2")
    assert tuple(move.charged_us for move in judged.match.moves) == charged


@pytest.mark.parametrize(("ponder", "charged"), [("allow", 750_000), ("suspend", 250_000)])
def test_the_second_player_has_setup_time_only_if_it_was_stopped(ponder: str, charged: int) -> None:
    judged = Judged(TimeControl(game_s=2.0, margin_s=0.0, setup_s=0.5, ponder=ponder))
    for at, line in ((0.25, "MOVE;2"), (1.0, "MOVE;2"), (1.0, "MOVE;3"), (1.75, "MOVE;3")):
        reply(judged, at, line=line)
    assert [move.charged_us for move in judged.match.moves] == [0, charged, 0, 750_000]


@given(st.lists(st.tuples(st.integers(0, 500_000), USAGES), max_size=20))
def test_no_verdict_without_a_charge_beyond_the_limit(steps: list[tuple[int, Usage]]) -> None:
    judged = Judged(FAIR)
    at_us = 0
    for step_us, usage in steps:
        at_us += step_us
        judged.tell(TimePassed(at_us / 1e6, ("", ""), usage, "running"))
        is_over = charged_us(at_us, usage) > 1_000_000
        if judged.match.result is not None:
            assert is_over
            break
        deadline = judged.match.deadline
        assert deadline is not None
        assert deadline >= 1.0
        assert not is_over or at_us / 1e6 <= deadline
