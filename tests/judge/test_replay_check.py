"""Replay of games from their records: the records of real games follow, altered records do not."""

import dataclasses
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.judge.clock import CLOCKS, FAIR, WALL, TimeControl
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OffTurnUsage,
    OutputBlocked,
    OutputClosed,
    Send,
    Sent,
    StartRead,
    TimePassed,
    Usage,
)
from referee.judge.limits import Limits
from referee.judge.match import Match, carry_out
from referee.judge.record_rows import Fact, WireLine
from referee.judge.replay_check import check_replay
from referee.judge.results import JUDGE, GameRecord, Player, Reason
from referee.playing import Job, play_game
from referee.version import VERSION
from tests.judge.test_transcripts import ALL, Replay
from tests.process.test_faults import play, scripted
from tests.support.builders import make_player, make_record
from tests.support.judging import CONTROL as JUDGED_CONTROL
from tests.support.judging import Judged
from tests.support.paths import TEST_DATA
from tests.support.tiers import slow, slow_but
from tests.support.transcripts import Transcript

SMALL = "manchester(3,2)"
"""A game of some ten moves."""


def complaints(record: GameRecord) -> list[str]:
    """The complaints about a record, as texts."""
    return [str(complaint) for complaint in check_replay(record)]


def check_clean(record: GameRecord) -> None:
    """Assert that a record follows, also after it was packed or written as JSON and read again."""
    assert complaints(record) == []
    assert complaints(GameRecord.from_msgpack(record.to_msgpack())) == []
    read = GameRecord.from_json(json.loads(json.dumps(record.to_json())))
    assert read == record
    assert complaints(read) == []


def recorded(
    match: Match[Any, Any],
    opening: str = "",
    capabilities: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    wire_bytes: int = Limits().wire_bytes,
) -> GameRecord:
    """The record of a match without processes."""
    assert match.result is not None
    first, second = (
        replace(make_player(name), capabilities=able)
        for name, able in zip(match.names, capabilities, strict=True)
    )
    exits = {fact.player: fact.data[0] for fact in match.facts if fact.name == "BotExited"}
    last_us = max([line.at_us for line in match.wire] + [fact.at_us for fact in match.facts], default=0)
    counted = any(move.cpu_us is not None for move in match.moves) or any(
        fact.data[1] for fact in match.facts if fact.name in ("TimePassed", "LineReceived")
    )
    return make_record(
        game=match.game.name,
        players=(first, second),
        control=match.control,
        moves=match.moves,
        wire=match.wire,
        facts=match.facts,
        final_state=match.game.board_text(match.state),
        result=match.result,
        exit_status=(exits.get(0, -9), exits.get(1, -9)),
        opening=opening,
        duration_us=last_us + 1000,
        limits=Limits(wire_bytes=wire_bytes),
        sandbox="off",
        judge=match.judge,
        clock=FAIR if counted else WALL,
    )


# Games with real processes.  Faults in the form of a line are replayed without processes below.


@pytest.mark.parametrize(
    ("what", "seat"),
    [
        *(("pit-8", 0), ("hang", 1), ("exit-off-turn", 0), ("close-input", 1), ("exit-at-once", 0)),
        *slow(("no-line-feed", 0), ("exit", 1), ("kill-self", 1), ("close-output", 0), ("exit-at-once", 1)),
        *slow(("child-keeps-output", 0), ("endless-line", 1), ("move-at-start", 1), ("pieces", 0)),
        *slow(("stderr-flood", 1)),
    ],
)
async def test_real_games_with_faults_follow(what: str, seat: int) -> None:
    victim = replace(scripted("--do", "slow"), name="victim") if what == "exit-off-turn" else None
    check_clean(await play(scripted("--do", what), seat, victim))


async def test_real_games_with_early_lines_follow() -> None:
    slow = replace(scripted("--do", "slow-at-first"), name="victim")
    check_clean(await play(scripted("--do", "duplicate", "--reply", "1"), 0, slow))
    check_clean(await play(scripted("--do", "many-lines", "--reply", "1"), 1))


