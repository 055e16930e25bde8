"""Judging a game again from its record: real games follow, altered ones do not."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.judge.clock import CLOCKS, FAIR, SUSPEND, WALL, TimeControl
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    NotStarted,
    OutputBlocked,
    OutputClosed,
    Send,
    Sent,
    StartRead,
    TimePassed,
    Usage,
)
from referee.judge.limits import Limits
from referee.judge.match import Match
from referee.judge.replay_check import check_replay
from referee.judge.results import Fact, GameRecord, MoveRecord, Player, Reason, WireLine
from referee.judge.verdict_text import ACTIVITY_ADVICE, LONGEST_QUOTE
from referee.play import Job, play_game
from referee.session import Session
from tests.builders import make_player, make_record
from tests.judging import CONTROL as JUDGED_CONTROL
from tests.judging import Judged
from tests.test_faults import ACCEPTED, FAULTS, honest, play, scripted
from tests.test_transcripts import ALL, Replay
from tests.transcripts import Transcript

SMALL = "manchester(3,2)"
"""A game of some ten moves."""


def complaints(record: GameRecord) -> list[str]:
    """What is wrong with a record, as text."""
    return [str(complaint) for complaint in check_replay(record)]


def check_clean(record: GameRecord) -> None:
    """The record follows, also after a journey through either form."""
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


# Games as they are.


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("what", [*FAULTS, *ACCEPTED, "exit-at-once"])
async def test_real_games_with_faults_follow(what: str, seat: int) -> None:
    victim = replace(scripted("--do", "slow"), name="victim") if what == "exit-off-turn" else None
    check_clean(await play(scripted("--do", what), seat, victim))


async def test_real_games_with_early_lines_follow() -> None:
    slow = replace(scripted("--do", "slow"), name="victim")
    check_clean(await play(scripted("--do", "duplicate", "--reply", "1"), 0, slow))
    check_clean(await play(scripted("--do", "many-lines", "--reply", "1"), 1))


@pytest.mark.parametrize("game", ["kalamala", "kalah(4,3)", "manchester"])
async def test_real_games_between_sample_bots_follow(game: str) -> None:
    from sample_bots.catalog import sample_bot_command

    first, second = (
        Player(name, tuple(map(str, sample_bot_command(name) or ())), str(Path.cwd()))
        for name in ("first_legal", "greedy")
    )
    spec = parse_game(game).name
    control = TimeControl(game_s=20.0, increment_s=0.1)
    check_clean(await play_game(Job("play", spec, (first, second), control)))


class Forward(Replay):
    """As a clock does it: nothing is sent before what asked for it."""

    def tell_all(self, sends: list[Send]) -> None:
        self.at = max(self.at, self.match._now_us / 1e6)
        super().tell_all(sends)


@pytest.mark.parametrize("transcript", ALL, ids=lambda transcript: transcript.name)
def test_recorded_conversations_follow(transcript: Transcript) -> None:
    check_clean(recorded(Forward(transcript).match))


def test_openings_swaps_and_times_that_are_told_follow() -> None:
    for record in (opened(), swapped(), timed(), of_kalamala()):
        check_clean(record)


@given(st.integers(0, 48 * 3600 * 10**6))
def test_microseconds_come_back(at_us: int) -> None:
    """What the judge makes of a recorded time, with the start of the game as the start of time."""
    assert int((at_us / 1e6 - 0.0) * 1e6 + 0.5) == at_us
    assert round(at_us / 1000 * 1000) == at_us


# Games that need no process.


def begun(*arguments: Any, **options: Any) -> Judged:
    judged = Judged(*arguments, **options)
    judged.at = 0.125
    return judged


def play_on(judged: Judged, step_s: float = 0.0625) -> Judged:
    """To the end, each with its first legal move."""
    match = judged.match
    while match.result is None:
        assert match.on_turn is not None
        move = match.game.format_move(match.state, match.game.legal_moves(match.state)[0])
        line = "SWAP" if move == "SWAP" else f"MOVE;{move}"
        judged.line(match.on_turn, line, judged.at + step_s)
    return judged


def opened() -> GameRecord:
    return recorded(play_on(begun(game=SMALL, opening="1 2")).match, "1 2")


def swapped() -> GameRecord:
    judged = begun(game="manchester(3,2)")
    judged.line(0, "MOVE;2", 0.25)
    judged.line(1, "SWAP", 0.375)
    return recorded(play_on(judged).match)


def timed() -> GameRecord:
    control = TimeControl(move_s=1.0, game_s=4.0, increment_s=0.125, margin_s=0.25, setup_s=0.5)
    judged = play_on(begun(control, SMALL, timed=(True, False)))
    return recorded(judged.match, capabilities=(("time",), ()))


def of_kalamala() -> GameRecord:
    judged = begun(game="kalamala")
    for _ in range(6):
        match = judged.match
        assert match.on_turn is not None
        move = match.game.format_move(match.state, match.game.legal_moves(match.state)[0])
        judged.line(match.on_turn, f"MOVE;{move}", judged.at + 0.0625)
    judged.line(match.on_turn or 0, "MOVE;nonsense", judged.at + 0.0625)
    return recorded(judged.match)


def late_reply() -> GameRecord:
    """A look that puts the deadline off, then a reply after it, with what the counters say of it."""
    judged = begun(game=SMALL)
    judged.line(0, "MOVE;1", 0.25)
    judged.tell(LineReceived(1, 2.25, "MOVE;1", Usage(500_000, 900_000, 1000)))
    turn = judged.match.on_turn
    assert turn is not None
    judged.tell(TimePassed(5.0, ("", ""), Usage(1000, 2_500_000, 0), "queued"))
    judged.tell(LineReceived(turn, 7.0, "MOVE;1", Usage(2_000_000, 100_000, 0)))
    return recorded(judged.match)


def late_but_illegal() -> GameRecord:
    """A reply after the deadline of which the host caused so much that it counts, and is no move."""
    judged = begun(game=SMALL)
    judged.tell(LineReceived(0, 3.0, "MOVE;9", Usage(1000, 2_900_000, 0)))
    return recorded(judged.match)


def unheard() -> GameRecord:
    """Lines that came early and were never heard, and an output that ended off turn."""
    judged = begun(game=SMALL)
    judged.line(1, "MOVE;1", 0.25)
    judged.line(1, "MOVE;2", 0.25)
    judged.line(1, "MOVE;3", 0.3125)
    judged.tell(OutputClosed(1, 0.375, "MO"))
    judged.line(0, "MOVE;2", 0.5)
    judged.line(judged.match.on_turn or 0, "rubbish", 0.625)
    return recorded(judged.match)


def gone() -> GameRecord:
    """A bot that could not be told of the opponent's move."""
    judged = begun(game=SMALL)
    judged.gone = (1,)
    judged.line(0, "MOVE;1", 0.25)
    return recorded(judged.match)


