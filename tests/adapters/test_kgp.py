"""The Kalah Game Protocol without sockets: each rule of shared facts, as lines in and lines out."""

import pytest

from protocol.announced import AnnouncedTime
from referee.adapters.kgp import Change, Command, KgpSession, board_text, parse_line, quoted
from referee.adapters.kgp_server import time_for_move
from referee.games.base import Side
from referee.games.catalog import parse_game
from referee.games.layout import PitBoard


def sent(session: KgpSession) -> list[str]:
    lines, session.out = session.out, []
    return lines


def ready() -> KgpSession:
    session = KgpSession()
    assert session.receive("1 mode freeplay") is Change.READY
    sent(session)
    return session


def simple() -> KgpSession:
    """A session in the mode ``simple`` that waits for a move."""
    session = KgpSession()
    assert session.receive("mode simple") is Change.READY
    sent(session)
    session.ask("<3,0,0,1,1,1,1,1,1>")
    assert sent(session) == ["state <3,0,0,1,1,1,1,1,1>"]
    return session


def asked() -> tuple[KgpSession, str]:
    """A session that waits for a move, and the id of the position."""
    session = ready()
    session.ask("<3,0,0,1,1,1,1,1,1>")
    (line,) = sent(session)
    number, name, _ = line.split()
    assert name == "state"
    return session, number


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("mode freeplay", Command(None, None, "mode", ("freeplay",))),
        ("7 mode freeplay\r", Command(7, None, "mode", ("freeplay",))),
        ("7@4 move 3", Command(7, 4, "move", ("3",))),
        (f"{2**64 - 1}@{10**19} ping", Command(2**64 - 1, 10**19, "ping", ())),
        ("@4 yield", Command(None, 4, "yield", ())),
        ('set info:name "a \\"quoted\\" name"', Command(None, None, "set", ("info:name", 'a "quoted" name'))),
        ("  PING  ", Command(None, None, "ping", ())),
        ("", None),
        (" 7  move\t3 ", Command(7, None, "move", ("3",))),
        ('set info:name "no end', Command(None, None, "set", ("info:name", '"no', "end"))),
        ('"quoted" name', None),
        ("9" * 5000 + " ping", None),  # no id of any client, and too long a number for int()
        ("@ move 3", None),
        ("7@ move 3", None),
        ("\N{FULLWIDTH DIGIT SEVEN} move 3", None),
    ],
)
def test_a_line_is_a_command_or_ignored(line: str, command: Command | None) -> None:
    assert parse_line(line) == command


def test_a_text_survives_quoting() -> None:
    text = 'a "quoted" \\ text\nof two lines'
    assert parse_line(f"error {quoted(text)}") == Command(None, None, "error", (text,))


def test_the_server_begins_and_accepts_freeplay() -> None:
    session = KgpSession()
    assert sent(session) == ["kgp 1 0 1"]
    assert session.receive('1 set info:name "x"') is None
    assert session.receive("3 mode freeplay") is Change.READY
    assert sent(session) == ["2@3 ok"]
    assert session.receive("mode freeplay") is None
    assert sent(session) == ['4 error "the mode was chosen before"']
    session.leave()
    assert sent(session) == ["goodbye"]


def test_an_open_position_is_stopped_at_the_end_of_the_game() -> None:
    session, number = asked()
    session.receive(f"@{number} move 3")
    session.leave()
    assert [line.split()[-1] for line in sent(session)] == ["stop", "goodbye"]
    assert session.receive(f"@{number} yield") is None


@pytest.mark.parametrize("line", ['1 mode "freeplay"', "MODE Freeplay", "mode simple"])
def test_a_mode_may_be_quoted_and_in_capital_letters(line: str) -> None:
    assert KgpSession().receive(line) is Change.READY


def test_lines_before_the_mode_do_no_harm() -> None:
    session = KgpSession()
    for line in (
        "",
        "ok",
        "yield",
        "move 3",
        "pong",
        "set time:clock 3",
        "kgp 1 0 0",
        "init",
        "stop",
        "@4 stop",
    ):
        assert session.receive(line) is None


def test_another_mode_ends_the_conversation() -> None:
    session = KgpSession()
    assert session.receive("1 mode verbatim") is Change.GONE
    assert sent(session)[1:] == ['2@1 error "the modes here are freeplay and simple"', "goodbye"]


def test_the_last_move_counts_and_yield_makes_it_final() -> None:
    session, number = asked()
    assert session.receive(f"@{number} move 1") is None
    assert session.receive(f"11@{number} move 3") is None
    assert session.receive(f"@{number} yield") is Change.FINAL
    assert session.stop() == 3
    assert sent(session) == [f"{int(number) + 2}@{number} stop"]


def test_without_a_move_there_is_none() -> None:
    session, number = asked()
    assert session.receive(f"@{number} yield") is None
    assert "no move yet" in sent(session)[0]
    assert session.stop() is None


