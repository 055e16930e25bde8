"""The judge: order of messages, clocks, verdicts and their precedence.  No processes, no real time."""

import gc
import weakref
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import TimeControl
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OutputBlocked,
    OutputClosed,
    Send,
    Sent,
    StartRead,
)
from referee.judge.match import MAX_QUEUED_LINES, PRECEDENCE, carry_out
from referee.judge.results import Reason
from tests.support.judging import CONTROL, Judged

AFTER_1 = "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1"


def test_a_match_is_freed_without_the_garbage_collector() -> None:
    """Thousands of games that wait for the collector make each later one slower."""
    gc.disable()
    try:
        match = weakref.ref(Judged().match)
        assert match() is None
    finally:
        gc.enable()


# The order of messages.


def test_north_gets_start_first_and_south_moves_first() -> None:
    judged = Judged(asleep=(1,))
    assert judged.said == ([], ["START;North"])
    judged.tell(StartRead(1, 3.0))
    assert [(send.player, send.line) for send in judged.order] == [(1, "START;North"), (0, "START;South")]
    assert judged.match.on_turn == 0


def test_the_player_that_is_not_next_gets_a_change_first() -> None:
    judged = Judged()
    judged.play("MOVE;1")  # ends in the store, but the first move gives no extra turn (K9)
    assert [(send.player, send.line) for send in judged.order[2:]] == [
        (0, f"CHANGE;1;{AFTER_1};OPP"),
        (1, f"CHANGE;1;{AFTER_1};YOU"),
    ]
    judged.play("MOVE;1")  # North's pit 1 with 7 seeds ends in its store: an extra turn
    assert [(send.player, send.line[-3:]) for send in judged.order[-2:]] == [(0, "OPP"), (1, "YOU")]
    assert judged.match.on_turn == 1


def test_a_swap_is_sent_to_the_other_player_alone_and_seats_change() -> None:
    judged = Judged()
    judged.play("MOVE;1", "SWAP")
    assert judged.order[-1] == (0, f"CHANGE;SWAP;{AFTER_1};YOU")
    assert judged.said[1][-1] == f"CHANGE;1;{AFTER_1};YOU"
    assert judged.match.on_turn == 0
    judged.play("MOVE;9")  # now North, and the loser of this
    assert [(move.player, move.move) for move in judged.match.moves] == [(0, "1"), (1, "SWAP")]
    assert judged.result.detail.startswith("Ada (North) lost: ")
    # END goes to the current North, then to the current South.
    assert [send.player for send in judged.order[-2:]] == [0, 1]


def test_a_finished_game_sends_the_final_board_then_end() -> None:
    judged = Judged(game="kalah(1,1)")
    judged.play("MOVE;1")
    # The seed lands in South's store; South's side is empty, North keeps its own.
    assert judged.said[0][-2:] == ["CHANGE;1;0,1,0,1;END", "END"]
    assert (*judged.verdict, judged.result.score) == (None, Reason.SCORE, (1, 1))
    assert judged.result.detail == "draw: 1 to 1"
    judged.tell(BotExited(0, 0.5, 0, "", ""))  # the reply was complete before
    assert judged.result.reason is Reason.SCORE


def test_early_output_is_the_next_reply_and_costs_no_time() -> None:
    judged = Judged()
    judged.line(1, "SWAP", at=0.125)
    judged.line(0, "MOVE;1", at=0.25)
    assert [move.move for move in judged.match.moves] == ["1", "SWAP"]
    assert judged.match.moves[1].wall_us == 0
    assert judged.match.on_turn == 0


def test_an_illegal_move_that_came_before_its_turn_is_explained_by_that() -> None:
    judged = Judged()
    judged.play("MOVE;7")
    judged.line(0, "MOVE;7")
    judged.play("MOVE;3")
    assert judged.verdict == (1, Reason.ILLEGAL)
    sent, remark = judged.result.detail.split(". ")
    assert sent == "Ada (South) lost: it sent 'MOVE;7': pit 7 of South is empty"
    assert remark.startswith("The line came before this turn began")