@pytest.mark.parametrize("game", ["kalamala", "kalah(4,3)"])
async def test_real_games_between_sample_bots_follow(game: str) -> None:
    from sample_bots.catalog import sample_bot_command

    first, second = (
        Player(name, tuple(map(str, sample_bot_command(name) or ())), str(Path.cwd()))
        for name in ("first_legal", "greedy")
    )
    control = TimeControl(game_s=20.0, increment_s=0.1)
    check_clean(await play_game(Job("play", parse_game(game).name, (first, second), control)))


@pytest.mark.parametrize("missing", [(True, False), (False, True), (True, True)])
async def test_a_game_with_a_bot_that_cannot_be_run_follows(
    missing: tuple[bool, bool], tmp_path: Path
) -> None:
    there = Player("there", (sys.executable, "-c", "input()"), str(tmp_path))
    gone = Player("gone", (str(tmp_path / "gone"),), str(tmp_path))
    players = (gone if missing[0] else there, gone if missing[1] else there)
    record = await play_game(Job("gone", "manchester", players, TimeControl(move_s=1)))
    assert record.result.fault == "not-runnable"
    check_clean(record)


# Games without processes.


@pytest.mark.parametrize("transcript", ALL, ids=lambda transcript: transcript.name)
def test_recorded_conversations_follow(transcript: Transcript) -> None:
    check_clean(recorded(Replay(transcript).match))


def begun(**options: Any) -> Judged:
    judged = Judged(**{"game": SMALL, **options})
    judged.at = 0.125
    return judged


def play_on(judged: Judged, moves: int = 1000) -> Judged:
    """Play the first legal move of each player, every 62,500 microseconds, to the end."""
    match = judged.match
    while match.result is None and len(match.moves) < moves:
        judged.at += 0.0625
        judged.play(_reply(match))
    return judged


def _reply(match: Match[Any, Any]) -> str:
    move = match.game.format_move(match.state, match.game.legal_moves(match.state)[0])
    return "SWAP" if move == "SWAP" else f"MOVE;{move}"


def opened() -> GameRecord:
    return recorded(play_on(begun(opening="1 2")).match, "1 2")


def swapped() -> GameRecord:
    judged = begun()
    judged.line(0, "MOVE;2", 0.25)
    judged.line(1, "SWAP", 0.375)
    return recorded(play_on(judged).match)


def timed() -> GameRecord:
    control = TimeControl(move_s=1.0, game_s=4.0, increment_s=0.125, margin_s=0.25, setup_s=0.5)
    judged = play_on(begun(control=control, timed=(True, False)))
    return recorded(judged.match, capabilities=(("time",), ()))


def of_kalamala() -> GameRecord:
    judged = play_on(begun(game="kalamala"), moves=6)
    judged.play("MOVE;nonsense")
    return recorded(judged.match)


def late_reply() -> GameRecord:
    """A clock reading that puts a deadline off, then a reply after it, with the counters of its turn."""
    judged = begun()
    judged.line(0, "MOVE;1", 0.25)
    judged.tell(LineReceived(1, 2.25, "MOVE;1", Usage(500_000, 900_000, 1000)))
    turn = judged.match.on_turn
    assert turn is not None
    judged.tell(TimePassed(5.0, ("", ""), Usage(1000, 2_500_000, 0), "queued"))
    judged.tell(LineReceived(turn, 7.0, "MOVE;1", Usage(2_000_000, 100_000, 0)))
    return recorded(judged.match)


def late_but_illegal() -> GameRecord:
    """A reply after the deadline that counts, since the host caused the delay, and is no move."""
    return ended_by(LineReceived(0, 3.0, "MOVE;9", Usage(1000, 2_900_000, 0)))


def starved() -> GameRecord:
    """A bot that could not move for 30 s, since the other one used both cores."""
    judged = begun(is_confined=True)
    judged.line(0, "MOVE;1", 0.25)
    turn = judged.match.on_turn
    assert turn is not None
    off_turn = OffTurnUsage(58_000_000, 29_900_000, 2)
    judged.tell(TimePassed(30.25, ("", ""), Usage(900_000, 29_000_000, 0), "queued", off_turn=off_turn))
    return replace(recorded(judged.match), sandbox="bubblewrap", cores=[0, 1])


def starved_before_its_reply() -> GameRecord:
    judged = begun(is_confined=True)
    usage, off_turn = Usage(900_000, 38_000_000, 1_000_000), OffTurnUsage(39_000_000, 39_900_000, 1)
    judged.tell(LineReceived(0, 40.25, "MOVE;1", usage, off_turn=off_turn))
    return replace(recorded(judged.match), sandbox="bubblewrap", cores=[3])


