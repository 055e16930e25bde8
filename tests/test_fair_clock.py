"""The fair clock, without processes: what is charged, and what the judge makes of a deadline that passed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.judge.clock import QUEUED_EXTENSION_US, TimeControl, charged_us, host_fault_us
from referee.judge.events import LineReceived, TimePassed, Usage
from referee.judge.results import Reason
from tests.judging import Judged

TIMES = st.integers(0, 10**9)
USAGES = st.builds(Usage, TIMES, TIMES, TIMES)
FAIR = TimeControl(move_s=1.0, margin_s=0.0, setup_s=0.0)
WALL = TimeControl(move_s=1.0, margin_s=0.0, setup_s=0.0, clock="wall")


@given(TIMES, USAGES)
def test_charged_is_between_nothing_and_the_wall_time(wall_us: int, usage: Usage) -> None:
    assert 0 <= charged_us(wall_us, usage) <= wall_us


@given(TIMES, USAGES)
def test_cpu_time_is_charged_whatever_the_waits_say(wall_us: int, usage: Usage) -> None:
    assert charged_us(wall_us, usage) >= min(wall_us, usage.cpu_us)


@given(TIMES, USAGES)
def test_the_formula_of_the_contract(wall_us: int, usage: Usage) -> None:
    fair_us = max(wall_us - usage.wait_us - usage.referee_wait_us, usage.cpu_us)
    assert charged_us(wall_us, usage) == min(wall_us, fair_us)


@given(TIMES)
def test_without_counters_or_waits_all_is_charged(wall_us: int) -> None:
    assert charged_us(wall_us, None) == charged_us(wall_us, Usage(0, 0, 0)) == wall_us


@given(TIMES, TIMES, USAGES, TIMES)
def test_more_time_is_never_charged_less_and_more_waiting_never_more(
    wall_us: int, more_us: int, usage: Usage, waited_us: int
) -> None:
    charged = charged_us(wall_us, usage)
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


def test_an_unconfirmed_deadline_is_put_off_by_what_is_left() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 300_000, 500_000, 125_000)  # 1.25 s, of which 0.625 s are charged
    assert judged.match.result is None
    assert judged.match.deadline == 1.25 + 0.375
    assert [fact.name for fact in judged.match.facts if fact.name == "TimePassed"] == ["TimePassed"]
    reply(judged, 1.5, 400_000, 750_000, 0)
    move = judged.match.moves[0]
    assert (move.wall_us, move.charged_us) == (1_500_000, 750_000)
    assert (move.cpu_us, move.wait_us, move.referee_wait_us) == (400_000, 750_000, 0)
    assert judged.match.on_turn == 1


def test_a_deadline_is_put_off_by_a_millisecond_at_least() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 0, 250_000, 0)  # exactly the limit is in time
    assert judged.match.result is None
    assert judged.match.deadline == 1.251


def test_a_confirmed_deadline_loses_and_says_what_the_host_caused() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 300_000, 500_000, 0)
    passed(judged, 1.75, 300_000, 625_000, 0)
    assert (judged.result.winner, judged.result.reason) == (1, Reason.TIMEOUT)
    assert (
        "the limit is 1 s a move, and 1.750 s passed: the bot used 0.300 s of CPU time, and waited 0.625 s "
        "while other programs had the CPU, which is not charged; 1.125 s are charged" in judged.result.detail
    )
    assert "still computing" in judged.result.detail


def test_a_loss_without_any_wait_says_so() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 1_250_000, 0, 0)
    assert (
        "1.250 s passed: the bot used 1.250 s of CPU time, and waited 0.000 s while other programs had the "
        "CPU, which is not charged; 1.250 s are charged" in judged.result.detail
    )


def test_a_reply_before_a_deadline_that_was_put_off_is_late_by_what_is_charged() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 100_000, 0, 0, doing="queued")
    passed(judged, 1.5, 100_000, 750_000, 0)  # 0.75 s are charged: put off to 1.75 s
    assert judged.match.deadline == 1.75
    reply(judged, 1.75, 1_250_000, 0, 0)
    assert (judged.result.winner, judged.result.reason) == (1, Reason.TIMEOUT)
    assert "1.750 s are charged before its reply" in judged.result.detail


def test_a_bot_that_the_host_keeps_from_starting_is_given_time() -> None:
    judged = Judged(TimeControl(move_s=1.0, start_s=2.0), asleep=(1,))
    passed(judged, 2.5, 200_000, 1_500_000, 0)  # 1 s of 2 s is charged
    assert judged.match.result is None
    assert judged.match.deadline == 3.5
    passed(judged, 5.0, 2_100_000, 2_000_000, 0)
    assert judged.result.reason is Reason.START


def test_a_bot_that_sleeps_at_its_start_is_not() -> None:
    judged = Judged(TimeControl(move_s=1.0, start_s=2.0), asleep=(1,))
    passed(judged, 2.5, 200_000, 0, 0, doing="waiting")
    assert judged.result.reason is Reason.START


def test_threads_that_wait_for_each_other_gain_nothing() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 1_250_000, 1_000_000, 0)  # 8 threads on one core
    assert judged.result.reason is Reason.TIMEOUT


def test_a_late_reply_that_is_in_its_budget_counts() -> None:
    judged = Judged(FAIR)
    reply(judged, 2.0, 500_000, 750_000, 250_000)
    assert judged.match.moves[0].charged_us == 1_000_000
    assert judged.match.result is None


def test_a_late_reply_beyond_its_budget_loses() -> None:
    judged = Judged(FAIR)
    reply(judged, 2.0, 500_000, 250_000, 250_000)
    assert judged.result.reason is Reason.TIMEOUT
    assert "1.500 s are charged" in judged.result.detail
    assert "before its reply 'MOVE;2' was complete" in judged.result.detail


def test_a_reply_that_nothing_is_known_of_is_charged_its_wall_time() -> None:
    judged = Judged(FAIR)
    reply(judged, 1.25)
    assert judged.result.reason is Reason.TIMEOUT


def test_a_bot_that_is_queued_is_given_time_since_its_wait_is_not_counted_yet() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 500_000, 0, 0, doing="queued")
    assert judged.match.result is None
    assert judged.match.deadline == 1.25 + QUEUED_EXTENSION_US / 1e6
    reply(judged, 1.5, 600_000, 750_000, 0)
    assert judged.match.moves[0].charged_us == 750_000


def test_a_bot_whose_cpu_time_is_over_is_not_given_time_for_being_queued() -> None:
    judged = Judged(FAIR)
    passed(judged, 1.25, 1_125_000, 0, 0, doing="queued")
    assert judged.result.reason is Reason.TIMEOUT


@pytest.mark.parametrize("doing", ["running", "queued"])
def test_a_host_that_keeps_a_bot_waiting_for_ever_is_to_blame_itself(doing: str) -> None:
    judged = Judged(FAIR)
    cap_s = host_fault_us(1_000_000) / 1e6
    assert cap_s == 21.0  # 20 times the limit, and a second
    passed(judged, cap_s, 100_000, 20_500_000, 0, doing=doing)
    assert judged.match.result is None
    with pytest.raises(RefereeError, match=r"this host kept Ada waiting .* 21\.750 s passed, 0\.750 s"):
        passed(judged, cap_s + 0.75, 100_000, 21_000_000, 0, doing=doing)


def test_beyond_the_cap_a_bot_that_used_its_time_still_loses() -> None:
    judged = Judged(FAIR)
    passed(judged, 30.0, 1_125_000, 29_000_000, 0)
    assert judged.result.reason is Reason.TIMEOUT


def test_the_wall_clock_charges_all_and_records_the_counters() -> None:
    judged = Judged(WALL)
    reply(judged, 0.75, 100_000, 500_000, 0)
    move = judged.match.moves[0]
    assert (move.wall_us, move.charged_us, move.cpu_us, move.wait_us) == (750_000, 750_000, 100_000, 500_000)
    passed(judged, 2.0, 100_000, 1_000_000, 0, doing="queued")
    assert (judged.result.winner, judged.result.reason) == (0, Reason.TIMEOUT)
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
    assert (judged.result.winner, judged.result.reason) == (0, Reason.TIMEOUT)


@pytest.mark.parametrize(("ponder", "charged"), [("allow", 750_000), ("suspend", 250_000)])
def test_the_second_player_has_setup_time_only_if_it_was_stopped(ponder: str, charged: int) -> None:
    judged = Judged(TimeControl(game_s=2.0, margin_s=0.0, setup_s=0.5, ponder=ponder))
    reply(judged, 0.25)
    reply(judged, 1.0)
    reply(judged, 1.0, line="MOVE;3")
    reply(judged, 1.75, line="MOVE;3")
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
