"""The strong player's time for each move."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.announced import AnnouncedTime
from referee.games.catalog import parse_game
from sample_bots.strong.engine import SearchLimits, SearchResult, StrongPlayer
from sample_bots.strong.time_manager import UNKNOWN_S, TimeManager, expected_moves

milliseconds = st.integers(min_value=1, max_value=10**7)


@given(milliseconds)
def test_a_limit_per_move_is_never_passed(move_ms: int) -> None:
    seconds = TimeManager.from_announced(AnnouncedTime(move_ms)).seconds_for_move(30)
    assert 0 < seconds < move_ms / 1000
    if move_ms >= 200:
        assert seconds > 0.75 * move_ms / 1000  # and most of it is used


@given(milliseconds, st.integers(0, 10_000), st.floats(1, 80), st.none() | milliseconds)
def test_a_limit_per_game_is_never_passed(
    game_ms: int, increment_ms: int, moves: float, move_ms: int | None
) -> None:
    manager = TimeManager.from_announced(AnnouncedTime(move_ms, game_ms, increment_ms))
    for _ in range(300):
        seconds = manager.seconds_for_move(moves)
        assert manager.left_s is not None
        assert 0 <= seconds <= manager.left_s
        if move_ms is not None:
            assert seconds < move_ms / 1000
        manager = manager.after_move(seconds)
    assert seconds > 0 or not increment_ms


@pytest.mark.parametrize("game_ms", [3_000, 60_000])
def test_a_long_game_is_not_lost_by_the_cost_of_moves(game_ms: int) -> None:
    """300 moves where 30 were expected at any time, 2 ms each beyond the search; the margin is not needed."""
    manager = TimeManager.from_announced(AnnouncedTime(game_ms=game_ms))
    spent = 0.0
    for _ in range(300):
        seconds = manager.seconds_for_move(30) + 0.002
        spent += seconds
        manager = manager.after_move(seconds).with_clock(max(0, int(game_ms - spent * 1000)))
    assert spent < game_ms / 1000


def test_a_game_of_the_expected_length_uses_most_of_its_time() -> None:
    manager = TimeManager.from_announced(AnnouncedTime(game_ms=60_000))
    for moves in range(40, 0, -1):
        manager = manager.after_move(manager.seconds_for_move(moves))
    assert manager.left_s is not None
    assert 0.1 < manager.left_s < 26


def test_time_lines_and_missing_limits() -> None:
    manager = TimeManager.from_announced(AnnouncedTime(game_ms=60_000)).with_clock(1_000)
    assert manager.seconds_for_move(40) < 0.05
    per_move = TimeManager.from_announced(AnnouncedTime(1_000))
    assert per_move.with_clock(1_000) == per_move
    unknown = TimeManager.from_announced(AnnouncedTime())
    assert unknown.with_clock(10_000).seconds_for_move(40) < 0.3
    assert unknown.seconds_for_move(40) == unknown.after_move(100).seconds_for_move(40) == UNKNOWN_S


class Thinker:
    """An engine that takes exactly the time of its limit."""

    def __init__(self) -> None:
        self.limits_of_moves: list[SearchLimits] = []
        self.now = 0.0

    def search(self, state: object, limits: SearchLimits) -> SearchResult:
        assert limits.seconds is not None
        self.limits_of_moves.append(limits)
        self.now += limits.seconds
        return SearchResult("move", 0, 1, 1, False)

    def clear(self) -> None:
        raise AssertionError


def test_the_player_counts_its_own_time() -> None:
    game = parse_game("manchester")
    state = game.initial_state()
    thinker = Thinker()
    player = StrongPlayer(
        thinker, TimeManager.from_announced(AnnouncedTime(game_ms=10_000)), nodes=77, now=lambda: thinker.now
    )
    for _ in range(200):  # far more than such games have
        assert player(game, state) == "move"
    assert thinker.now < 10
    assert {limits.nodes for limits in thinker.limits_of_moves} == {77}
    player.on_time(20_000, 1)
    player(game, state)
    assert thinker.limits_of_moves[-1].seconds == pytest.approx(
        (19.96 - 0.002 * (300 - 200)) / expected_moves(game, state)
    )
    manager = TimeManager.from_announced(AnnouncedTime(10_000))
    bounded = StrongPlayer(thinker, manager, longest_s=0.25, now=lambda: thinker.now)
    bounded(game, state)
    assert thinker.limits_of_moves[-1] == SearchLimits(0.25)


def test_expected_moves() -> None:
    kalah = parse_game("manchester")
    start = kalah.initial_state()
    assert 40 < expected_moves(kalah, start) < 60
    late = kalah.parse_state("0,0,0,0,0,1,0,49,0,0,0,0,0,0,1,47")
    assert expected_moves(kalah, late) < 6