def early_lines() -> GameRecord:
    """Lines that came before their turn, which never came, and an output that ended off turn."""
    judged = begun()
    judged.line(1, "MOVE;1", 0.25)
    judged.line(1, "MOVE;2", 0.25)
    judged.line(1, "MOVE;3", 0.3125)
    judged.tell(OutputClosed(1, 0.375, "MO"))
    judged.line(0, "MOVE;2", 0.5)
    judged.line(judged.match.on_turn or 0, "rubbish", 0.625)
    return recorded(judged.match)


def gone() -> GameRecord:
    """A bot to which the opponent's move could not be sent."""
    judged = begun()
    judged.gone = (1,)
    judged.line(0, "MOVE;1", 0.25)
    return recorded(judged.match)


def flooded() -> GameRecord:
    """More bytes than a bot may send in a game."""
    judged = begun(wire_bytes=4096)
    for _ in range(5):
        judged.line(1, "x" * 1000, judged.at + 0.0625)
    return recorded(judged.match, wire_bytes=4096)


def gave_up_on_its_output() -> GameRecord:
    """A runtime that prints an error message instead of a move, and then names the cause."""
    judged = begun()
    judged.line(0, "#", 0.25)
    judged.line(0, "# There is insufficient memory for the Java Runtime Environment to continue.", 0.3125)
    return recorded(judged.match)


def gave_up_without_a_cause() -> GameRecord:
    judged = begun()
    judged.line(0, "#", 0.25)
    judged.line(0, "MOVE;1", 0.3125)
    judged.tell(BotExited(0, 0.375, 134, "", ""))
    return recorded(judged.match)


def ended_near_its_limit() -> GameRecord:
    judged = begun(limits=Limits(memory_mb=512))
    judged.tell(BotExited(1, 0.25, -9, "", "", 500))
    return replace(recorded(judged.match), sandbox="weak")


def not_runnable() -> GameRecord:
    match: Match[Any, Any] = Match(parse_game(SMALL), JUDGED_CONTROL, ("Ada", "Bob"))
    match.start(0.0)
    match.handle(NotStarted(1, 0.001, "there is no such program"))
    return recorded(match)


def neither_runnable() -> GameRecord:
    match: Match[Any, Any] = Match(parse_game(SMALL), JUDGED_CONTROL, ("Ada", "Bob"))
    match.start(0.0)
    match.handle(NotStarted(0, 0.001, "there is no such program", "it is a directory"))
    return recorded(match)


def never_started() -> GameRecord:
    judged = begun(asleep=(1,))
    judged.tell(TimePassed(10.5, ("", ""), Usage(11_000_000, 0, 0), "running"))
    return recorded(judged.match)


def ended_by(event: Event, **options: Any) -> GameRecord:
    """A game that ended by an event in its first turn."""
    judged = begun(**options)
    judged.tell(event)
    return recorded(judged.match)


@lru_cache(maxsize=1)
def records() -> dict[str, GameRecord]:
    """A record of each kind."""
    makers = (
        *(opened, swapped, timed, of_kalamala, late_reply, late_but_illegal, early_lines, gone, flooded),
        *(gave_up_on_its_output, gave_up_without_a_cause, ended_near_its_limit, not_runnable, never_started),
        *(neither_runnable, starved, starved_before_its_reply),
    )
    return {
        **{maker.__name__: maker() for maker in makers},
        "hang": ended_by(TimePassed(2.0, ("MOVE;1", ""), Usage(1_900_000, 5000, 0), "running")),
        "exit": ended_by(BotExited(1, 0.25, 3, "", "KeyError: 1")),
        "memory": ended_by(LimitPassed(1, 0.25, "memory", 600, 512)),
        "processes": ended_by(LimitPassed(0, 0.25, "process", 65, 64)),
        "long line": ended_by(LineTooLong(0, 0.25, "x" * 1024)),
        "not reading": ended_by(OutputBlocked(1, 0.25)),
        "closed output": ended_by(OutputClosed(0, 0.25, "MO")),
    }


PLAIN = ("opened", "swapped", "timed", "of_kalamala")
"""Games in which every line was a reply or an announcement."""