def flooded() -> GameRecord:
    """More than a bot may send in a game."""
    match = Match(parse_game(SMALL), JUDGED_CONTROL, ("Ada", "Bob"), wire_bytes=4096)
    judged = begun(game=SMALL)
    judged.match = match
    judged._carry_out(match.start(0.0))
    for _ in range(5):
        judged.line(1, "x" * 1000, judged.at + 0.0625)
    return recorded(match, wire_bytes=4096)


def too_much_memory() -> GameRecord:
    judged = begun(game=SMALL)
    judged.tell(LimitPassed(1, 0.25, "memory", 600, 512))
    return recorded(judged.match)


def gave_up_on_its_output() -> GameRecord:
    """A runtime that complains on standard output instead of moving, and then names the cause."""
    judged = begun(game=SMALL)
    judged.line(0, "#", 0.25)
    judged.line(0, "# There is insufficient memory for the Java Runtime Environment to continue.", 0.3125)
    return recorded(judged.match)


def complained_of_something_else() -> GameRecord:
    judged = begun(game=SMALL)
    judged.line(0, "#", 0.25)
    judged.line(0, "MOVE;1", 0.3125)
    judged.tell(BotExited(0, 0.375, 134, "", ""))
    return recorded(judged.match)


def ended_near_its_limit() -> GameRecord:
    match: Match[Any, Any] = Match(
        parse_game(SMALL), JUDGED_CONTROL, ("Ada", "Bob"), limits=Limits(memory_mb=512)
    )
    judged = begun(game=SMALL)
    judged.match = match
    judged._carry_out(match.start(0.0))
    judged.tell(BotExited(1, 0.25, -9, "", "", 500))
    return replace(recorded(match), sandbox="weak")


@lru_cache(maxsize=1)
def kinds() -> dict[str, GameRecord]:
    """A record of each kind; the first eight are of real processes."""

    async def real(*what: str, seat: int = 0, control: TimeControl | None = None) -> GameRecord:
        culprit = scripted(*(("--do", *what) if what else ()))
        players = (culprit, honest()) if seat == 0 else (honest(), culprit)
        times = control or TimeControl(move_s=0.3, start_s=5.0)
        return await play_game(Job("r001-1v2", SMALL, players, times, Limits(end_grace_s=0.1)))

    async def all_real() -> dict[str, GameRecord]:
        return {
            "to the end": await real(),
            "slow": await real("slow", seat=1, control=TimeControl(game_s=9.0, increment_s=0.01)),
            "illegal": await real("pit-8", "--reply", "2"),
            "hang": await real("hang", "--reply", "1"),
            "exit": await real("exit", "--reply", "1"),
            "long line": await real("long-line", "--reply", "2", seat=1),
            "never reads": await real("never-read", control=TimeControl(move_s=1.0, start_s=0.2)),
            "no program": await play_game(Job("k", SMALL, (honest(), make_player("none")), JUDGED_CONTROL)),
        }

    made = {maker.__name__: maker() for maker in SYNTHETIC}
    return {**trio.run(all_real), **made}


SYNTHETIC = (
    *(opened, swapped, timed, late_reply, late_but_illegal, unheard, gone, flooded, too_much_memory),
    *(gave_up_on_its_output, complained_of_something_else, ended_near_its_limit),
)


def test_the_games_that_are_altered_follow_as_they_are() -> None:
    for record in kinds().values():
        check_clean(record)
    assert kinds()["late_reply"].result.fault == "late"
    assert "while other programs had the CPU" in kinds()["late_reply"].result.detail
    assert kinds()["late_but_illegal"].result.reason is Reason.ILLEGAL
    assert kinds()["flooded"].result.fault == "wire-limit"


# The loop that carries the judge's lines to the bots, and ours that finds them in the record, agree.