@pytest.mark.parametrize("move", ["x", "1.5", "", "1 2", "1" * 5000, "\N{FULLWIDTH DIGIT ONE}"])
def test_a_move_that_is_no_number_is_an_error_and_the_game_goes_on(move: str) -> None:
    session, number = asked()
    session.receive(f"5@{number} move {move}")
    assert sent(session) == [f'{int(number) + 2}@5 error "a move is the number of a pit"']
    session.receive(f"@{number} move 2")
    assert session.stop() == 2


@pytest.mark.parametrize(
    ("move", "number"), [("0", 0), ("4", 4), ("-1", -1), ("+2", 2), ("03", 3), ('"3"', 3)]
)
def test_every_number_is_a_move_which_the_referee_judges(move: str, number: int) -> None:
    session, state = asked()
    session.receive(f"@{state} move {move}")
    session.receive(f"@{state} yield")
    assert session.stop() == number


def test_a_simple_conversation_has_no_ids() -> None:
    session = simple()
    assert session.receive("move 1") is None
    assert session.receive("move 3") is None
    assert session.receive("yield") is Change.FINAL
    assert session.stop() == 3
    session.receive("7 ping")
    session.receive("move 2")  # after the answer: ignored silently
    assert sent(session) == ["stop", "8@7 pong"]


@pytest.mark.parametrize("answer", ["yield", "ok"])
def test_moves_of_a_simple_client_before_its_answer_to_stop_belong_to_the_old_position(answer: str) -> None:
    session = simple()
    assert session.stop() is None
    session.ask("<3,1,0,1,1,1,1,1,1>")
    assert session.receive("move 1") is None
    assert session.receive(answer) is None
    assert session.stop() is None
    session.ask("<3,2,0,1,1,1,1,1,1>")
    session.receive(answer)
    session.receive("move 2")
    assert session.receive("yield") is Change.FINAL
    assert session.stop() == 2


def test_a_simple_client_may_yield_as_it_is_stopped() -> None:
    session = simple()
    session.receive("move 1")
    assert session.stop() == 1
    assert session.receive("yield") is None  # it crossed with the stop
    session.ask("<3,1,0,1,1,1,1,1,1>")
    session.receive("move 2")
    assert session.receive("yield") is Change.FINAL


def test_moves_refer_to_a_position() -> None:
    session, number = asked()
    for line in ("move 1", "@9998 move 1"):
        session.receive(line)
        assert "move has to refer to a state" in sent(session)[0]
    session.stop()
    sent(session)
    session.receive(f"@{number} move 1")  # too late: ignored silently
    assert sent(session) == []
    assert session.move is None


def test_a_line_that_is_no_command_is_noted_for_the_author() -> None:
    session = KgpSession()
    session.receive("mode simple")
    session.receive("@None move 1")
    session.receive("")
    assert session.comments == ["KGP adapter: ignored, since it is no command: '@None move 1'"]


def test_pings_comments_and_unknown_lines() -> None:
    session = ready()
    session.receive("9 ping")
    assert sent(session)[0].endswith("@9 pong")
    session.receive('set info:comment "looks good"')
    session.receive('error "strange"')
    session.receive("frobnicate 1 2 3")
    assert session.comments == ["looks good", "error: strange"]
    assert session.receive("x" * 20_000) is None
    assert "at most 16384 characters" in sent(session)[0]
    assert session.receive("goodbye") is Change.GONE


def test_the_board_is_seen_from_the_bot_that_is_asked() -> None:
    game = parse_game("kalah(3,2)")
    board = game.layout(game.parse_state("1,2,3,4,0,1,1,0;South"))
    assert isinstance(board, PitBoard)
    assert board_text(board, Side.FIRST) == "<3,0,4,0,1,1,1,2,3>"
    assert board_text(board, Side.SECOND) == "<3,4,0,1,2,3,0,1,1>"


@pytest.mark.parametrize(
    ("announced", "own_ms", "expected"),
    [
        (AnnouncedTime(move_ms=1000), 1000, 0.9),
        (AnnouncedTime(move_ms=100), 100, 0.05),
        (AnnouncedTime(move_ms=20), 20, 0.01),
        (AnnouncedTime(game_ms=60_000), 60_000, 2.85),
        (AnnouncedTime(game_ms=60_000), 2_000, 0.05),
        (AnnouncedTime(game_ms=60_000, increment_ms=1000), 2_000, 0.95),
        (AnnouncedTime(game_ms=60_000, increment_ms=1000), 100, 0.05),
        (AnnouncedTime(move_ms=1000, game_ms=60_000), 60_000, 0.9),
        (AnnouncedTime(), None, 4.75),
    ],
)
def test_the_bot_is_stopped_early(announced: AnnouncedTime, own_ms: int | None, expected: float) -> None:
    assert time_for_move(announced, own_ms) == pytest.approx(expected)