def test_an_answer_to_start_is_not_too_early() -> None:
    """The line is the first sign that START was read; it waits for the turn, which begins at once."""
    judged = Judged(asleep=(0,))
    judged.line(0, "MOVE;9", at=0.5)
    assert judged.verdict == (1, Reason.ILLEGAL)
    assert judged.result.detail.endswith("pits are numbered 1 to 7")


def test_a_line_before_start_was_read_shows_that_the_bot_is_alive() -> None:
    judged = Judged(asleep=(0, 1))
    judged.line(1, "MOVE;1", at=1.0)
    assert judged.said == (["START;South"], ["START;North"])
    judged.line(0, "MOVE;1", at=2.0)
    assert [(move.player, move.move) for move in judged.match.moves] == [(0, "1"), (1, "1")]


def test_a_bot_that_wrote_before_its_start_was_sent_is_alive_as_soon_as_it_is_sent() -> None:
    judged = Judged(asleep=(0, 1))
    judged.line(0, "MOVE;1", at=0.5)
    judged.tell(StartRead(1, 1.0))
    assert [(send.player, send.line) for send in judged.order[:2]] == [(1, "START;North"), (0, "START;South")]
    assert [(move.player, move.move) for move in judged.match.moves] == [(0, "1")]


def test_lines_after_the_end_are_not_sent() -> None:
    judged = Judged()
    sent: list[str] = []

    def write(send: Send) -> Event | None:
        sent.append(send.line)
        return BotExited(send.player, 0.5, 1, "", "") if len(sent) == 1 else Sent(send.player, 0.5, send.line)

    carry_out(judged.match, judged.match.handle(LineReceived(0, 0.25, "MOVE;2")), write)
    assert judged.verdict == (1, Reason.EXIT)
    assert [line.partition(";")[0] for line in sent] == ["CHANGE", "END"]


def test_events_after_the_end_are_ignored() -> None:
    judged = Judged()
    judged.play("HELLO")
    result, said = judged.match.result, [list(lines) for lines in judged.said]
    judged.line(1, "MOVE;1")
    judged.tell(InputClosed(1, 1.0))
    judged.tell(LineReceived(0, 1.0, "MOVE;1"))
    assert judged.match.result is result
    assert [list(lines) for lines in judged.said] == said
    assert [line.line for line in judged.match.wire if line.direction == "from"] == ["HELLO"]


def test_too_many_early_lines_are_a_flood() -> None:
    judged = Judged()
    for _ in range(MAX_QUEUED_LINES):
        judged.line(1, "MOVE;1")
    assert judged.match.result is None
    judged.line(1, "MOVE;1")
    assert judged.verdict == (0, Reason.FLOOD)


def test_an_exit_off_turn_loses_at_once() -> None:
    judged = Judged()
    judged.tell(BotExited(1, 0.5, 0, "", ""))
    judged.tell(LineReceived(0, 0.5, "HELLO"))  # the first fault stands
    assert (*judged.verdict, judged.result.fault) == (0, Reason.EXIT, "exited")
    assert judged.said[1] == ["START;North"]  # nothing is sent to a bot that is gone
    assert judged.said[0][-1] == "END"


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


def test_an_event_that_is_reported_again_is_ignored() -> None:
    judged = Judged(asleep=(0,))
    judged.tell(StartRead(1, 0.125))
    judged.tell(StartRead(0, 0.25))
    judged.tell(StartRead(0, 0.375))
    judged.tell(OutputClosed(1, 0.5, "MOVE"))
    judged.tell(OutputClosed(1, 0.625, "again"))
    facts = [(fact.player, fact.name, fact.at_us) for fact in judged.match.facts]
    assert facts == [(1, "Taken", 0), (0, "Taken", 250_000), (1, "OutputClosed", 500_000)]
    judged.line(0, "MOVE;1", 0.75)
    assert "'MOVE' without a line feed" in judged.result.detail


def test_a_dead_mover_is_found_before_the_opponent_gets_the_move() -> None:
    judged = Judged()
    judged.gone = (0,)
    judged.play("MOVE;2")
    assert (judged.result.winner, judged.result.fault) == (1, "closed-input")
    assert judged.match.moves[-1].move == "2"


def test_a_bot_that_cannot_be_started_loses() -> None:
    judged = Judged(asleep=(0, 1))
    judged.tell(NotStarted(0, 0.0, "there is no file x"))
    assert judged.verdict == (1, Reason.START)
    assert "there is no file x" in judged.result.detail


