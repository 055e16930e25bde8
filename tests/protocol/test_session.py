"""The order of messages, against a table written from docs/protocol.md and not from the code."""

from typing import Any

import pytest

from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.messages import Change, End, Move, Next, RefereeMessage, Start, Swap, Time
from protocol.session import Phase, Session

BOARD = "7,7,7,7,7,7,7,0,7,7,7,7,7,7,7,0"
YOU = Change("1", BOARD, Next.YOU)
OPPONENT = Change("1", BOARD, Next.OPPONENT)
NOBODY = Change("1", BOARD, Next.NOBODY)
START = Start("South")
END = End()
TIME = Time(4000, 3750)

Said = RefereeMessage | str
"""A message to the bot, or a line of the bot."""

EVERYTHING: list[Said] = [START, YOU, OPPONENT, NOBODY, TIME, END, "MOVE;1", "SWAP"]

# Phase -> a way to get there, as the bot that moves first or second.
MOVES_FIRST: dict[Phase, list[Said]] = {
    Phase.SILENT: [],
    Phase.THINKING: [START],
    Phase.REPLIED: [START, "MOVE;1"],
    Phase.WAITING: [START, "MOVE;1", OPPONENT],
    Phase.FINISHED: [START, "MOVE;1", NOBODY],
    Phase.CLOSED: [START, "MOVE;1", NOBODY, END],
}
MOVES_SECOND: dict[Phase, list[Said]] = {
    Phase.SILENT: [],
    Phase.WAITING: [START],
    Phase.THINKING: [START, YOU],
    Phase.REPLIED: [START, YOU, "MOVE;1"],
    Phase.FINISHED: [START, NOBODY],
    Phase.CLOSED: [START, END],
}
WAYS = {True: MOVES_FIRST, False: MOVES_SECOND}

# docs/protocol.md, "Order of messages": (where, what) -> where then.  START is not here: it depends on
# who moves first.  Everything that is not here is refused.
ALLOWED: dict[tuple[Phase, Said], Phase] = {
    # 2: the mover always gets its own CHANGE; the one not next may get OPP again and again.
    (Phase.WAITING, YOU): Phase.THINKING,
    (Phase.WAITING, OPPONENT): Phase.WAITING,
    (Phase.REPLIED, YOU): Phase.THINKING,
    (Phase.REPLIED, OPPONENT): Phase.WAITING,
    # 4: the swapper gets nothing until the next CHANGE.
    (Phase.THINKING, "MOVE;1"): Phase.REPLIED,
    (Phase.THINKING, "SWAP"): Phase.WAITING,
    # TIME comes before the line that gives the turn.
    (Phase.SILENT, TIME): Phase.SILENT,
    (Phase.WAITING, TIME): Phase.WAITING,
    (Phase.REPLIED, TIME): Phase.REPLIED,
    # 5: a regular end, told to both, then END.
    (Phase.WAITING, NOBODY): Phase.FINISHED,
    (Phase.REPLIED, NOBODY): Phase.FINISHED,
    (Phase.FINISHED, END): Phase.CLOSED,
    # 6: a fault of either bot: END at any time, also before START.
    (Phase.SILENT, END): Phase.CLOSED,
    (Phase.WAITING, END): Phase.CLOSED,
    (Phase.THINKING, END): Phase.CLOSED,
    (Phase.REPLIED, END): Phase.CLOSED,
}


def pass_on(session: Session, said: Said) -> None:
    if isinstance(said, str):
        session.receive(said)
    else:
        session.send(said)


def session_in(phase: Phase, *, moves_first: bool) -> Session:
    session = Session(moves_first=moves_first)
    for said in WAYS[moves_first][phase]:
        pass_on(session, said)
    assert session.phase is phase
    return session


def label(value: Any) -> str | None:
    if isinstance(value, bool):
        return "first" if value else "second"
    if isinstance(value, Phase):
        return value.value
    return repr(value) if not isinstance(value, Change) else f"CHANGE {value.next}"


