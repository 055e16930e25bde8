"""The comparison of charged times with and without people in `make load`."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.load.charges import LEAST_MOVES, Charges, Period, compare_charges, median_ratio
from referee.judge.record_rows import MoveRecord
from referee.judge.results import GameRecord
from tests.support.builders import make_record

START = datetime(2026, 11, 24, 12, tzinfo=UTC)
PERIODS = [
    Period(START, START + timedelta(seconds=10), with_people=False),
    Period(START + timedelta(seconds=10), START + timedelta(seconds=20), with_people=True),
]


def game(at_s: float, charged_us: int, moves: int = LEAST_MOVES, duration_s: float = 1.0) -> GameRecord:
    return make_record(
        moves=[MoveRecord(0, "1", 10 * charged_us, charged_us)] * moves,
        started_at=(START + timedelta(seconds=at_s)).isoformat(timespec="milliseconds"),
        duration_us=round(duration_s * 1e6),
    )


def test_charged_times_are_compared_for_each_bot() -> None:
    games = [game(0, 1000), game(5, 2000), game(12, 3000)]
    charges = compare_charges(games, PERIODS)
    assert charges == [Charges("one", (2 * LEAST_MOVES, LEAST_MOVES), (1500.0, 3000.0))]
    assert charges[0].ratio == 2.0
    assert median_ratio(charges) == 2.0


@pytest.mark.parametrize(
    "left_out",
    [
        game(9.5, 3000),  # over the border of two periods
        game(19.5, 3000),  # not over at the end
        game(-1, 3000, duration_s=0.5),
        game(11, 3000, moves=LEAST_MOVES - 1),
    ],
)
def test_games_that_belong_to_no_period_are_left_out(left_out: GameRecord) -> None:
    assert compare_charges([game(0, 1000), left_out], PERIODS) == []
    assert median_ratio([]) is None


def test_moves_that_are_too_short_to_be_measured_are_not_compared() -> None:
    assert compare_charges([game(0, 100), game(12, 300)], PERIODS) == []
