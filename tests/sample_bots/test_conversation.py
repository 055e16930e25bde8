"""The sample bots' side of the protocol, in this process: whole games, openings, clocks, bad lines."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from protocol.errors import RemoteProtocolError
from referee.adapters.game_follower import OutOfStepError
from referee.games.base import Side
from referee.games.catalog import AnyGame, parse_game
from sample_bots import first_move, greedy, swap_happy
from sample_bots.conversation import Choose, Conversation
from sample_bots.random_bot import random_mover

KALAMALA = parse_game("kalamala")
SMALL = parse_game("manchester(3,3)")


def announcements(game: AnyGame, moves: Sequence[str], mover: bool) -> tuple[list[str], Any]:
    """The lines that announce moves, to the side that is next after them or to the other; the last state."""
    state, lines = game.initial_state(), []
    for number, text in enumerate(moves, 1):
        state = game.apply(state, game.parse_move(state, text))
        following = "YOU" if mover and number == len(moves) else "OPP"
        lines.append(f"CHANGE;{text};{game.board_text(state)};{following}")
    return lines, state


def replies_to(game: AnyGame, lines: Sequence[str], *, opening: bool = False) -> list[str | None]:
    conversation = Conversation(game, first_move.choose, opening=opening)
    return [conversation.receive(line) for line in lines]


OPENINGS = [
    (KALAMALA, ["a1"]),
    (KALAMALA, ["a1", "h8"]),
    (KALAMALA, ["a1", "h8", "a2", "h7", "a3"]),
    (SMALL, ["1"]),
    (SMALL, ["3", "1"]),
    (parse_game("kalah(6,4)"), ["3", "1", "2"]),  # an extra turn
]


@pytest.mark.parametrize("start_first", [True, False])
@pytest.mark.parametrize(("game", "moves"), OPENINGS)
def test_opening_of_moves(game: AnyGame, moves: list[str], start_first: bool) -> None:
    lines, state = announcements(game, moves, mover=True)
    mover = game.to_move(state)
    reply = f"MOVE;{game.format_move(state, first_move.choose(game, state))}"
    start = f"START;{game.seats(state)[mover]}"
    received = [start, *lines] if start_first else [*lines, start]
    assert replies_to(game, received, opening=True) == [None] * len(lines) + [reply]
    # The other bot does not reply until its turn comes.
    lines, _ = announcements(game, moves, mover=False)
    state = game.apply(state, first_move.choose(game, state))
    start = f"START;{game.seats(state)[mover.other]}"
    received = [start, *lines] if start_first else [*lines, start]
    if game.to_move(state) is not mover:
        received.append(f"CHANGE;{reply.removeprefix('MOVE;')};{game.board_text(state)};YOU")
        expected = [None] * (len(lines) + 1)
        following = f"MOVE;{game.format_move(state, first_move.choose(game, state))}"
        assert replies_to(game, received, opening=True) == [*expected, following]
    else:
        assert replies_to(game, received, opening=True) == [None] * (len(lines) + 1)


def test_the_second_player_follows_an_opening_without_the_variable() -> None:
    lines, state = announcements(KALAMALA, ["a1", "h8", "a2"], mover=True)
    reply = f"MOVE;{first_move.choose(KALAMALA, state)}"
    assert replies_to(KALAMALA, ["START;Black", *lines]) == [None, None, None, reply]


POSITION = f"{'/'.join(['.' * 8] * 4)}/..wwwwbb/{'/'.join(['.' * 8] * 3)}:00"


@pytest.mark.parametrize("start_first", [True, False])
@pytest.mark.parametrize(
    ("side", "seat", "reply"), [("w", "White", "MOVE;c4-a4"), ("b", "Black", "MOVE;f4-x")]
)
def test_opening_that_is_a_position(side: str, seat: str, reply: str, start_first: bool) -> None:
    for us in (True, False):
        ours = seat if us else "Black" if seat == "White" else "White"
        lines = [f"START;{ours}", f"CHANGE;OPENING;{POSITION}:{side};{'YOU' if us else 'OPP'}"]
        received = replies_to(KALAMALA, lines if start_first else lines[::-1], opening=True)
        assert received[0] is None
        state = KALAMALA.parse_state(f"{POSITION}:{side}")
        expected = f"MOVE;{first_move.choose(KALAMALA, state)}"
        assert received[1] == (expected if us else None)


def test_position_with_all_that_a_state_remembers() -> None:
    lines = ["START;North", "CHANGE;OPENING;3,3,3,0,0,4,4,1;North;reply;YOU"]
    conversation = Conversation(SMALL, lambda game, state: game.swap, opening=True)
    assert [conversation.receive(line) for line in lines] == [None, "SWAP"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["START;White", "CHANGE;OPENING;nonsense;YOU"], "cannot begin with"),
        (["START;White", f"CHANGE;OPENING;{POSITION}:b;YOU"], "should be OPP"),
        (["START;White", f"CHANGE;OPENING;{POSITION}:w;END"], "should be YOU"),
        (["START;White", f"CHANGE;OPENING;{POSITION}:w;"], "should be YOU"),
        ([f"CHANGE;OPENING;{POSITION}:w;YOU", "START;Black"], "Black is not next"),
        (["START;White", f"CHANGE;a1;{POSITION}:b;OPP"], "the referee says"),
    ],
)
def test_openings_that_cannot_be(lines: list[str], message: str) -> None:
    with pytest.raises(OutOfStepError, match=message):
        replies_to(KALAMALA, lines, opening=True)


def test_after_the_first_turn_nothing_is_an_opening() -> None:
    conversation = Conversation(KALAMALA, first_move.choose)
    assert conversation.receive("START;White") == "MOVE;a1"
    state = KALAMALA.apply(KALAMALA.initial_state(), "a1")
    assert conversation.receive(f"CHANGE;a1;{KALAMALA.board_text(state)};OPP") is None
    state = KALAMALA.apply(state, "a2")
    with pytest.raises(OutOfStepError, match="YOU"):
        conversation.receive(f"CHANGE;a2;{KALAMALA.board_text(state)};OPP")
    with pytest.raises(OutOfStepError, match="OPENING"):
        conversation.receive(f"CHANGE;OPENING;{POSITION}:w;YOU")


@pytest.mark.parametrize("opening", [True, False])
def test_time_lines_change_nothing(opening: bool) -> None:
    lines, state = announcements(KALAMALA, ["a1", "h8", "a2"], mover=True)
    timed = ["TIME;600000;600000", "START;Black"]
    for line in lines:
        timed += ["TIME;0;123456", line]
    reply = f"MOVE;{first_move.choose(KALAMALA, state)}"
    assert replies_to(KALAMALA, timed, opening=opening) == [None] * 7 + [reply]
    assert replies_to(KALAMALA, ["TIME;5;5", "START;White"]) == [None, "MOVE;a1"]


@pytest.mark.parametrize("line", ["TIME", "TIME;1", "TIME;1;2;3", "TIME;-1;2", "TIME;1.5;2", "TIME;;"])
def test_bad_time_lines(line: str) -> None:
    with pytest.raises(RemoteProtocolError):
        replies_to(KALAMALA, [line])


AFTER_1 = "3,3,3,0,0,4,4,1"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["START;North", f"CHANGE;1;{AFTER_1[:-1]}2;YOU"], f"but it should be {AFTER_1};YOU"),
        (["START;North", f"CHANGE;1;{AFTER_1};END"], "but it should be"),
        (["START;North", f"CHANGE;7;{AFTER_1};YOU"], "cannot be played here"),
        (["START;North", f"CHANGE;SWAP;{AFTER_1};YOU"], "cannot be played here"),
        (["START;West"], "no seat 'West'"),
    ],
)
def test_another_game_than_the_referees(lines: list[str], message: str) -> None:
    with pytest.raises(OutOfStepError, match=message):
        replies_to(SMALL, lines)


GAMES = ["manchester", "kalah(6,4)", "bga(4,3)+pie", "manchester(2,5)", "manchester(9,2)", "kalamala+cap=40"]


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("choose", [first_move.choose, greedy.choose, swap_happy.choose, random_mover(3)])
def test_whole_games(spec: str, side: Side, choose: Choose) -> None:
    """The opponent plays random moves; the announcements are those of the rule book."""
    game = parse_game(spec)
    for seed in (1, 2):
        dice = random.Random(seed)
        conversation = Conversation(game, choose)
        state = game.initial_state()
        reply = conversation.receive(f"START;{game.seats(state)[side]}")
        while game.outcome(state) is None:
            swaps = False
            if game.to_move(state) is side:
                assert reply is not None
                swaps = reply == "SWAP"
                move = game.swap if swaps else game.parse_move(state, reply.removeprefix("MOVE;"))
            else:
                assert reply is None
                move = dice.choice(game.legal_moves(state))
            text = game.format_move(state, move)
            state = game.apply(state, move)
            following = "YOU" if game.to_move(state) is side else "OPP"
            if game.outcome(state) is not None:
                following = "END"
            reply = None
            if not swaps:
                reply = conversation.receive(f"CHANGE;{text};{game.board_text(state)};{following}")
        assert reply is None
        conversation.receive("END")
        assert conversation.over
