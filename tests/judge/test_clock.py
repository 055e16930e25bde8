"""Time controls and clocks: time is an argument, so nothing here waits."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import SUSPEND, WALL, Clock, TimeControl, announceable

LIMITS = st.floats(0.001, 1e6)
EXTRAS = st.floats(0.0, 100.0)
CONTROLS = st.builds(
    lambda game_s, move_s, increment_s, margin_s: TimeControl(move_s, game_s, increment_s, margin_s),
    LIMITS,
    st.none() | LIMITS,
    EXTRAS,
    EXTRAS,
)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "needs a limit per move or a limit per game"),
        *(({"move_s": value}, "move_s must be more than 0") for value in (0.0, -1.0)),
        *(({"move_s": value}, "move_s must be") for value in (math.nan, math.inf)),
        ({"game_s": 0.0}, "game_s must be more than 0"),
        ({"game_s": math.inf}, r"game_s must be below 1e\+12 seconds, not inf"),
        ({"move_s": 1.0, "start_s": 0.0}, "start_s must be more than 0"),
        ({"move_s": 1.0, "start_s": math.inf}, "start_s must be"),
        ({"move_s": 1.0, "margin_s": -0.01}, "margin_s must not be below 0"),
        ({"move_s": 1.0, "margin_s": math.nan}, "margin_s must"),
        ({"game_s": 1.0, "increment_s": -0.01}, "increment_s must not be below 0"),
        ({"game_s": 1.0, "increment_s": math.inf}, "increment_s must be below"),
        ({"move_s": 1.0, "increment_s": 1.0}, "an increment needs a limit per game"),
    ],
)
def test_senseless_controls_are_refused(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TimeControl(**arguments)


def test_bots_can_read_the_times_of_a_new_game() -> None:
    longest = TimeControl(1e12 - 1)
    assert announceable(longest) is longest
    with pytest.raises(ValueError, match=r"game_s must be below 1e\+12 seconds, not 1e\+300"):
        announceable(TimeControl(game_s=1e300))


@pytest.mark.parametrize(
    ("control", "text"),
    [
        (TimeControl(2.0), "2 s per move (margin 0.05 s, start 30 s)"),
        (TimeControl(None, 60.0, 0.5, 0.0, 5.0), "60 s per game, +0.5 s a move (margin 0 s, start 5 s)"),
        (TimeControl(2.0, clock=WALL), "2 s per move, wall clock (margin 0.05 s, start 30 s)"),
        (
            TimeControl(2.0, ponder=SUSPEND),
            "2 s per move, bots suspended while the opponent thinks (margin 0.05 s, start 30 s)",
        ),
        (TimeControl(2.5, 60.0), "60 s per game, 2.5 s per move (margin 0.05 s, start 30 s)"),
    ],
)
def test_a_control_in_words(control: TimeControl, text: str) -> None:
    assert str(control) == text


@given(LIMITS, EXTRAS, st.lists(EXTRAS, max_size=5))
def test_a_limit_per_move_is_fresh_at_each_move(move_s: float, margin_s: float, moves: list[float]) -> None:
    clock = Clock.fresh(TimeControl(move_s, margin_s=margin_s))
    for elapsed in moves:
        clock = clock.after(elapsed)
    assert (clock.left_s, clock.budget_s, clock.limit_s) == (None, move_s, move_s + margin_s)


def test_a_limit_per_game_by_hand() -> None:
    clock = first = Clock.fresh(TimeControl(game_s=10.0, increment_s=2.0, margin_s=0.5))
    assert (clock.left_s, clock.budget_s, clock.limit_s) == (10.0, 10.0, 10.5)
    clock = clock.after(4.0)  # 10 - 4 + 2
    assert (clock.left_s, clock.budget_s, clock.limit_s) == (8.0, 8.0, 8.5)
    clock = clock.after(0.0)  # 8 - 0 + 2: what is saved is kept, beyond the limit it began with
    assert clock.left_s == 10.0
    clock = clock.after(10.25)  # within the margin: all is used, and nothing is owed
    assert (clock.left_s, clock.limit_s) == (2.0, 2.5)
    assert first.left_s == 10.0  # a clock never changes


@given(CONTROLS, st.lists(st.floats(0.0, 1.0), max_size=20))
def test_clock_of_a_whole_game(control: TimeControl, shares: list[float]) -> None:
    """Moves that take a share of their limit: the clock is never negative and keeps all that was saved."""
    clock = Clock.fresh(control)
    assert clock.left_s == control.game_s
    for share in shares:
        before = clock.left_s
        assert before is not None
        elapsed = share * clock.limit_s
        clock = clock.after(elapsed)
        assert clock.left_s is not None
        assert clock.left_s >= control.increment_s >= 0
        forgiven = max(0.0, elapsed - before)
        assert clock.left_s == pytest.approx(before - elapsed + forgiven + control.increment_s)
        assert clock.budget_s == min(clock.left_s, control.move_s or clock.left_s)
        assert clock.limit_s == clock.budget_s + control.margin_s


@pytest.mark.parametrize(
    ("control", "spent", "elapsed", "sentence"),
    [
        (TimeControl(2.0), 0.0, 2.1, "the limit is 2 s a move, and 2.100 s passed"),
        (
            TimeControl(None, 60.0, 1.0),
            0.0,
            62.0,
            "the game limit is 60 s plus 1 s a move, 61.000 s of it were left for this move, "
            "and 62.000 s passed",
        ),
        (TimeControl(2.0, 60.0), 50.0, 2.5, "the limit is 2 s a move, and 2.500 s passed"),
        (
            TimeControl(2.0, 60.0),
            59.0,
            2.5,
            "the game limit is 60 s, 1.000 s of it were left for this move, and 2.500 s passed",
        ),
    ],
)
def test_the_sentence_names_the_limit_that_was_broken(
    control: TimeControl, spent: float, elapsed: float, sentence: str
) -> None:
    assert Clock.fresh(control).after(spent).why_late(elapsed) == sentence