def test_the_records_that_are_altered_below_follow_as_they_are() -> None:
    for record in records().values():
        check_clean(record)
    assert records()["late_reply"].result.fault == "late"
    assert "while other programs had the CPU" in records()["late_reply"].result.detail
    assert records()["late_but_illegal"].result.reason is Reason.ILLEGAL
    assert records()["flooded"].result.fault == "wire-limit"
    assert records()["never_started"].result.reason is Reason.START
    assert records()["starved"].result.reason is Reason.CPU
    assert records()["starved_before_its_reply"].result.reason is Reason.CPU


LOSSES = (BotExited, NotStarted, InputClosed, OutputBlocked)


@given(
    lost=st.dictionaries(st.integers(0, 40), st.sampled_from(LOSSES), max_size=2),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["move"] * 9 + ["early", "bad", "look", "ends", "late"]), st.integers(0, 300_000)
        ),
        max_size=40,
    ),
    opening=st.sampled_from(["", "1 2"]),
    able=st.sampled_from([(("time",), ()), ((), ("time",))]),
)
@settings(max_examples=100)
def test_games_follow_in_which_lines_cannot_be_sent(
    lost: dict[int, Any], steps: list[tuple[str, int]], opening: str, able: Any
) -> None:
    rules = parse_game(SMALL)
    timed_bots = ("time" in able[0], "time" in able[1])
    steps_before = parse_opening(rules, opening)
    match: Match[Any, Any] = Match(rules, JUDGED_CONTROL, ("Ada", "Bob"), steps_before, timed_bots)
    numbers, at = count(), 0.0

    def write(send: Send) -> Event:
        nonlocal at
        at += 5e-6
        kind = lost.get(next(numbers))
        if kind is BotExited:
            return BotExited(send.player, at - 2e-6, 1, "", "")
        if kind is NotStarted:
            return NotStarted(send.player, at, "why")
        return Sent(send.player, at, send.line) if kind is None else kind(send.player, at)

    def tell(event: Event) -> None:
        nonlocal at
        at = max(at, event.at)
        carry_out(match, match.handle(event), write)

    carry_out(match, match.start(0.0), write)
    for player in (1, 0):
        if match.result is None:
            tell(StartRead(player, at + 0.001))
    for what, after_us in [*steps, ("late", 0)]:
        if match.result is not None:
            break
        then, turn = at + after_us / 1e6, match.on_turn
        assert turn is not None
        assert match.deadline is not None
        passed = max(then, match.deadline + 0.01)
        usage = Usage(after_us // 2, after_us // 3, 10) if after_us > 1000 else None
        events: dict[str, Event] = {
            "move": LineReceived(turn, then, _reply(match), usage),
            "early": LineReceived(1 - turn, then, "MOVE;1"),
            "bad": LineReceived(turn, then, "MOVE;0", Usage(1, 2, 3)),
            "ends": OutputClosed(1 - turn, then, "x"),
            "look": TimePassed(passed, ("", ""), Usage(5, 900_000, 0), "waiting"),
            "late": TimePassed(passed, ("", ""), Usage(5_000_000, 0, 0), "running"),
        }
        tell(events[what])
    check_clean(recorded(match, opening, able))


# Records of the release before players, sessions and facts had the layout of today.


def test_records_of_an_earlier_version_follow_and_keep_their_bytes() -> None:
    """69 games of all reasons and kinds: between processes, of functions, and conformance games."""
    file = TEST_DATA / "earlier" / "records.msgpack.gz"
    games: list[bytes] = msgpack.unpackb(gzip.decompress(file.read_bytes()))
    records = [GameRecord.from_msgpack(packed) for packed in games]
    assert {record.result.reason for record in records} == set(Reason) - {Reason.CPU}  # a newer one
    found = [one for record in records for one in check_replay(record, VERSION)]
    assert [one for one in found if not one.remark] == []
    assert [record.to_msgpack() for record in records] == games


# Altered records: a walk over all fields.

Path_ = tuple[str | int, ...]
WHOLE = ("capabilities", "cores", "reads", "command", "data", "versions")
"""Fields that are altered as a whole, too."""
WORDS: list[tuple[str, ...]] = [
    *(CLOCKS, ("allow", "suspend", "measure"), ("to", "from"), ("off", "weak")),
    ("Taken", "InputClosed", "OutputBlocked", "BotExited", "TimePassed"),
]


class Alteration(NamedTuple):
    """A record in which one field or row was altered."""

    kind: str
    """Name of the original in ``records``."""
    pattern: str
    """Path of the field or row, with a star for each number, and what was done to a row."""
    row: int
    old: Any
    after: GameRecord

    def was(self) -> str:
        """The line of the conversation that was altered."""
        return records()[self.kind].wire[self.row].line


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of all fields of a record."""
    if path and path[-1] in WHOLE:
        yield path
    for step in steps_of(value):
        yield from leaves(at(value, (step,)), (*path, step))
    if not steps_of(value) and not isinstance(value, list | tuple | dict):
        yield path


def steps_of(value: Any) -> list[str | int]:
    """The names or numbers of the parts of a value."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(value._fields)
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list | tuple) else []


