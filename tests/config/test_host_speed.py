"""Speed of a host, and time limits that are scaled by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.perft import perft
from referee.judge.clock import TimeControl
from tournaments.config.host_speed import DEPTH, GAME, POSITIONS, REPETITIONS, measure, scaled


def test_the_fastest_repetition_counts() -> None:
    lengths = [4.0, 2.0, *[8.0] * (REPETITIONS - 2)]
    readings = iter([reading for length in lengths for reading in (100.0, 100.0 + length)])
    assert measure(lambda: next(readings)) == POSITIONS / 2
    assert list(readings) == []
    game = parse_game(GAME)
    assert perft(game, game.initial_state(), DEPTH) == POSITIONS
    assert 1e3 < measure() < 1e9


CONTROL = TimeControl(
    1.0, 60.0, increment_s=0.1, margin_s=0.05, start_s=30, setup_s=0.75, clock="wall", ponder="suspend"
)


def test_a_host_of_half_the_speed_gives_twice_the_time() -> None:
    assert scaled(CONTROL, 600_000.0, 300_000.0) == TimeControl(
        2.0, 120.0, increment_s=0.2, margin_s=0.05, start_s=60, setup_s=1.5, clock="wall", ponder="suspend"
    )
    assert scaled(TimeControl(move_s=3.0), 1.0, 3.0).move_s == 1.0
    assert scaled(TimeControl(game_s=3.0), 1.0, 3.0) == TimeControl(game_s=1.0, setup_s=0.25, start_s=10.0)


@pytest.mark.parametrize("speeds", [(None, 1.0), (1.0, None), (None, None), (7.0, 7.0)])
def test_without_two_speeds_that_differ_nothing_changes(speeds: tuple[float | None, float | None]) -> None:
    assert scaled(CONTROL, *speeds) == CONTROL


@given(st.floats(1e4, 1e7), st.floats(1e4, 1e7))
def test_a_bot_can_compute_as_much(reference: float, host: float) -> None:
    """Positions within a move are the same on both, but for what rounding to a microsecond takes."""
    move_s = scaled(CONTROL, reference, host).move_s
    assert move_s is not None
    assert move_s * host == pytest.approx(1.0 * reference, abs=host * 1e-6)
