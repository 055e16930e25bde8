"""Records thousands of games of all reasons with one version of the referee, and compares another with it.

    python -m tests.corpus.recorded record FILE [--games 2200] [--at-once 2]
    python -m tests.corpus.recorded verify FILE
    python -m tests.corpus.recorded compare FILE [--at-once 2]

``record`` plays games of scripted bots and of functions, and conformance games, and writes their records with
their observations into one compressed file.  ``verify`` judges all of them again.  ``compare`` plays the same
games with the code of today, and prints the games whose verdict, conversation or observations differ.  Times
are never compared.  The order in which the system runs two processes decides some games; they are listed, and
are to be compared with a second recording by the same version.
"""

import argparse
import gzip
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import trio

from referee.conformance.game import play_conformance_game
from referee.conformance.script import TestOpponent
from referee.errors import RefereeError
from referee.games.catalog import AnyGame, parse_game
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.players.function_player import FunctionPlayer
from referee.playing import Job, play_alone, play_game
from tests.support.confinement import reading_bot, sandbox_of

DOES = (
    *("", "empty-pit", "pit-8", "pit-0", "negative", "no-argument", "empty-argument", "extra-field"),
    *("inner-space", "leading-space", "trailing-space", "crlf", "swap-crlf", "blank", "lower-case", "debug"),
    *("swap", "swap-as-move", "nul", "overflow", "fullwidth-digit", "latin-1", "long-line", "endless-line"),
    *("hang", "no-line-feed", "exit", "exit-off-turn", "kill-self", "close-output", "close-input"),
    *("child-keeps-output", "plus", "zero-padded", "pieces", "stderr-flood", "stderr-first"),
    *("talk-after-end", "stay-after-end", "move-at-start", "exit-at-once", "never-read", "duplicate"),
    *("many-lines",),
)
READS_TWO_LINES = "import os, sys, time\nfor _ in (1, 2): line = sys.stdin.readline()\n"
PRINTS_TRACEBACK = "print('Traceback (most recent call last):\\n  File \"x\", line 1')\n"
PROGRAMS = {
    "memory-limit": READS_TWO_LINES
    + "held = bytearray(80 << 20)\nfor at in range(0, 80 << 20, 4096): held[at] = 1\n"
    "time.sleep(9)",
    "memory-error": READS_TWO_LINES + "raise MemoryError",
    "no-space": READS_TWO_LINES + "raise OSError(28, 'No space left on device')",
    "too-many-files": READS_TWO_LINES + "kept = [os.dup(0) for _ in range(1 << 21)]",
    "prints-error": READS_TWO_LINES + PRINTS_TRACEBACK + "print('MemoryError', flush=True)\nos._exit(1)",
    "prints-and-stays": READS_TWO_LINES + PRINTS_TRACEBACK + "print('KeyError', flush=True)\ntime.sleep(9)",
    "not-reading": "import os, sys, time\nline = sys.stdin.readline()\n"
    "fill = os.open('/proc/self/fd/0', os.O_WRONLY | os.O_NONBLOCK)\n"
    "try:\n    while True: os.write(fill, b'x' * 4096)\nexcept BlockingIOError: pass\n"
    "print('MOVE;1\\n' * 3, end='', flush=True)\ntime.sleep(9)",
    "many-processes": READS_TWO_LINES + "import subprocess\n"
    "kept = [subprocess.Popen(['sleep', '9']) for _ in range(9)]\ntime.sleep(9)",
    "talks-on": "import os, sys\nfor line in sys.stdin: print('MOVE;1\\nMOVE;2', flush=True)",
}
"""Bots that end by a limit or by their runtime's message, by name."""
NOT_RUNNABLE = ("/nowhere/bot", "/etc/passwd", "/tmp")
FUNCTIONS = (
    "random",
    "random",
    "random",
    "last",
    "raises",
    "exits",
    "far",
    "nonsense",
    "blank",
    "sleeps",
    "waits",
)
GAMES = (
    "manchester",
    "manchester(4,3)",
    "kalah(3,2)",
    "kalah(6,4)",
    "kalamala+cap=20",
    "kalamala",
    "bga(2,2)",
)
QUICK = TimeControl(move_s=0.4, margin_s=0.05, start_s=0.8, setup_s=0.05)
LIMITS = Limits(end_grace_s=0.1, memory_mb=32, processes=8)
UNSTEADY = ("TimePassed", "Taken")
"""Facts whose number depends on times."""
OTHER = Player("examiner", ("examiner",), "/")


class Case(NamedTuple):
    """One game of the corpus: enough to play it again."""

    kind: str
    """``process``, ``function`` or ``conformance``."""
    game: str
    names: tuple[str, str]
    """Behaviour of each player."""
    seed: int
    options: dict[str, Any]