class Shell:
    """The session's own loop with bots of which lines can be lost; writing takes 5 us."""

    def __init__(self, match: Match[Any, Any], lost: dict[int, type[Event]]) -> None:
        self.match = match
        self.at = 0.0
        self._lost = lost
        self._written = count()
        bots = tuple(
            SimpleNamespace(write=self._writer(index), closed_input_event=lambda event, _: event)
            for index in (0, 1)
        )
        timer = SimpleNamespace(must_prepare=[False, False], must_follow=False)
        values = {"_match": match, "_bots": bots, "timer": timer, "_observe": None}
        self._session = cast("Session", SimpleNamespace(**values))

    def _writer(self, index: int) -> Callable[[str], Event]:
        def write(line: str) -> Event:
            self.at += 5e-6
            kind = self._lost.get(next(self._written))
            if kind is BotExited:
                return BotExited(index, self.at - 2e-6, 1, "", "")
            if kind is NotStarted:
                return NotStarted(index, self.at, "why")
            if kind is InputClosed or kind is OutputBlocked:
                return kind(index, self.at)
            return Sent(index, self.at, line)

        return write

    def carry_out(self, sends: Sequence[Any]) -> None:
        Session._carry_out(self._session, sends)

    def tell(self, event: Event) -> None:
        self.at = max(self.at, event.at)
        self.carry_out(self.match.handle(event))


LOSSES = (BotExited, NotStarted, InputClosed, OutputBlocked)