@pytest.mark.parametrize("player", [0, 1])
def test_two_bots_that_cannot_be_started_draw_whichever_was_tried_first(player: int) -> None:
    judged = Judged(asleep=(0, 1))
    whys = ("no file x", "no file y")
    judged.tell(NotStarted(player, 0.0, whys[player], whys[1 - player]))
    assert judged.verdict == (None, Reason.START)
    first, second = judged.match.names
    assert judged.result.detail == (
        f"neither bot could be started: {first} (South): no file x; {second} (North): no file y"
    )
    assert judged.result.fault == "not-runnable"
    assert not any(line.line == "END" for line in judged.match.wire)


# Clocks.  The first turn has 0.5 s that are not charged, a move 1 s, the margin is 0.25 s.


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
    assert judged.verdict == (1 - player, Reason.START)


@pytest.mark.parametrize("ready_at", [9.0, 12.0])
def test_the_time_for_making_sandboxes_is_not_part_of_the_start_limit(ready_at: float) -> None:
    judged = Judged(asleep=(1,), ready_at=ready_at)
    assert judged.match.deadline == judged.match.turn_began + 10.0 == ready_at + 10.0
    judged.tell(StartRead(1, ready_at + 10.0))
    assert judged.match.result is None


def test_a_bot_that_ends_before_start_does_so_however_late_it_is_sent() -> None:
    judged = Judged(gone=(1,), ready_at=12.0)
    assert judged.result.fault == "closed-input"


def test_the_clock_begins_when_start_was_read_and_only_the_first_turn_has_setup_time() -> None:
    judged = Judged(asleep=(0,))
    judged.tell(StartRead(0, 5.0))
    assert judged.match.deadline == 5.0 + 0.5 + 1.0 + 0.25
    judged.line(0, "MOVE;2", at=6.5)
    judged.line(1, "MOVE;2", at=7.0)
    assert judged.match.deadline == 7.0 + 1.25


@pytest.mark.parametrize(("late", "lost"), [(0.0, False), (0.0001, True)])
def test_a_line_stamped_exactly_at_the_deadline_counts(late: float, lost: bool) -> None:
    judged = Judged()
    judged.line(0, "MOVE;1", at=1.75)
    judged.line(1, "MOVE;2", at=1.75 + 1.25 + late)
    assert (judged.match.result is not None) == lost
    if lost:
        assert judged.verdict == (0, Reason.TIMEOUT)


@pytest.mark.parametrize("ponder", ["measure", "suspend"])
def test_the_setup_time_is_that_of_the_first_turn_after_an_opening(ponder: str) -> None:
    """After the opening 2 the second player is on turn."""
    judged = Judged(replace(CONTROL, ponder=ponder), opening="2")
    judged.line(1, "MOVE;1", 1.75)
    assert (judged.match.moves[0].charged_us, judged.match.on_turn) == (1_250_000, 0)
    assert judged.match.deadline == 1.75 + (1.75 if ponder == "suspend" else 1.25)
    judged.line(0, "MOVE;1", judged.match.deadline)
    assert judged.match.result is None


def test_the_game_limit_is_cumulative_and_the_opponents_time_is_not_charged() -> None:
    judged = Judged(TimeControl(game_s=2.0, margin_s=0.0, setup_s=0.0))
    judged.line(0, "MOVE;2", at=1.5)
    judged.line(1, "MOVE;2", at=3.0)
    assert judged.match.deadline == 3.5
    judged.wait_until(3.75, ("MOVE;3", ""))
    assert judged.result.reason is Reason.TIMEOUT
    assert "the game limit is 2 s, 0.500 s of it were left for this move, and 0.750 s" in judged.result.detail
    assert "'MOVE;3' without a line feed" in judged.result.detail


@pytest.mark.parametrize(
    ("control", "at", "left_s"),
    [
        (TimeControl(game_s=2.0, increment_s=1.0, margin_s=0.0, setup_s=0.0), 1.5, 1.5),
        (TimeControl(move_s=1.0, game_s=1.5, margin_s=0.0, setup_s=0.0), 1.0, 0.5),
    ],
    ids=["an increment is added after the move", "both limits hold together"],
)
def test_the_deadline_of_the_second_turn(control: TimeControl, at: float, left_s: float) -> None:
    judged = Judged(control)
    judged.line(0, "MOVE;2", at=at)
    judged.line(1, "MOVE;2", at=at)
    assert judged.match.deadline == at + left_s