def cases(games: int) -> Iterator[Case]:
    """Yield the games of a corpus, the same ones each time."""
    rng = random.Random(1)
    for number in range(games):
        kind = ("process", "conformance", "function", "function")[number % 4]
        does = (DOES + tuple(PROGRAMS) + NOT_RUNNABLE)[
            number // 4 % (len(DOES) + len(PROGRAMS) + len(NOT_RUNNABLE))
        ]
        options: dict[str, Any] = {"reply": rng.choice((1, 1, 2, 3)), "status": rng.choice((0, 1, 3))}
        if kind == "function":
            game = rng.choice(GAMES)
            options["ponder"] = rng.choice(("allow", "measure", "suspend"))
            names = (rng.choice(FUNCTIONS), rng.choice(FUNCTIONS))
            options["opening"] = rng.choice(("", "", "1 2")) if game.startswith(("man", "kalah")) else ""
        else:
            game = "manchester"
            options["tier"] = rng.choice(("bare", "bare", "bare", "weak"))
            options["game_s"] = rng.choice((None, None, 1.5))
            index = rng.randrange(2)
            other = "" if does not in ("exit-off-turn",) else "slow"
            names = (does, other) if index == 0 else (other, does)
            if kind == "conformance":
                options["index"] = index
                options["stops_at"] = rng.choice((None, None, 1, 3))
                options["leaves_in"] = rng.choice((None, None, 1, 2)) if options["stops_at"] is None else None
                options["plays_on"] = rng.random() < 0.3
                options["waits"] = rng.random() < 0.5
                options["ponder"] = rng.choice(("measure", "suspend"))
        yield Case(kind, game, names, number, options)


def bot_of(what: str, options: dict[str, Any], name: str) -> Player:
    """Return the bot that does this."""
    if what in NOT_RUNNABLE:
        return Player(name, (what,), "/")
    if what in PROGRAMS:
        return Player(name, (sys.executable, "-S", "-E", "-c", PROGRAMS[what]), "/")
    numbers = ("--reply", str(options["reply"]), "--status", str(options["status"]))
    return reading_bot("--do", what, *numbers, name=name)


def function_of(what: str, seed: int) -> FunctionPlayer:
    """Return the function that does this; all its choices follow from the seed."""
    rng = random.Random(seed)
    fails_at = rng.randrange(4)
    calls = 0

    def choose(game: AnyGame, state: Any) -> Any:
        nonlocal calls
        calls += 1
        moves = list(game.legal_moves(state))
        if what == "waits":
            time.sleep(0.003)
        if what in ("random", "waits") or calls <= fails_at:
            return rng.choice(moves)
        if what == "raises":
            raise KeyError("no idea")
        if what == "exits":
            raise SystemExit(3)
        if what == "sleeps":
            time.sleep(0.9)
        return {"far": "99", "nonsense": "x", "blank": ""}.get(what, moves[-1])

    return FunctionPlayer(choose, what)


def opponent_of(case: Case) -> TestOpponent:
    """Return the script of the other player of a conformance game."""
    rng = random.Random(case.seed)
    names = ("stops_at", "leaves_in", "waits")
    return TestOpponent(
        lambda game, state: rng.choice(list(game.legal_moves(state))),
        plays_on_after_swap=case.options["plays_on"],
        **{name: case.options[name] for name in names},
    )


def play(case: Case) -> tuple[bytes, dict[str, Any]]:
    """Play a game; return its packed record, and its observations as plain values."""
    options = case.options
    control = QUICK
    if options.get("game_s") or options.get("ponder"):
        control = TimeControl(
            QUICK.move_s,
            options.get("game_s"),
            margin_s=QUICK.margin_s,
            start_s=QUICK.start_s,
            setup_s=QUICK.setup_s,
            ponder=options.get("ponder", "measure"),
        )
    key = f"{case.kind}-{case.seed}"
    try:
        if case.kind == "function":
            functions = {index: function_of(name, case.seed) for index, name in enumerate(case.names)}
            players = (functions[0].identity, functions[1].identity)
            job = Job(key, parse_game(case.game).name, players, control, LIMITS, options["opening"])
            return trio.run(
                partial(play_game, job, players={index: one.start for index, one in functions.items()})
            ).to_msgpack(), {}
        bots = [bot_of(name, options, ("Ada", "Bob")[index]) for index, name in enumerate(case.names)]
        if case.kind == "conformance":
            bots[1 - options["index"]] = OTHER
        job = Job(key, case.game, (bots[0], bots[1]), control, LIMITS, sandbox=sandbox_of(options["tier"]))
        if case.kind == "process":
            return play_alone(job).to_msgpack(), {}
        found = play_conformance_game(job, options["index"], opponent_of(case))
        return found.record.to_msgpack(), plain(found.observed)
    except RefereeError as error:
        return b"", {"error": str(error)}