@given(
    st.dictionaries(st.integers(0, 40), st.sampled_from(LOSSES), max_size=2),
    st.lists(
        st.tuples(
            st.sampled_from(["move"] * 9 + ["early", "bad", "look", "ends", "late"]), st.integers(0, 300_000)
        ),
        max_size=40,
    ),
    st.sampled_from(["", "1 2"]),
    st.booleans(),
)
@settings(max_examples=150)
def test_the_drivers_loop_and_ours_agree(
    lost: dict[int, Any], steps: list[tuple[str, int]], opening: str, told: bool
) -> None:
    rules = parse_game(SMALL)
    timed_bots = (told, not told)
    match: Match[Any, Any] = Match(
        rules, JUDGED_CONTROL, ("Ada", "Bob"), parse_opening(rules, opening), timed_bots
    )
    shell = Shell(match, lost)
    shell.carry_out(match.start(0.0))
    for player in (1, 0):
        if match.result is None:
            shell.tell(StartRead(player, shell.at + 0.001))
    for what, after_us in [*steps, ("late", 0)]:
        if match.result is not None:
            break
        at, turn = shell.at + after_us / 1e6, match.on_turn
        assert turn is not None
        if what == "move":
            move = match.game.format_move(match.state, match.game.legal_moves(match.state)[0])
            usage = Usage(after_us // 2, after_us // 3, 10) if after_us > 1000 else None
            shell.tell(LineReceived(turn, at, "SWAP" if move == "SWAP" else f"MOVE;{move}", usage))
        elif what == "early":
            shell.tell(LineReceived(1 - turn, at, "MOVE;1"))
        elif what == "bad":
            shell.tell(LineReceived(turn, at, "MOVE;0", Usage(1, 2, 3)))
        elif what == "ends":
            shell.tell(OutputClosed(1 - turn, at, "x"))
        elif what == "look":
            assert match.deadline is not None
            shell.tell(TimePassed(max(at, match.deadline + 0.01), ("", ""), Usage(5, 900_000, 0), "waiting"))
        else:
            assert match.deadline is not None
            shell.tell(
                TimePassed(max(at, match.deadline + 0.01), ("", ""), Usage(5_000_000, 0, 0), "running")
            )
    assume(
        len({(fact.player, fact.name) for fact in match.facts if fact.player is not None})
        == len([fact for fact in match.facts if fact.player is not None])
    )
    able = (("time",) if told else (), () if told else ("time",))
    check_clean(recorded(match, opening, able))


# Altered records: a walk over every field there is.

Path_ = tuple[str | int, ...]
ROWS = ("moves", "wire", "facts")
WHOLE = ("capabilities", "cores", "reads", "command", "data", "versions")
"""Fields of which the whole is altered, too, and not only what is in them."""


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths to everything in a record."""
    if path and path[-1] in WHOLE:
        yield path
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name in value._fields:
            yield from leaves(getattr(value, name), (*path, name))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    else:
        yield path


def at(value: Any, path: Path_) -> Any:
    for step in path:
        if isinstance(step, str) and not isinstance(value, dict):
            value = getattr(value, step)
        else:
            value = value[step]
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
    """What a value may be altered to."""
    if isinstance(value, Reason):
        return [reason for reason in Reason if reason is not value]
    if isinstance(value, str):
        near = [value + "1", value[:-1], value.swapcase(), "", "x", value[:5] + "?" + value[6:]]
        return near + [word for words in WORDS if value in words for word in words]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 1000, value - 1000, value + 10**7, 0, -value, None]
    if isinstance(value, float):
        return [value + 0.5, value * 2, value / 2, value + 0.001, None]
    if isinstance(value, tuple | list):
        return [type(value)(), type(value)([*value, "time"]), type(value)(["openings"])]
    if isinstance(value, dict):
        return [{}]
    return [0, 1, "", "x", 1.0, (1, 2)]


WORDS: list[tuple[str, ...]] = [CLOCKS, ("allow", "suspend", "measure"), ("to", "from"), ("off", "weak")]
WORDS.append(tuple(kind.__name__ for kind in (StartRead, InputClosed, OutputBlocked, BotExited, TimePassed)))


@dataclass(frozen=True)
class Alteration:
    """One thing of a record that was altered by hand."""

    path: Path_
    """Of the field, or of the row."""
    what: str
    """``field``, or what was done to the row: ``dropped``, ``doubled``, ``swapped`` with the next."""
    before: GameRecord
    after: GameRecord

    @property
    def pattern(self) -> str:
        """The path with a star for each number, as the tables below have it."""
        path = ".".join("*" if isinstance(step, int) else step for step in self.path)
        return path if self.what == "field" else f"{path} {self.what}"

    @property
    def old(self) -> Any:
        return at(self.before, self.path)

    @property
    def new(self) -> Any:
        return at(self.after, self.path)

    @property
    def row(self) -> int:
        return cast("int", self.path[1])


def alterations(record: GameRecord) -> Iterator[Alteration]:
    """Everything that can be done to a record in one place."""
    for path in leaves(record):
        old = at(record, path)
        for new in others(old):
            altered = altered_at(record, path, new)
            if altered is not None:
                yield altered
    for name in ROWS:
        rows = getattr(record, name)
        for index, row in enumerate(rows):
            made = {
                "dropped": rows[:index] + rows[index + 1 :],
                "doubled": [*rows[:index], row, *rows[index:]],
                "swapped": rows[:index] + rows[index + 1 : index + 2] + [row] + rows[index + 2 :],
            }
            for what, new in made.items():
                if new != rows:
                    yield Alteration((name, index), what, record, replace(record, **{name: new}))


def altered_at(record: GameRecord, path: Path_, new: Any) -> Alteration | None:
    """None if that is no alteration, or none that a record can hold."""
    old = at(record, path)
    if new == old:
        return None
    try:
        return Alteration(path, "field", record, with_(record, path, new))
    except (ValueError, TypeError):
        return None


# What no verdict can depend on: the field, and why.

IRRELEVANT = {
    "key": "a game does not know its name in the tournament: the store's columns and the schedule hold it",
    "players.*.command": "how the bot was started; what it then did is in the wire log",
    "players.*.command.*": "the same",
    "players.*.cwd": "the same",
    "players.*.digest": "which version of the bot played; what it did is in the wire log",
    "players.*.how": "for people: how the command was found",
    "players.*.reads": "what the bot could read; what it did is in the wire log",
    "players.*.reads.*": "the same",
    "stderr.*": "for the bot's author; what a verdict quotes of it is in the fact of its end",
    "started_at": "the hour of the day; all times count from it",
    "host": "where it was played",
    "runtime_settings": "what a bot's runtime was told of its limits",
    "host_speed": "how fast that is; what a turn was given is in the control",
    "versions": "what it was played with",
    "versions.*": "the same",
    "cores": "where it was played",
    "cores.*": "the same",
    "sandbox": "how the bots were confined; what they did is in the wire log",
    "judge": "the version of the judge's rules: another one that gives the same verdict",
    "limits.file_mb": "the system holds the bot to it, without telling us",
    "limits.scratch_mb": "the same",
    "kept_files.*": "for the bot's author",
    "limits.directory_mb": "the same",
    "limits.directory_files": "a bot over it is reported as a fact",
    "limits.stderr_bytes": "how much of standard error is kept",
    "limits.end_grace_s": "how long we waited after END",
    "cpu_us.*": "a total for people: each turn's own is with its move",
    "off_turn_cpu_us.*": "for people: nothing off turn is charged",
}


# A model of turns and time controls of its own, far simpler than the judge's, to prove the rest by.


@dataclass
class Turn:
    """From the line that gives it to the line that ends it."""

    player: int
    begin: Path_
    began_us: int
    end: Path_ | None = None
    ended_us: int | None = None
    heard: int | None = None
    """Which wire line ended it."""
    early: bool = False
    """Whether that line was there before the turn, which then took no time."""


def turns(record: GameRecord) -> list[Turn]:
    """All turns; the last one may have no end."""
    found: list[Turn] = []
    open_: Turn | None = None
    early: tuple[list[int], list[int]] = ([], [])

    def begin(player: int, path: Path_, at_us: int) -> None:
        nonlocal open_
        open_ = Turn(player, path, at_us)
        found.append(open_)
        if early[player]:
            open_.heard, open_.early, open_.end, open_.ended_us = early[player].pop(0), True, path, at_us
            open_ = None

    for index in range(len(record.wire) + 1):
        for number, fact in enumerate(record.facts):
            if fact.after == index and (fact.name, fact.player) == ("Taken", 0) and not record.opening:
                begin(0, ("facts", number, "at_us"), fact.at_us)
        if index == len(record.wire):
            break
        line = record.wire[index]
        if line.direction == "to" and line.line.startswith("CHANGE;") and line.line.endswith(";YOU"):
            begin(line.player, ("wire", index, "at_us"), line.at_us)
        elif line.direction == "from" and open_ is not None and open_.player == line.player:
            open_.end, open_.ended_us, open_.heard = ("wire", index, "at_us"), line.at_us, index
            open_ = None
        elif line.direction == "from":
            early[line.player].append(index)
        asked = {other.player for other in record.wire[: index + 1] if other.direction == "to"}
        if not record.opening and not found and 0 in asked and early[0]:
            begin(0, ("wire", index, "at_us"), line.at_us)  # it spoke at START: it has taken it
    return found


def charge(record: GameRecord, move: MoveRecord, wall_us: int, free_us: int) -> int:
    """What is charged, by the formula of referee/judge/clock.py."""
    if record.control.clock == FAIR and move.cpu_us is not None:
        fair_us = wall_us - (move.wait_us or 0) - (move.referee_wait_us or 0)
        wall_us = min(wall_us, max(fair_us, move.cpu_us))
    return max(0, wall_us - free_us)


@dataclass
class Clocks:
    """The time controls of a game, move by move."""

    record: GameRecord
    fits: bool = True
    """Whether every move is charged what its row says."""
    shown: list[str] = dataclasses.field(default_factory=list)
    """The TIME lines that are due."""
    story: list[str] = dataclasses.field(default_factory=list)
    """What each look at the clock and each end of a turn found: in time or not."""

    def __post_init__(self) -> None:
        record, control = self.record, self.record.control
        self.left = [control.game_s, control.game_s]
        setup_us = round(control.setup_s * 1e6)
        self.free_us = [setup_us, setup_us if control.ponder == SUSPEND else 0]
        played = turns(record)
        for index, turn in enumerate(played):
            player = turn.player
            if "time" in record.players[player].capabilities:
                own, other = (
                    control.move_s if self.left[side] is None else self.left[side]
                    for side in (player, 1 - player)
                )
                self.shown.append(f"TIME;{int((own or 0) * 1000)};{int((other or 0) * 1000)}")
            self._look(turn, played[index + 1] if index + 1 < len(played) else None)
            if index >= len(record.moves):
                break
            move = record.moves[index]
            spent_us = charge(record, move, move.wall_us, self.free_us[player])
            self.fits &= spent_us == move.charged_us
            self.free_us[player] = 0
            left = self.left[player]
            if left is not None:
                self.left[player] = max(0.0, left - spent_us / 1e6) + control.increment_s

    def _look(self, turn: Turn, following: Turn | None) -> None:
        """Follow the deadline of a turn through all that put it off."""
        record, limit_us, free_us = self.record, self.limit_us(turn.player), self.free_us[turn.player]
        deadline_us = turn.began_us + free_us + limit_us
        until_us = 10**12 if following is None else following.began_us
        for fact in record.facts:
            if fact.name not in ("TimePassed", "LineReceived") or not turn.began_us < fact.at_us <= until_us:
                continue
            wall_us = fact.at_us - turn.began_us
            spent_us = charge(record, MoveRecord(0, "", wall_us, 0, *(fact.data[1] or ())), wall_us, free_us)
            queued = fact.data[2:] == ("queued",) and fact.data[1][0] <= limit_us
            self.story.append(f"past {fact.at_us > deadline_us} late {spent_us > limit_us and not queued}")
            deadline_us = fact.at_us + max(limit_us - spent_us, 10_000 if queued else 1000)
        if turn.ended_us is not None:
            self.story.append(f"past {turn.ended_us > deadline_us}")
        elif record.facts and record.facts[-1].name != "TimePassed":
            self.story.append(f"past {record.facts[-1].at_us > deadline_us}")

    def limit_us(self, player: int) -> int:
        """Of this player's next turn."""
        limits = [limit for limit in (self.record.control.move_s, self.left[player]) if limit is not None]
        return round((min(limits) + self.record.control.margin_s) * 1e6)

    @property
    def tells_the_same(self) -> bool:
        told = [line.line for line in self.record.wire if line.line.startswith("TIME;")]
        return told == self.shown


def by_time(record: GameRecord) -> bool:
    """Whether the game was lost by time."""
    return record.result.reason in (Reason.TIMEOUT, Reason.START)


def last_turn(record: GameRecord) -> Turn | None:
    """The turn in which the game was lost, if there is one."""
    played = turns(record)
    return played[len(record.moves)] if len(played) > len(record.moves) else None


def started_within(record: GameRecord) -> bool:
    """Whether both bots took their START before the start limit."""
    start_us = record.control.start_s * 1e6
    since_us = 0
    for fact in record.facts:
        if fact.name == "Taken":
            if fact.at_us - since_us > start_us:
                return False
            since_us = fact.at_us
    if sum(fact.name == "Taken" for fact in record.facts) < 2 and record.facts:
        return record.facts[-1].at_us - since_us <= start_us and record.result.fault != "start-limit"
    return record.result.fault != "start-limit"


def sentence_times(record: GameRecord) -> tuple[str, ...]:
    """The times that the sentence on a lost game names, by the model."""
    turn = last_turn(record)
    if turn is None or record.result.reason is not Reason.TIMEOUT:
        return ()
    clocks = Clocks(record)
    fact = record.facts[-1]
    usage = fact.data[1] if fact.name in ("TimePassed", "LineReceived") else None
    wall_us = fact.at_us - turn.began_us
    free_us = clocks.free_us[turn.player]
    move = MoveRecord(turn.player, "", wall_us, 0, *(usage or ()))
    spent_us = charge(record, move, wall_us, free_us)
    late = spent_us > clocks.limit_us(turn.player)
    host_s = max(0.0, wall_us / 1e6 - free_us / 1e6 - spent_us / 1e6)
    named = f"{host_s:.3f} {spent_us / 1e6:.3f}" if host_s >= 0.0005 else "none"
    counted = usage is not None and record.control.clock == FAIR
    control, left = record.control, clocks.left[turn.player]
    limits: tuple[str, ...] = () if control.move_s is None else (f"{control.move_s:g}",)
    if left is not None and (control.move_s is None or left < control.move_s):
        limits = (f"{control.game_s:g}", f"{control.increment_s:g}", f"{left:.3f}")
    return (str(late), f"{wall_us / 1e6:.3f}", f"{free_us / 1e6:g}", named if counted else "", *limits)


def control_still_fits(one: Alteration) -> bool:
    after = one.after
    clocks = Clocks(after)
    return (
        clocks.fits
        and clocks.tells_the_same
        and clocks.story == Clocks(one.before).story
        and started_within(after) == started_within(one.before)
        and (after.result.fault != "start-limit" or one.path[-1] != "start_s")
        and sentence_times(after) == sentence_times(one.before)
    )


def put_off(record: GameRecord, number: int) -> bool:
    """Whether a look at the clock only put a deadline off: more happened then."""
    fact = record.facts[number]
    return fact.name == "TimePassed" and (number + 1 < len(record.facts) or not by_time(record))


def time_decides_nothing(one: Alteration) -> bool:
    """No move's time is counted from it or up to it, and no sentence names it."""
    decisive = set()
    for turn, _ in zip(turns(one.before), one.before.moves, strict=False):
        if not turn.early:
            decisive |= {turn.begin, turn.end}
    return one.path not in decisive and sentence_times(one.after) == sentence_times(one.before)


def quoted(text: str) -> str:
    """What a sentence shows of a text."""
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."


def data_decides_nothing(one: Alteration) -> bool:
    """What a fact carries and no sentence shows."""
    fact = one.before.facts[one.row]
    column = one.path[3] if len(one.path) > 3 else None
    if put_off(one.before, one.row):
        return len(one.path) > 3
    if fact.name == "LineTooLong":
        return quoted(one.old) == quoted(one.new) and len(one.old) == len(one.new)
    if one.before.result.reason in (Reason.MEMORY, Reason.PROTOCOL) and fact.name == "BotExited":
        # Of a bot near its limit only that and its signal count; of the opponent of a bot that lost, nothing.
        return column in (1, 3) or fact.player == one.before.result.winner
    if fact.name == "OutputClosed":
        return one.before.result.fault != "closed-output"
    if fact.name == "TimePassed":
        turn = last_turn(one.before)
        loser = None if turn is None else turn.player
        if column == 0:
            return one.before.result.reason is Reason.START or one.path[4] != loser
        if column == 1:
            same = sentence_times(one.before) == sentence_times(one.after)
            return len(one.path) > 4 and one.new is not None and (turn is None or same)
        if loser is None:
            return not {one.old, one.new} & {"running", "stopped"}
        return bool(fact.data[0][loser]) or ACTIVITY_ADVICE.get(one.old) == ACTIVITY_ADVICE.get(one.new)
    if fact.name == "LineReceived" and column == 1 and one.before.result.reason is Reason.TIMEOUT:
        return one.new is not None and sentence_times(one.before) == sentence_times(one.after)
    return fact.name == "LineReceived" and column == 1 and not by_time(one.after)


def counters_decide_nothing(one: Alteration) -> bool:
    """The formula gives the same, and so does each look at the clock."""
    before, after = Clocks(one.before), Clocks(one.after)
    counters = one.after.moves[one.row][4:]
    return None not in counters and after.fits and after.tells_the_same and after.story == before.story


def heard(record: GameRecord) -> list[tuple[int, str, int]]:
    """The lines that were taken for replies, and how long their turns were."""
    lines = [(turn, record.wire[turn.heard]) for turn in turns(record) if turn.heard is not None]
    return [(line.player, line.line, (turn.ended_us or 0) - turn.began_us) for turn, line in lines]


def unheard_line(one: Alteration) -> bool:
    """Whether it is a line that came early: its bot's turn for it never came, before and now."""
    rows = one.before.wire[one.row : one.row + (2 if one.what == "swapped" else 1)]
    return all(line.direction == "from" for line in rows) and heard(one.before) == heard(one.after)


def came_after_the_complaint(one: Alteration) -> bool:
    """A bot's line after the one that lost the game, while its cause was awaited."""
    turn, rows = last_turn(one.before), (one.before.wire[one.row], one.after.wire[one.row])
    came_later = turn is not None and turn.heard is not None and one.row > turn.heard
    from_bots = all(line.direction == "from" for line in rows)
    by_protocol = one.before.result.reason is Reason.PROTOCOL
    return by_protocol and came_later and from_bots and heard(one.before) == heard(one.after)


def first_player_was_never_waited_for(one: Alteration) -> bool:
    """Its having taken START; but the game was lost by a fault before it made a move, by no limit of time."""
    fact = one.before.facts[one.row]
    return (fact.name, fact.player) == ("Taken", 0) and not one.before.moves and not by_time(one.before)


def output_ended_off_turn(one: Alteration) -> bool:
    """And its bot never came to its turn after that."""
    return one.before.facts[one.row].name == "OutputClosed" and one.before.result.fault != "closed-output"


def said_after_the_verdict(one: Alteration) -> bool:
    """A line to a bot that nothing came after but others of that kind."""
    later = one.before.wire[one.row :]
    said = all(line.direction == "to" for line in later)
    return said and not any(fact.after > one.row for fact in one.before.facts) and len(later) <= 4


PROVEN: dict[str, tuple[str, Callable[[Alteration], bool]]] = {
    "players.*.name": (
        "the sentence does not begin with it: it names only who won, or lost by a fault",
        lambda one: not one.before.result.detail.startswith(f"{one.old} ("),
    ),
    "players.*.capabilities": (
        "only `time` changes what a bot is told, and only one that comes to its turn",
        lambda one: Clocks(one.after).tells_the_same,
    ),
    "players.*.capabilities.*": (
        "the same",
        lambda one: Clocks(one.after).tells_the_same,
    ),
    "duration_us": (
        "the game's end was later than all that happened in it, before and now",
        lambda one: one.new >= max([line.at_us for line in one.after.wire] or [0]),
    ),
    "exit_status.*": (
        "nobody was told of the process's end: it came after the verdict",
        lambda one: ("BotExited", one.path[1]) not in {(fact.name, fact.player) for fact in one.before.facts},
    ),
    "clock": (
        "no counters were read",
        lambda one: (
            one.new in CLOCKS
            and all(move.cpu_us is None for move in one.before.moves)
            and all(
                fact.name not in ("TimePassed", "LineReceived") or fact.data[1] is None
                for fact in one.before.facts
            )
        ),
    ),
    "limits.memory_mb": (
        "no bot passed it, and no sentence names it: it does not where nothing is limited",
        lambda one: (
            one.before.result.fault != "memory-limit"
            and (one.before.result.fault != "out-of-memory" or one.before.sandbox == "off")
        ),
    ),
    "limits.processes": (
        "no bot passed it",
        lambda one: one.before.result.fault != "process-limit",
    ),
    "limits.line_bytes": (
        "no line was longer",
        lambda one: (
            one.new >= max([len(line.line) for line in one.after.wire if line.direction == "from"] or [0])
        ),
    ),
    "limits.wire_bytes": (
        "no bot sent more",
        lambda one: (
            one.before.result.fault != "wire-limit"
            and one.new >= sum(len(line.line) + 1 for line in one.after.wire if line.direction == "from")
        ),
    ),
    "control.*": (
        "by a model of its own every turn is charged the same, no limit is passed, no sentence is another",
        control_still_fits,
    ),
    "moves.*.cpu_us": ("min and max of the formula make it count for nothing", counters_decide_nothing),
    "moves.*.wait_us": ("the same", counters_decide_nothing),
    "moves.*.referee_wait_us": ("the same", counters_decide_nothing),
    "wire.*.at_us": (
        "no move's time is counted from it or up to it, and no sentence names it",
        time_decides_nothing,
    ),
    "facts.*.at_us": ("the same", time_decides_nothing),
    "facts.*.data.*": ("no sentence shows it", data_decides_nothing),
    "wire.* dropped": (
        "it was said after the verdict, or never heard",
        lambda one: unheard_line(one) or said_after_the_verdict(one),
    ),
    "wire.* doubled": ("nor was the second one heard", unheard_line),
    "wire.* swapped": ("neither was heard", unheard_line),
    "wire.*.player": ("the game was lost before it, and it told no cause", came_after_the_complaint),
    "wire.*.line": ("it was never heard", unheard_line),
    "facts.*.after": ("an output may end off turn at any time", output_ended_off_turn),
    "facts.*.data": ("no sentence shows it", output_ended_off_turn),
    "facts.* dropped": (
        "it put a deadline off, as the next look did; or an output ended off turn; or it was not waited for",
        lambda one: (
            put_off(one.before, one.row)
            or output_ended_off_turn(one)
            or first_player_was_never_waited_for(one)
        ),
    ),
    "facts.* doubled": ("it put a deadline off twice", lambda one: put_off(one.before, one.row)),
}
"""Fields that matter in some records and not in others: why an altered one does not, and the proof."""

NEVER = ("moves.*.player", "moves.*.move", "moves.*.wall_us", "moves.*.charged_us", "final_state", "result.*")
"""What a verdict is made of: altered, it is found, always."""


def why_irrelevant(one: Alteration) -> str | None:
    """The reason why an alteration cannot change a verdict; None if there is none."""
    for pattern, why in IRRELEVANT.items():
        if fnmatchcase(one.pattern, pattern) and one.what == "field":
            return why
    for pattern, (why, holds) in PROVEN.items():
        if (
            fnmatchcase(one.pattern, pattern)
            and pattern.endswith(one.what) == (one.what != "field")
            and holds(one)
        ):
            return why
    return None


def check_altered(one: Alteration) -> None:
    """It is found, or proven to be irrelevant."""
    found = check_replay(one.after)
    assert all(str(complaint) and "\n" not in str(complaint) for complaint in found)
    if found:
        return
    assert not any(fnmatchcase(one.pattern, never) for never in NEVER), (one.path, one.old, one.new)
    values = (one.old, one.new) if one.what == "field" else ()
    assert why_irrelevant(one), (one.path, one.what, *values, one.before)


def test_nothing_that_a_verdict_is_made_of_is_in_the_tables() -> None:
    for never in NEVER:
        assert not any(
            fnmatchcase(never, pattern) for pattern in (*IRRELEVANT, *PROVEN) if " " not in pattern
        )


KINDS = [
    *("to the end", "slow", "illegal", "hang", "exit", "long line", "never reads", "no program"),
    *(maker.__name__ for maker in SYNTHETIC),
]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_altered_is_found_or_irrelevant(kind: str) -> None:
    """Every field of every row, each in several ways."""
    for one in alterations(kinds()[kind]):
        check_altered(one)


VALUES = (
    st.none()
    | st.integers(-(2**40), 2**40)
    | st.floats(0, 1e6)
    | st.text(max_size=12)
    | st.sampled_from(Reason)
)


@given(st.sampled_from(KINDS), st.data())
@settings(max_examples=300)
def test_any_value_anywhere_is_found_or_irrelevant(kind: str, data: st.DataObject) -> None:
    record = kinds()[kind]
    path = data.draw(st.sampled_from(list(leaves(record))))
    old = at(record, path)
    near = VALUES
    if type(old) is int:
        near = st.integers(-2000, 2000).map(lambda by: old + by) | VALUES
    one = altered_at(record, path, data.draw(near))
    assume(one is not None)
    assert one is not None
    check_altered(one)


def test_columns_that_are_altered_in_pairs_are_found() -> None:
    """One may alter the wall time and the charge together; the wire log still has the stamps."""
    record = kinds()["to the end"]
    moves = [move._replace(wall_us=move.wall_us + 5, charged_us=move.charged_us + 5) for move in record.moves]
    assert complaints(replace(record, moves=moves))
    loser = replace(record.result, winner=1 - (record.result.winner or 0))
    assert complaints(replace(record, result=loser))


# What is said, and to whom.


def test_complaints_by_hand() -> None:
    record = opened()
    move = record.moves[1]._replace(wall_us=1)
    altered = replace(record, moves=[record.moves[0], move, *record.moves[2:]])
    assert complaints(altered) == [f"move 2: wall_us: recorded 1, but {record.moves[1].wall_us} follows"]
    result = replace(record.result, winner=None)
    assert complaints(replace(record, result=result)) == [
        f"winner: recorded None, but {record.result.winner} follows"
    ]


def test_other_words_of_another_version_are_a_remark() -> None:
    record = opened()
    other = replace(record, result=replace(record.result, detail="Ada won"), versions={"kalarena": "9"})
    assert [one.remark for one in check_replay(other, "9")] == [False]
    assert [one.remark for one in check_replay(other, "10")] == [True]
    wrong = replace(other, result=replace(other.result, winner=None))
    assert {one.what: one.remark for one in check_replay(wrong, "10")} == {"detail": True, "winner": False}


def test_records_of_older_judges_follow_by_their_own_rules() -> None:
    events: tuple[Event, ...] = (
        LimitPassed(1, 0.25, "memory", 600, 512),
        BotExited(0, 0.25, 1, "", "MemoryError"),
        BotExited(0, 0.25, 1, "", "OSError: [Errno 30] Read-only file system: 'a'"),
        LineReceived(0, 0.25, "#"),
    )
    for event in events:
        match: Match[Any, Any] = Match(parse_game(SMALL), JUDGED_CONTROL, ("Ada", "Bob"), judge=1)
        judged = begun(game=SMALL)
        judged.match = match
        judged._carry_out(match.start(0.0))
        judged.tell(event)
        record = recorded(match)
        assert record.result.reason in (Reason.EXIT, Reason.PROTOCOL)
        check_clean(record)
        view = record.to_json()
        del view["judge"]  # as older versions wrote it
        assert complaints(GameRecord.from_json(view)) == []


def test_records_of_schema_1_cannot_be_judged_again() -> None:
    (complaint,) = complaints(replace(opened(), sandbox=""))
    assert complaint.startswith("schema: recorded facts as text alone, as records of schema 1 have them")


def test_what_makes_the_judge_raise_is_a_complaint() -> None:
    record = opened()
    for altered in (
        replace(record, game="chess"),
        replace(record, opening="99"),
        replace(record, players=cast("Any", (record.players[0],))),
        replace(record, facts=[Fact(0, "Nonsense", 1, 0), *record.facts]),
        replace(record, wire=[WireLine(0, "from", cast("Any", None), 1), *record.wire]),
        replace(record, limits=cast("Any", None)),
        replace(record, result=cast("Any", None)),
        replace(record, moves=cast("Any", [None])),
        replace(record, control=cast("Any", None)),
    ):
        assert complaints(altered)


@given(st.sampled_from(KINDS))
def test_json_and_back(kind: str) -> None:
    record = kinds()[kind]
    assert GameRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.parametrize("missing", [(True, False), (False, True), (True, True)])
async def test_a_bot_that_cannot_be_run(missing: tuple[bool, bool], tmp_path: Path) -> None:
    """Whichever it is, nobody was told anything before."""
    there = Player("there", (sys.executable, "-c", "input()"), str(tmp_path))
    gone = Player("gone", (str(tmp_path / "gone"),), str(tmp_path))
    players = (gone if missing[0] else there, gone if missing[1] else there)
    record = await play_game(Job("gone", "manchester", players, TimeControl(move_s=1)))
    assert record.result.fault == "not-runnable"
    check_clean(record)
