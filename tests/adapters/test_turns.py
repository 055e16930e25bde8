"""The ``turns`` protocol without processes: the object of a turn, and what replies mean."""

import pytest

from protocol.announced import AnnouncedTime
from referee.adapters.game_follower import GameFollower, OutOfStepError
from referee.adapters.turns import move_of, turn
from referee.games.catalog import parse_game


def follow(game: str, *lines: str, opening: bool = False) -> tuple[GameFollower, bool]:
    """A follower after these lines, and whether the last one gave the turn."""
    follower = GameFollower(parse_game(game), opening=opening)
    given = [follower.receive(line) for line in lines]
    return follower, given[-1]


def test_the_first_turn_of_a_game() -> None:
    follower, is_turn = follow("manchester(2,1)", "TIME;500;400", "START;South")
    assert is_turn
    assert turn(follower, AnnouncedTime(move_ms=500)) == {
        "game": "manchester(2,1)",
        "seat": "South",
        "position": {"own": [1, 1], "own_store": 0, "other": [1, 1], "other_store": 0},
        "board": "1,1,0,1,1,0",
        "state": "1,1,0,1,1,0;South;opening",
        "legal_moves": ["1", "2"],
        "last_moves": [],
        "ply": 1,
        "time_left_ms": 500,
        "opponent_time_left_ms": 400,
        "move_time_ms": 500,
    }


def test_the_second_player_may_swap_and_sees_itself_first() -> None:
    follower, is_turn = follow("manchester(3,2)", "START;North", "CHANGE;1;2,2,2,0,0,3,3,0;YOU")
    assert is_turn
    found = turn(follower, AnnouncedTime())
    assert found["seat"] == "North"
    assert found["position"] == {"own": [2, 2, 2], "own_store": 0, "other": [0, 3, 3], "other_store": 0}
    assert "SWAP" in found["legal_moves"]
    assert found["last_moves"] == [{"by": "opponent", "move": "1"}]
    assert found["time_left_ms"] is None


def test_after_an_own_swap_the_seat_is_the_other_one() -> None:
    follower, _ = follow("manchester(3,2)", "START;North", "CHANGE;1;2,2,2,0,0,3,3,0;YOU")
    follower.swap()
    assert follower.receive("CHANGE;1;0,3,3,0,0,3,3,0;YOU")
    found = turn(follower, AnnouncedTime())
    assert found["seat"] == "South"
    assert found["position"]["own"] == [0, 3, 3]
    assert [move["by"] for move in found["last_moves"]] == ["you", "opponent"]
    assert [move["move"] for move in found["last_moves"]] == ["SWAP", "1"]


def test_an_opening_is_followed() -> None:
    lines = ("START;South", "CHANGE;1;2,2,2,0,0,3,3,0;OPP", "CHANGE;2;3,0,3,0,0,3,3,0;YOU")
    follower, is_turn = follow("kalah(3,2)", *lines[:2], opening=True)
    assert not is_turn
    with pytest.raises(OutOfStepError, match="the referee says"):
        follower.receive(lines[2])


def test_a_grid_game_shows_its_squares() -> None:
    follower, _ = follow("kalamala", "START;White")
    position = turn(follower, AnnouncedTime())["position"]
    assert (position["own_mark"], position["other_mark"]) == ("w", "b")
    assert [len(row) for row in position["rows"]] == [8] * 8
    assert position["rows"][-4][2] == "w"  # c4
    assert (position["own_reserve"], position["other_reserve"]) == (4, 4)


DEEP = b'{"move": ' + b"[" * 100_000
"""More levels than the JSON reader's recursion takes."""


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        (b"3", b"3"),
        (b" 3 \r", b"3"),
        (b"SWAP", b"SWAP"),
        (b'"3"', b"3"),
        (b'{"move": "3"}', b"3"),
        (b'{"move": 3, "comment": "x"}', b"3"),
        (b'{"comment": "x"}', b'{"comment": "x"}'),
        (b'{"move": true}', b'{"move": true}'),
        (b'{"move": "3\\nMOVE;4"}', b"3 MOVE;4"),  # one reply is one line
        (b"{", b"{"),
        (b"thinking...", b"thinking..."),
        (b"", b""),
        (b"\xff", b"\xff"),
        (DEEP, DEEP),
        (b'{"move": "\\ud800"}', b"?"),
        (b'"3\\ud800"', b"3?"),
        (b'{"move": ' + b"1" * 5000 + b"}", b'{"move": ' + b"1" * 5000 + b"}"),
    ],
)
def test_a_reply_is_one_line_with_a_move(reply: bytes, move: bytes) -> None:
    assert move_of(reply) == move