def plain(observed: Any) -> dict[str, Any]:
    """Return the observations that do not depend on times."""
    return {
        "stderr": observed.stderr_bytes,
        "before": observed.stderr_before_start,
        "fragmented": [line.line for line in observed.fragmented_lines],
        "unexpected": [list(line) if isinstance(line, tuple) else [line.line, line.after]
                       for line in observed.unexpected_lines],
        "after_end": [observed.after_end, observed.after_end_bytes, observed.after_end_lines],
        "was_on_turn": observed.was_on_turn,
        "ended": observed.ended_us is not None,
        "activity": observed.activity,
        "left": [observed.left_behind, observed.holds_output],
    }  # fmt: skip


def essence(packed: bytes, seen: dict[str, Any]) -> dict[str, Any]:
    """Return what two versions of the referee must agree on."""
    if not packed:
        return seen
    record = GameRecord.from_msgpack(packed)
    result = record.result
    return {
        "verdict": [result.winner, result.reason.value, result.fault, result.score],
        "moves": [move.move for move in record.moves],
        "wire": [
            [line.line for line in record.wire if (line.player, line.direction) == conversation]
            for conversation in ((0, "to"), (0, "from"), (1, "to"), (1, "from"))
        ],
        "facts": [[fact.player, fact.name] for fact in record.facts if fact.name not in UNSTEADY],
        "state": record.final_state,
        "exit": list(record.exit_status),
        "stderr": [text.splitlines()[-1:] for text in record.stderr],  # a traceback has the code's own lines
        **seen,
    }


def play_all(games: int, at_once: int) -> list[tuple[bytes, dict[str, Any]]]:
    """Play all games in fresh processes."""
    context = multiprocessing.get_context("fork")
    with context.Pool(at_once, maxtasksperchild=100) as pool:
        return pool.map(play, list(cases(games)), chunksize=20)


def load(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the games of a file."""
    found: list[tuple[bytes, dict[str, Any]]] = msgpack.unpackb(gzip.decompress(path.read_bytes()))
    return found


def reasons(played: list[tuple[bytes, dict[str, Any]]]) -> Counter[str]:
    """Count the reasons of the games' ends."""
    return Counter(
        GameRecord.from_msgpack(packed).result.reason.value if packed else "fault of the host"
        for packed, _ in played
    )


def verify(path: Path) -> int:
    """Judge all games of a file again; return the number of complaints."""
    complaints = 0
    for number, (packed, _) in enumerate(load(path)):
        if not packed:
            continue
        record = GameRecord.from_msgpack(packed)
        found = [str(complaint) for complaint in check_replay(record)]
        if record.to_msgpack() != packed:
            found.append("packed again, the record has other bytes")
        for text in found:
            complaints += 1
            print(f"[{number}] {record.key}: {text}")
    return complaints


def compare(path: Path, at_once: int) -> int:
    """Play the games of a file again; return the number that differ."""
    recorded = load(path)
    played = play_all(len(recorded), at_once)
    differences: Counter[str] = Counter()
    for case, before, after in zip(cases(len(recorded)), recorded, played, strict=True):
        one, other = essence(*before), essence(*after)
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        if after[0] and (complaints := check_replay(GameRecord.from_msgpack(after[0]))):
            names.append("verify")
            one["verify"], other["verify"] = "", str(complaints[0])
        if names:
            name = names[0]
            differences[name] += 1
            print(f"{case.kind} {case.seed} {case.names} {case.options}: {', '.join(names)}")
            print(f"    {name}: {one.get(name)!r:.300}\n    {'now':>{len(name)}}: {other.get(name)!r:.300}")
    print(dict(differences))
    return differences.total()


def main() -> None:
    """Read the command line, record, verify or compare; exit with 1 if there are differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.recorded", description=__doc__)
    parser.add_argument("what", choices=("record", "verify", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--games", type=int, default=2200)
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    began, found = time.monotonic(), 0
    if options.what == "record":
        played = play_all(options.games, options.at_once)
        options.file.write_bytes(gzip.compress(msgpack.packb(played)))
        print(
            dict(reasons(played)), [reason.value for reason in Reason if reason.value not in reasons(played)]
        )
    else:
        found = verify(options.file) if options.what == "verify" else compare(options.file, options.at_once)
        print(f"{len(load(options.file))} games, {found} with differences")
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