# Precedence: one event may show several faults.

DEADLINE = 0.5 + 1.0 + 0.25
"""Of the first turn, see tests/support/judging.py."""
LATE = DEADLINE + 0.125
FAULTS: list[tuple[Reason, Event]] = [
    (Reason.MEMORY, LimitPassed(0, DEADLINE, "memory", 600, 512)),
    (Reason.MEMORY, BotExited(0, DEADLINE, 1, "", "MemoryError")),
    (Reason.FILES, BotExited(0, DEADLINE, 1, "", "OSError: [Errno 30] Read-only file system: 'a'")),
    (Reason.EXIT, BotExited(0, DEADLINE, 1, "", "")),
    (Reason.EXIT, OutputClosed(0, DEADLINE, "")),
    (Reason.EXIT, InputClosed(0, DEADLINE)),
    (Reason.FLOOD, LineTooLong(0, DEADLINE, "xxxx")),
    (Reason.BLOCKED, OutputBlocked(0, DEADLINE)),
    (Reason.ILLEGAL, LineReceived(0, DEADLINE, "MOVE;8")),
    # A line must be a message before it can be a move.
    *(
        (Reason.PROTOCOL, LineReceived(0, DEADLINE, line))
        for line in ("HELLO", "MOVE;0", "MOVE;99999999999", "MOVE;08x", "MOVE;8 ", "SWAP")
    ),
]
"""Reason -> event of player 0, on whose turn it comes just in time."""


def test_every_fault_has_its_place_after_start_and_timeout() -> None:
    assert set(PRECEDENCE) == set(Reason) - {Reason.SCORE, Reason.TURN_CAP}
    assert PRECEDENCE[:2] == (Reason.START, Reason.TIMEOUT)
    assert PRECEDENCE[2] is Reason.CPU  # of the bot off turn; tests/judge/test_fair_clock.py has it
    assert {reason for reason, _ in FAULTS} == set(PRECEDENCE[3:])
    assert PRECEDENCE.index(Reason.PROTOCOL) < PRECEDENCE.index(Reason.ILLEGAL)


@pytest.mark.parametrize(("reason", "event"), FAULTS)
def test_precedence(reason: Reason, event: Event) -> None:
    judged = Judged()
    judged.tell(event)
    assert judged.verdict == (1, reason)
    judged = Judged()
    judged.tell(event._replace(at=LATE))
    assert judged.verdict == (1, Reason.TIMEOUT)
    # Of the other bot: player 0, which is on turn and over time, had lost before.
    judged = Judged()
    judged.tell(event._replace(player=1, at=LATE))  # type: ignore[call-arg]
    assert judged.verdict == (1, Reason.TIMEOUT)
    # A bot that did not read START in time had lost before it did anything else.
    judged = Judged(asleep=(1,))
    judged.tell(event._replace(player=1, at=10.125))  # type: ignore[call-arg]
    assert judged.verdict == (0, Reason.START)


# Random games.


@given(st.lists(st.tuples(st.integers(0, 1), st.text(max_size=9), st.floats(0, 0.2)), max_size=30))
def test_any_lines_give_at_most_one_verdict(lines: list[tuple[int, str, float]]) -> None:
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
def test_a_random_game_sends_every_change_to_both_but_the_swap(choices: list[int]) -> None:
    judged = Judged(game="manchester(3,2)")
    for choice in choices:
        if judged.match.result is not None:
            break
        moves = judged.match.game.legal_moves(judged.match.state)
        move = judged.match.game.format_move(judged.match.state, moves[choice % len(moves)])
        judged.play("SWAP" if move == "SWAP" else f"MOVE;{move}")
    played = [move.move for move in judged.match.moves]
    swapper = [move.player for move in judged.match.moves if move.move == "SWAP"]
    for player in (0, 1):
        sent = [line.split(";")[1] for line in judged.said[player] if line.startswith("CHANGE")]
        assert sent == [move for move in played if move != "SWAP" or swapper != [player]]