def at(value: Any, path: Path_) -> Any:
    for step in path:
        is_name = isinstance(step, str) and not isinstance(value, dict)
        value = getattr(value, str(step)) if is_name else value[step]
    return value


def with_(value: Any, path: Path_, new: Any) -> Any:
    """The value with something else at a path.  Raises ValueError where the record cannot hold that."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    part = with_(at(value, (step,)), rest, new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{str(step): part})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return cast("Any", value)._replace(**{str(step): part})
    if isinstance(value, dict):
        return {**value, step: part}
    parts = list(value)
    parts[cast("int", step)] = part
    return parts if isinstance(value, list) else tuple(parts)


def others(value: Any) -> list[Any]:
    """Values to which a value is altered."""
    if isinstance(value, Reason):
        return list(Reason)
    if isinstance(value, str):
        near = [value + "1", value[:-1], value.swapcase(), "", "x", value[:5] + "?" + value[6:]]
        return near + [word for words in WORDS if value in words for word in words]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 1000, value - 1000, value + 10**7, 0, -value, None]
    if isinstance(value, float):
        return [value + 0.5, value * 2, value / 2, value + 0.001, None]
    if isinstance(value, tuple | list):
        return [type(value)(), type(value)([*value, "time"]), type(value)(["openings"])]
    return [{}] if isinstance(value, dict) else [0, 1, "", "x", 1.0, (1, 2)]


def altered_at(kind: str, path: Path_, new: Any) -> Iterator[Alteration]:
    """Yield the record with another value at a path, if a record can hold it."""
    record = records()[kind]
    old = at(record, path)
    if new == old:
        return
    try:
        after = with_(record, path, new)
    except (ValueError, TypeError):
        return
    row = path[1] if len(path) > 1 and isinstance(path[1], int) else 0
    pattern = ".".join("*" if isinstance(step, int) else step for step in path)
    yield Alteration(kind, pattern, row, old, after)


def alterations(kind: str) -> Iterator[Alteration]:
    """Yield everything that can be done to a record in one place."""
    record = records()[kind]
    for path in leaves(record):
        for new in others(at(record, path)):
            yield from altered_at(kind, path, new)
    for name in ("moves", "wire", "facts"):
        rows = getattr(record, name)
        for index, row in enumerate(rows):
            made = {
                "dropped": rows[:index] + rows[index + 1 :],
                "doubled": [*rows[:index], row, *rows[index:]],
                "swapped": rows[:index] + rows[index + 1 : index + 2] + [row] + rows[index + 2 :],
            }
            for what, new in made.items():
                if new != rows:
                    yield Alteration(kind, f"{name}.* {what}", index, row, replace(record, **{name: new}))


IRRELEVANT = {
    "the store's columns and the schedule hold it": ["key"],
    "for the operation; what the bot then did is in the wire log": [
        *("players.*.command", "players.*.command.*", "players.*.cwd", "players.*.digest", "players.*.how"),
        "players.*.protocol",
        *("players.*.reads", "players.*.reads.*", "sandbox", "runtime_settings"),
    ],
    "for people: the place, the hour, totals, and files of the bot": [
        *("stderr.*", "started_at", "host", "host_speed", "versions", "versions.*", "cores", "cores.*"),
        *("kept_files.*", "cpu_us.*", "off_turn_cpu_us.*", "peak_memory_bytes.*"),
    ],
    "another version of the judge's rules that gives the same verdict": ["judge"],
    "the system enforces it, or a fact reports the bot that passed it": [
        *("limits.file_mb", "limits.scratch_mb", "limits.directory_mb", "limits.directory_files"),
        *("limits.stderr_bytes", "limits.end_grace_s"),
    ],
    "it decides only where it was near to its limit; NOTICED has examples": [
        *("control.*", "clock", "limits.memory_mb", "limits.processes", "limits.line_bytes"),
        *("limits.wire_bytes", "duration_us", "exit_status.*", "players.*.capabilities*"),
        *("moves.*.cpu_us", "moves.*.wait_us", "moves.*.referee_wait_us", "facts.*.at_us", "facts.*.data.*"),
    ],
}
"""Reason -> fields that may be altered without a complaint."""

NOTICED: list[tuple[str, str, Any]] = [
    *(("hang", "control.move_s", 9.0), ("hang", "control.margin_s", 9.0), ("hang", "control.setup_s", 9.0)),
    *(("timed", "control.game_s", 5.0), ("timed", "control.increment_s", 0.5)),
    *(("never_started", "control.start_s", 20.0), ("opened", "control.ponder", "suspend")),
    *(("late_reply", "control.clock", WALL), ("late_reply", "clock", WALL), ("opened", "clock", "sun")),
    *(("timed", "players.0.capabilities", ()), ("opened", "players.0.capabilities", ("time",))),
    *(("memory", "limits.memory_mb", 600), ("processes", "limits.processes", 63)),
    *(("gave_up_on_its_output", "limits.line_bytes", 24), ("long line", "limits.line_bytes", 1023)),
    *(("flooded", "limits.wire_bytes", 9999), ("opened", "players.1.name", "x")),
    *(("opened", "duration_us", 5), ("exit", "exit_status.1", 0)),
    *(("late_reply", "moves.1.cpu_us", 2_000_000), ("late_reply", "moves.1.wait_us", 100_000)),
    *(("late_reply", "moves.1.referee_wait_us", 100_000), ("late_reply", "moves.1.cpu_us", -1)),
    *(("hang", "facts.2.at_us", 1_990_000), ("hang", "facts.2.data.0.0", "MOVE;2")),
    *(("hang", "facts.2.data.1.cpu_us", 1_000_000), ("never_started", "facts.0.data.2", "waiting")),
    *(("memory", "facts.2.data.1", 601), ("exit", "facts.2.data.0", 4), ("exit", "facts.2.data.2", "E")),
    *(("starved", "facts.2.data.3.cpu_us", 5_800_000), ("starved", "facts.2.data.3.cpu_us", 70_000_000)),
    *(("starved", "facts.2.data.3.cores", 3), ("starved", "facts.2.data.1.wait_us", 1_000_000)),
    *(
        ("starved", "sandbox", "weak"),
        ("starved", "cores", [0]),
        ("starved", "facts.2.data.3.span_us", 10**9),
    ),
    *(("starved_before_its_reply", f"facts.2.data.{path}", 3_000_000) for path in ("1.wait_us", "2.cpu_us")),
    *(("long line", "facts.2.data.0", "y" * 1024), ("not_runnable", "facts.0.data.0", "it is Tuesday")),
]


def may_pass(one: Alteration) -> bool:
    """Return True if an alteration cannot change a verdict."""
    if any(fnmatchcase(one.pattern, field) for fields in IRRELEVANT.values() for field in fields):
        return True
    if one.pattern == "opening" and isinstance(one.after.opening, str):
        return one.after.opening.split() == records()[one.kind].opening.split()  # spaces mean nothing
    if one.pattern == "players.*.name":  # the sentence names one player only
        return not records()[one.kind].result.detail.startswith(f"{one.old} (")
    if one.pattern == "wire.*.at_us":  # only moves of plain games are all timed from line to line
        return one.kind not in PLAIN or one.was().startswith("START") or one.was().endswith("END")
    if one.pattern == "wire.* dropped" and one.was().endswith("END"):
        return True  # a line after the verdict may be missing
    if one.kind in ("early_lines", "flooded", "gave_up_on_its_output", "gave_up_without_a_cause"):
        return one.pattern.startswith("wire.") or one.pattern in ("facts.* dropped", "facts.*.data")
    # A clock reading that put a deadline off, as the next one did; START, which nobody waited for any more.
    is_obsolete = not one.after.moves or getattr(one.old, "name", "") == "TimePassed"
    return one.pattern in ("facts.* dropped", "facts.* doubled") and is_obsolete


def check_altered(one: Alteration) -> None:
    """Assert that an alteration is noticed if it can change a verdict."""
    found = check_replay(one.after)
    assert all(str(complaint) and "\n" not in str(complaint) for complaint in found)
    assert found or may_pass(one), (one.kind, one.pattern, one.row, one.old, one.after)


KINDS = list(records())
QUICK_KINDS = ("swapped", "early_lines", "exit", "memory", "starved", "neither_runnable")


@pytest.mark.parametrize("kind", slow_but(QUICK_KINDS, KINDS))
def test_every_alteration_of_one_field_or_row_is_noticed(kind: str) -> None:
    for one in alterations(kind):
        check_altered(one)


@pytest.mark.parametrize(("kind", "path", "new"), NOTICED)
def test_alterations_of_values_that_decide_sometimes_are_noticed(kind: str, path: str, new: Any) -> None:
    steps = tuple(int(step) if step.isdigit() else step for step in path.split("."))
    (one,) = altered_at(kind, steps, new)
    assert check_replay(one.after)


@given(st.sampled_from(KINDS), st.data())
@settings(max_examples=200)
def test_any_value_anywhere_is_noticed_if_it_can_change_a_verdict(kind: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(leaves(records()[kind]))))
    old = at(records()[kind], path)
    values = st.none() | st.integers(-(2**40), 2**40) | st.floats(0, 1e6) | st.text(max_size=12)
    near = st.integers(-2000, 2000).map(lambda by: old + by) | values if type(old) is int else values
    for one in altered_at(kind, path, data.draw(near | st.sampled_from(Reason))):
        check_altered(one)


def test_altering_two_columns_alike_is_noticed() -> None:
    """The times of the lines contradict a wall time and a charge that were altered together."""
    record = swapped()
    moves = [move._replace(wall_us=move.wall_us + 5, charged_us=move.charged_us + 5) for move in record.moves]
    assert complaints(replace(record, moves=moves))


# Corrected counters.


def corrected(kind: str = "move") -> GameRecord:
    """A game in which the first player computed after a reply, which was a move or came too late."""
    judged = Judged()
    late = kind == "late"
    wall_us = 2_600_000 if late else 400_000
    cpu_us = 2_500_000 if late else 300_000
    usage = Usage(cpu_us, 0, 100_000)
    judged.tell(LineReceived(0, judged.match.turn_began + wall_us / 1e6, "MOVE;1", usage, 2))
    if not late:
        judged.play("MOVE;99")
    return replace(recorded(judged.match), corrections=tuple(judged.match.corrections))


@pytest.mark.parametrize("kind", ["move", "late"])
def test_the_correction_of_counters_is_verified(kind: str) -> None:
    record = corrected(kind)
    assert [(one.line, one.cores) for one in record.corrections] == [(2, 2)]
    check_clean(record)
    [correction] = record.corrections
    for changes in ({"cpu_us": correction.cpu_us + 50_000}, {"line": 1}, {"cores": 0}):
        assert complaints(replace(record, corrections=(correction._replace(**changes),)))
    # Records of earlier versions have the corrected counters alone.
    check_clean(replace(record, corrections=()))


def test_the_counters_of_a_reply_that_loses_in_time_are_not_recorded() -> None:
    judged = Judged()
    at = judged.match.turn_began + 0.4
    judged.tell(LineReceived(0, at, "nonsense", Usage(300_000, 0, 100_000), 2))
    assert judged.match.corrections == []
    check_clean(recorded(judged.match))


def test_a_record_without_corrections_has_the_bytes_of_earlier_versions() -> None:
    assert b"corrections" not in swapped().to_msgpack()
    assert b"peak_memory_bytes" not in swapped().to_msgpack()
    assert b"corrections" in corrected().to_msgpack()


def test_a_wait_for_a_cpu_is_recorded_as_the_activity() -> None:
    for activity, expected in (("running", "queued"), ("stopped", "stopped")):
        judged = Judged()
        at = judged.match.turn_began + 2
        judged.tell(TimePassed(at, ("", ""), Usage(1000, 1_900_000, 0), activity, is_queued=True))
        assert judged.match.facts[-1].data[2] == expected


# Complaints.


def test_complaints_name_the_row_the_field_and_both_values() -> None:
    record = opened()
    move = record.moves[1]._replace(wall_us=1)
    altered = replace(record, moves=[record.moves[0], move, *record.moves[2:]])
    assert complaints(altered) == [f"move 2: wall_us: recorded 1, but {record.moves[1].wall_us} follows"]
    result = replace(record.result, winner=None)
    assert complaints(replace(record, result=result)) == [
        f"winner: recorded None, but {record.result.winner} follows"
    ]


def test_the_wording_of_another_version_is_a_remark() -> None:
    record = opened()
    other = replace(record, result=replace(record.result, detail="Ada won"), versions={"kalarena": "9"})
    assert [one.remark for one in check_replay(other, "9")] == [False]
    assert [one.remark for one in check_replay(other, "10")] == [True]
    assert [one.remark for one in check_replay(replace(other, judge=JUDGE - 1), "9")] == [True]
    wrong = replace(other, result=replace(other.result, winner=None))
    assert {one.what: one.remark for one in check_replay(wrong, "10")} == {"detail": True, "winner": False}


@pytest.mark.parametrize(
    "event",
    [
        LimitPassed(1, 0.25, "memory", 600, 512),
        BotExited(0, 0.25, 1, "", "MemoryError"),
        BotExited(0, 0.25, 1, "", "OSError: [Errno 30] Read-only file system: 'a'"),
        LineReceived(0, 0.25, "#"),
    ],
)
def test_records_of_older_judges_follow_by_their_own_rules(event: Event) -> None:
    record = ended_by(event, judge=1)
    assert record.result.reason in (Reason.EXIT, Reason.PROTOCOL)
    check_clean(record)
    view = record.to_json()
    del view["judge"]  # as older versions wrote it
    assert complaints(GameRecord.from_json(view)) == []


@pytest.mark.parametrize("judge", [1, 2])
def test_records_of_older_judges_have_the_setup_time_of_the_first_player(judge: int) -> None:
    """They gave it to the first player also where an opening leaves the second one on turn."""
    judged = Judged(opening="2", judge=judge)
    judged.line(1, "MOVE;1", 0.75)
    judged.line(0, "MOVE;1", 2.25)
    assert [move.charged_us for move in judged.match.moves] == [750_000, 1_000_000]
    judged.wait_until(4.0)
    record = recorded(judged.match, "2")
    assert record.judge == judge
    check_clean(record)
    assert complaints(replace(record, judge=JUDGE)) != []


def test_records_of_older_judges_have_a_start_limit_from_the_start_of_the_game() -> None:
    for judge, loses in ((4, True), (JUDGE, False)):
        judged = Judged(asleep=(1,), ready_at=9.0, judge=judge)
        judged.wait_until(10.5)
        if not loses:
            judged.tell(StartRead(1, 11.0))
            judged.line(0, "nonsense", at=11.5)
        record = recorded(judged.match)
        assert (record.result.fault == "start-limit") == loses
        check_clean(record)
        assert complaints(replace(record, judge=4 if judge == JUDGE else JUDGE)) != []


def test_records_of_older_judges_wait_after_debug_text_like_a_message_of_lua() -> None:
    for judge, waits in ((5, True), (JUDGE, False)):
        judged = Judged(judge=judge)
        judged.line(0, "evaluation: 12", at=0.5)
        assert (judged.match.result is None) == waits
        if waits:
            judged.wait_until(10.0)
        check_clean(recorded(judged.match))


def test_records_of_schema_1_cannot_be_judged_again() -> None:
    (complaint,) = complaints(replace(opened(), sandbox=""))
    assert complaint.startswith("schema: recorded facts as text alone, as records of schema 1 have them")


@pytest.mark.parametrize(
    "changes",
    [
        {"game": "chess"},
        {"opening": "99"},
        {"players": (make_player("Ada"),)},
        {"facts": [Fact(0, "Nonsense", 1, 0)]},
        {"wire": [WireLine(0, "from", cast("Any", None), 1)]},
        {"limits": None},
        {"result": None},
        {"moves": [None]},
        {"control": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_record_with_which_the_judge_fails_gets_a_complaint(changes: dict[str, Any]) -> None:
    assert complaints(replace(opened(), **changes))
