"""The judge: order of messages, clocks, verdicts.  No processes, no real time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import TimeControl
from referee.judge.events import BotExited, InputClosed, LineReceived, NotStarted, OutputClosed, StartRead
from referee.judge.match import MAX_QUEUED_LINES
from referee.judge.results import Reason
from tests.judging import Judged

START_BOARD = "7,7,7,7,7,7,7,0,7,7,7,7,7,7,7,0"
AFTER_1 = "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1"


def test_north_is_told_first_and_south_moves_first() -> None:
    judged = Judged()
    assert [(send.player, send.line) for send in judged.order] == [(1, "START;North"), (0, "START;South")]
    assert judged.match.on_turn == 0


def test_south_is_told_nothing_until_north_has_taken_its_start() -> None:
    judged = Judged(asleep=(1,))
    assert judged.said == ([], ["START;North"])
    judged.tell(StartRead(1, 3.0))
    assert judged.said == (["START;South"], ["START;North"])


def test_who_is_not_next_is_told_first() -> None:
    judged = Judged()
    judged.play("MOVE;1")  # ends in the store, but the first move gives no extra turn (K9)
    assert [(send.player, send.line) for send in judged.order[2:]] == [
        (0, f"CHANGE;1;{AFTER_1};OPP"),
        (1, f"CHANGE;1;{AFTER_1};YOU"),
    ]


def test_an_extra_turn_tells_the_opponent_first() -> None:
    judged = Judged()
    judged.play("MOVE;1", "MOVE;1")  # North's pit 1 with 7 seeds ends in its store
    last = judged.order[-2:]
    assert [(send.player, send.line[-3:]) for send in last] == [(0, "OPP"), (1, "YOU")]
    assert judged.match.on_turn == 1


def test_swap_is_told_to_the_other_alone_and_seats_change() -> None:
    judged = Judged()
    judged.play("MOVE;1", "SWAP")
    assert judged.order[-1] == (0, f"CHANGE;SWAP;{AFTER_1};YOU")
    assert judged.said[1][-1] == f"CHANGE;1;{AFTER_1};YOU"
    assert judged.match.on_turn == 0
    judged.play("MOVE;9")  # now North, and the loser of this
    assert judged.result.detail.startswith("Ada (North) lost: ")
    # END goes to the current North, then to the current South.
    assert [send.player for send in judged.order[-2:]] == [0, 1]


def test_moves_record_players_not_seats() -> None:
    judged = Judged()
    judged.play("MOVE;1", "SWAP", "MOVE;2")
    assert [(move.player, move.move) for move in judged.match.moves] == [(0, "1"), (1, "SWAP"), (0, "2")]


def test_a_played_out_game_tells_the_final_board_then_end() -> None:
    judged = Judged(game="kalah(1,1)")
    judged.play("MOVE;1")
    # The seed lands in South's store; South's side is empty, North keeps its own.
    assert judged.said[0][-2:] == ["CHANGE;1;0,1,0,1;END", "END"]
    assert (judged.result.winner, judged.result.score, judged.result.reason) == (None, (1, 1), Reason.SCORE)
    assert judged.result.detail == "draw: 1 to 1"


def test_early_output_is_the_next_reply_and_costs_no_time() -> None:
    judged = Judged()
    judged.line(1, "SWAP", at=0.125)
    judged.line(0, "MOVE;1", at=0.25)
    assert [move.move for move in judged.match.moves] == ["1", "SWAP"]
    assert judged.match.moves[1].wall_us == 0
    assert judged.match.on_turn == 0


def test_a_line_before_start_shows_that_the_bot_lives() -> None:
    judged = Judged(asleep=(0, 1))
    judged.line(1, "MOVE;1", at=1.0)
    assert judged.said == (["START;South"], ["START;North"])
    judged.line(0, "MOVE;1", at=2.0)
    assert [(move.player, move.move) for move in judged.match.moves] == [(0, "1"), (1, "1")]


def test_output_after_the_end_is_ignored() -> None:
    judged = Judged()
    judged.play("HELLO")
    said = [list(lines) for lines in judged.said]
    judged.line(1, "MOVE;1")
    assert [list(lines) for lines in judged.said] == said
    assert [line.line for line in judged.match.wire if line.direction == "from"] == ["HELLO"]


def test_too_many_unasked_lines_are_a_flood() -> None:
    judged = Judged()
    for _ in range(MAX_QUEUED_LINES):
        judged.line(1, "MOVE;1")
    assert judged.match.result is None
    judged.line(1, "MOVE;1")
    assert (judged.result.winner, judged.result.reason) == (0, Reason.FLOOD)


def test_an_exit_off_turn_loses_at_once() -> None:
    judged = Judged()
    judged.tell(BotExited(1, 0.5, 0, "", ""))
    assert (judged.result.winner, judged.result.reason, judged.result.fault) == (0, Reason.EXIT, "exited")
    assert judged.said[1] == ["START;North"]  # a bot that is gone is told nothing
    assert judged.said[0][-1] == "END"


def test_a_reply_completed_before_the_exit_counts() -> None:
    judged = Judged(game="kalah(1,1)")
    judged.play("MOVE;1")
    judged.tell(BotExited(0, 0.5, 0, "", ""))
    assert judged.result.reason is Reason.SCORE


def test_end_of_output_off_turn_counts_only_when_its_turn_comes() -> None:
    judged = Judged()
    judged.line(1, "MOVE;2")
    judged.tell(OutputClosed(1, 0.125, "MOVE"))
    assert judged.match.result is None
    judged.play("MOVE;2")  # North's early line is taken, then its turn has passed
    assert judged.match.on_turn == 0
    judged.play("MOVE;3")
    assert (judged.result.winner, judged.result.fault) == (0, "closed-output")
    assert "'MOVE' without a line feed" in judged.result.detail


def test_a_dead_mover_is_found_before_the_opponent_is_told() -> None:
    judged = Judged()
    judged.gone = (0,)
    judged.play("MOVE;2")
    assert (judged.result.winner, judged.result.fault) == (1, "closed-input")
    assert isinstance(judged.match.facts[-1].text, str)
    assert judged.match.moves[-1].move == "2"


def test_not_startable() -> None:
    judged = Judged(asleep=(0, 1))
    judged.tell(NotStarted(0, 0.0, "there is no file x"))
    assert (judged.result.winner, judged.result.reason) == (1, Reason.START)
    assert "there is no file x" in judged.result.detail


@pytest.mark.parametrize("player", [0, 1])
def test_the_start_limit_runs_for_each_bot_from_its_start_line(player: int) -> None:
    judged = Judged(asleep=(0, 1))
    began = 0.0
    if player == 0:
        began = 9.0
        judged.tell(StartRead(1, began))
    judged.wait_until(began + 10.0)
    assert judged.match.result is None
    judged.wait_until(began + 10.125)
    assert (judged.result.winner, judged.result.reason) == (1 - player, Reason.START)


# Clocks.  The first turn has 0.5 s that are not charged, a move 1 s, the margin is 0.25 s.


def test_the_clock_begins_when_start_was_taken() -> None:
    judged = Judged(asleep=(0,))
    judged.tell(StartRead(0, 5.0))
    assert judged.match.deadline == 5.0 + 0.5 + 1.0 + 0.25


@pytest.mark.parametrize(("late", "lost"), [(0.0, False), (0.0001, True)])
def test_a_line_stamped_exactly_at_the_deadline_counts(late: float, lost: bool) -> None:
    judged = Judged()
    judged.line(0, "MOVE;1", at=1.75)
    judged.line(1, "MOVE;2", at=1.75 + 1.25 + late)
    assert (judged.match.result is not None) == lost
    if lost:
        assert (judged.result.winner, judged.result.reason) == (0, Reason.TIMEOUT)


def test_only_the_first_turn_of_the_game_is_free() -> None:
    judged = Judged()
    judged.line(0, "MOVE;2", at=1.5)
    judged.line(1, "MOVE;2", at=2.0)
    assert judged.match.deadline == 2.0 + 1.25


def test_the_game_limit_is_cumulative_and_the_opponents_time_is_not_charged() -> None:
    judged = Judged(TimeControl(game_s=2.0, margin_s=0.0, setup_s=0.0))
    judged.line(0, "MOVE;2", at=1.5)
    judged.line(1, "MOVE;2", at=3.0)
    assert judged.match.deadline == 3.5
    judged.wait_until(3.75, ("MOVE;3", ""))
    assert judged.result.reason is Reason.TIMEOUT
    assert "the game limit is 2 s, 0.500 s of it were left for this move, and 0.750 s" in judged.result.detail
    assert "'MOVE;3' without a line feed" in judged.result.detail


def test_an_increment_is_added_after_the_move() -> None:
    judged = Judged(TimeControl(game_s=2.0, increment_s=1.0, margin_s=0.0, setup_s=0.0))
    judged.line(0, "MOVE;2", at=1.5)
    judged.line(1, "MOVE;2", at=1.5)
    assert judged.match.deadline == 1.5 + 1.5


def test_both_limits_hold_together() -> None:
    judged = Judged(TimeControl(move_s=1.0, game_s=1.5, margin_s=0.0, setup_s=0.0))
    assert judged.match.deadline == 1.0
    judged.line(0, "MOVE;2", at=1.0)
    judged.line(1, "MOVE;2", at=1.0)
    assert judged.match.deadline == 1.5


@given(st.lists(st.tuples(st.integers(0, 1), st.text(max_size=9), st.floats(0, 0.2)), max_size=30))
def test_whatever_comes_the_judge_never_raises_and_ends_at_most_once(
    lines: list[tuple[int, str, float]],
) -> None:
    judged = Judged()
    results = []
    for player, text, pause in lines:
        judged.line(player, text, at=judged.at + pause)
        if judged.match.result is not None:
            results.append(judged.match.result)
    assert all(result is results[0] for result in results)
    if results:
        assert results[0].winner in (0, 1)
        assert [line for line in judged.said[0] if line == "END"] == ["END"]


@given(st.lists(st.integers(0, 9), max_size=60))
def test_a_random_game_says_every_change_to_both_but_the_swap(choices: list[int]) -> None:
    judged = Judged(game="manchester(3,2)")
    for choice in choices:
        if judged.match.result is not None:
            break
        moves = judged.match.game.legal_moves(judged.match.state)
        move = judged.match.game.format_move(judged.match.state, moves[choice % len(moves)])
        judged.play("SWAP" if move == "SWAP" else f"MOVE;{move}")
    played = [move.move for move in judged.match.moves]
    for player in (0, 1):
        told = [line.split(";")[1] for line in judged.said[player] if line.startswith("CHANGE")]
        swapper = [move.player for move in judged.match.moves if move.move == "SWAP"]
        assert told == [move for move in played if move != "SWAP" or swapper != [player]]


def test_input_closed_and_lines_after_the_result_change_nothing() -> None:
    judged = Judged()
    judged.play("HELLO")
    result = judged.match.result
    judged.tell(InputClosed(1, 1.0))
    judged.tell(LineReceived(0, 1.0, "MOVE;1"))
    assert judged.match.result is result