@pytest.mark.parametrize("moves_first", [True, False], ids=label)
@pytest.mark.parametrize("phase", list(Phase), ids=label)
@pytest.mark.parametrize("said", EVERYTHING, ids=label)
def test_every_signal_in_every_phase(phase: Phase, said: Said, moves_first: bool) -> None:
    session = session_in(phase, moves_first=moves_first)
    following = ALLOWED.get((phase, said))
    if phase is Phase.SILENT and said == START:
        following = Phase.THINKING if moves_first else Phase.WAITING
    if following is not None:
        pass_on(session, said)
        assert session.phase is following
        return
    # Ours is our bug, the bot's is the bot's fault; in both nothing has moved.
    if isinstance(said, str):
        with pytest.raises(RemoteProtocolError) as error:
            session.receive(said)
        assert error.value.fault == "out-of-turn"
        assert phase in error.value.message
    else:
        with pytest.raises(LocalProtocolError):
            session.send(said)
    assert session.phase is phase


def test_send_returns_the_line_and_receive_the_message() -> None:
    session = Session(moves_first=True)
    assert session.send(START) == "START;South"
    assert session.receive("MOVE;3") == Move("3")
    assert session.send(YOU) == f"CHANGE;1;{BOARD};YOU"
    assert session.receive("SWAP") == Swap()
    assert session.send(END) == "END"


@pytest.mark.parametrize("phase", list(Phase), ids=label)
@pytest.mark.parametrize("line", ["", "MOVE", "move;1", "MOVE;1\r", "hello", "END"])
def test_a_malformed_line_is_told_as_such_and_changes_nothing(phase: Phase, line: str) -> None:
    session = session_in(phase, moves_first=False)
    with pytest.raises(RemoteProtocolError) as error:
        session.receive(line)
    assert error.value.fault != "out-of-turn"
    assert session.phase is phase


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (Phase.SILENT, Start("")),
        (Phase.SILENT, Start("South;North")),
        (Phase.REPLIED, Change("1;2", BOARD, Next.YOU)),
        (Phase.WAITING, Change("1", "7, 7", Next.NOBODY)),
    ],
    ids=label,
)
def test_a_message_that_cannot_be_written_changes_nothing(phase: Phase, message: RefereeMessage) -> None:
    session = session_in(phase, moves_first=True)
    with pytest.raises(LocalProtocolError):
        session.send(message)
    assert session.phase is phase


# Whole conversations of docs/protocol.md, one side each: (moves first?, what is said).
CONVERSATIONS: dict[str, tuple[bool, list[Said]]] = {
    "two moves": (True, [START, "MOVE;1", OPPONENT, YOU, "MOVE;2", OPPONENT, NOBODY, END]),
    "extra turns of its own": (True, [START, "MOVE;1", OPPONENT, YOU, "MOVE;1", YOU, "MOVE;2", NOBODY, END]),
    "extra turns of the opponent": (False, [START, OPPONENT, OPPONENT, YOU, "MOVE;1", NOBODY, END]),
    "it swaps": (False, [START, YOU, "SWAP", YOU, "MOVE;1", NOBODY, END]),
    "it swaps, the other goes on": (False, [START, YOU, "SWAP", OPPONENT, YOU, "MOVE;1", NOBODY, END]),
    "the other swaps": (
        True,
        [START, "MOVE;1", OPPONENT, Change("SWAP", BOARD, Next.YOU), "MOVE;1", OPPONENT, END],
    ),
    "the other is gone at once": (True, [END]),
    "its illegal move": (True, [START, "MOVE;9", END]),
    "its time is over": (False, [START, YOU, END]),
    "it swaps and the other loses by a fault": (False, [START, YOU, "SWAP", END]),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_whole_conversations(name: str) -> None:
    moves_first, said = CONVERSATIONS[name]
    session = Session(moves_first=moves_first)
    for item in said:
        pass_on(session, item)
    assert session.phase is Phase.CLOSED
