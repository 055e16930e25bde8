"""The dress rehearsal of `kalarena tournament run`, which detects bots that cannot run confined."""

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from click.testing import Result

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, MatchResult, Player, Reason
from referee.sandbox.bubblewrap import Sandbox
from tests.support.builders import (
    KALARENA,
    RUN_LIMIT_S,
    invoke,
    lost_by,
    make_record,
    one_object,
    write_tournament,
)
from tests.support.confinement import needs_sandbox
from tests.support.paths import REPOSITORY_ROOT
from tournaments.checking.advice import ADVICE
from tournaments.cli.tournament import run as run_command
from tournaments.config.tournament import Tournament
from tournaments.engines.base import EngineError
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.running.rehearsal import KEY, WIDTH, Problem, problem_of, problem_table, rehearse

NETWORK = "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=2)\n"
DIES = "import sys\nsys.exit('no licence file')\n"
HOARDS = "import sys\nhoard = bytearray(300 << 20)\nfor line in sys.stdin: pass\n"
NOISY = "print('Picked up JAVA_TOOL_OPTIONS', flush=True)\nimport time\ntime.sleep(60)\n"
ILLEGAL = "import sys\nfor line in sys.stdin:\n    print('MOVE;9', flush=True)\n"
SLOW = "import sys, time\nfor line in sys.stdin:\n    time.sleep(60)\n"
FINE = (REPOSITORY_ROOT / "sample_bots" / "first_legal.py").read_text(encoding="utf-8")

CUP = """
name = "Cup"
game = "kalah(3,2)"
untrusted = true
bots = [{bots}]
concurrency = 2

[limits]
memory_mb = 100

[time]
move_s = 0.5
"""


def cup(folder: Path, **programs: str) -> Path:
    """A tournament of untrusted bots, each with its program text."""
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    names = ", ".join(f'"{name}.py"' for name in programs)
    return write_tournament(folder, CUP.format(bots=names))


def run(folder: Path, *options: str, out: str = "out") -> Result:
    return invoke("tournament", "run", folder / "cup.toml", "--out", folder / out, *options)


def kept(folder: Path) -> list[str]:
    with Store(folder / "out" / "results.db", read_only=True) as store:
        return sorted(game.key for game in store.games())


def test_bots_that_cannot_run_confined_stop_the_tournament_before_its_first_game(tmp_path: Path) -> None:
    needs_sandbox()
    cup(tmp_path, network=NETWORK, dies=DIES, hoards=HOARDS, noisy=NOISY, fine=FINE, other=FINE)
    done = run(tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "4 of 6 bots cannot run confined; no game was played" in done.stderr
    table = done.stderr.split("Error: ", 1)[1]
    rows = {line.split()[0] for line in table.splitlines() if line[:1].isalpha()}
    assert {"network", "dies", "hoards", "noisy"} <= rows
    assert not {"fine", "other"} & rows
    assert all(len(line) <= WIDTH for line in table.splitlines())
    words = " ".join(table.split())
    assert "a bot in the sandbox has no network: put all that it needs into its own directory" in words
    assert "'no licence file'" in words
    assert "killed by the memory limit" in words
    assert "Picked up JAVA_TOOL_OPTIONS" in words
    assert "--no-rehearsal" in words
    assert kept(tmp_path) == []


@pytest.mark.slow
def test_each_new_bot_is_rehearsed_once(tmp_path: Path) -> None:
    """A bot may be corrected as long as no game was played; bots that have played are not rehearsed."""
    needs_sandbox()
    path = cup(tmp_path, one=DIES, two=FINE)
    assert run(tmp_path).exit_code == 2
    (tmp_path / "one.py").write_text(FINE, encoding="utf-8")
    done = run(tmp_path)
    assert (done.exit_code, len(kept(tmp_path))) == (0, 2)
    assert "Cup: rehearsal: 2 of 2 bots can run confined" in done.stderr
    path.write_text("rounds = 2\n" + path.read_text())
    done = run(tmp_path)
    assert (done.exit_code, len(kept(tmp_path))) == (0, 4)
    assert "rehearsal" not in done.stderr
    (tmp_path / "late.py").write_text(DIES, encoding="utf-8")
    assert invoke("tournament", "add", tmp_path / "out", str(tmp_path / "late.py")).exit_code == 0
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "1 of 1 bot cannot run confined" in done.stderr
    assert len(kept(tmp_path)) == 4


@pytest.mark.slow
def test_only_bots_that_must_be_confined_are_rehearsed(tmp_path: Path) -> None:
    """The option --no-rehearsal plays the tournament without it."""
    needs_sandbox()
    path = cup(tmp_path, dies=DIES, fine=FINE)
    done = run(tmp_path, "--no-rehearsal")
    assert (done.exit_code, len(kept(tmp_path))) == (0, 2)
    assert "rehearsal" not in done.stderr
    path.write_text(path.read_text().replace("untrusted = true\n", ""))
    assert "rehearsal" not in run(tmp_path, "--sandbox", "auto", out="trusted").stderr
    assert run(tmp_path, "--sandbox", "required", out="required").exit_code == 2


@pytest.mark.slow
def test_bots_that_play_badly_or_slowly_pass(tmp_path: Path) -> None:
    needs_sandbox()
    cup(tmp_path, illegal=ILLEGAL, slow=SLOW, fine=FINE)
    done = run(tmp_path, "--quiet")
    assert done.exit_code == 0
    assert "rehearsal" not in done.stderr
    assert len(kept(tmp_path)) == 6
    assert not any(key.startswith(KEY) for key in kept(tmp_path))


@pytest.mark.slow
def test_a_signal_stops_a_rehearsal(tmp_path: Path) -> None:
    needs_sandbox()
    path = cup(tmp_path, asleep="import time\ntime.sleep(600)\n", fine=FINE)
    path.write_text(path.read_text() + "start_s = 500.0\n")
    command = [str(KALARENA), "tournament", "run", "cup.toml", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + RUN_LIMIT_S
        while not list((tmp_path / "out").glob("leash-*")):
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert errors.endswith("stopped before the first game; nothing was kept\n")
    assert not list((tmp_path / "out").glob("leash-*"))


@pytest.fixture
def resumed(tmp_path: Path, restored_signals: None) -> Sequence[str | Path]:
    """The command that resumes a tournament, in which only a bot that has joined later has games to play."""
    needs_sandbox()
    path = write_tournament(tmp_path, 'game = "kalah(2,2)"\nbots = ["first_legal", "greedy"]\n')
    assert run(tmp_path, "--sandbox", "off").exit_code == 0
    assert invoke("tournament", "add", tmp_path / "out", "minimax:1", "--name", "late").exit_code == 0
    return ("tournament", "run", path, "--out", tmp_path / "out", "--sandbox", "required")


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_signal_in_the_rehearsal_of_a_resumed_tournament_keeps_its_games(
    resumed: Sequence[str | Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    async def stopped(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    monkeypatch.setattr(run_command, "rehearse", stopped)
    done = invoke(*resumed, *options)
    assert done.exit_code == 130
    assert "nothing was kept" not in done.stderr
    assert (
        "stopped with 4 of 6 games to play; the same command goes on:\n  kalarena tournament run "
        in done.stderr
    )
    if options:
        assert one_object(done.stdout)["games"] == 2
    else:
        assert "2 of 6 games" in done.stdout
    assert len(kept(tmp_path)) == 2
    assert invoke("verify", tmp_path / "out").exit_code == 0


def test_a_failed_rehearsal_of_a_resumed_tournament_does_not_deny_its_games(
    resumed: Sequence[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failed(*_: object) -> list[Problem]:
        return [Problem("late", "it ended", "")]

    monkeypatch.setattr(run_command, "rehearse", failed)
    done = invoke(*resumed)
    assert done.exit_code == 2
    assert "1 of 1 bot cannot run confined; no further game was played" in " ".join(done.stderr.split())
    assert len(kept(tmp_path)) == 2


class OneGame:
    """Engine whose games all have the same record, or fail with the same error."""

    concurrency = 3

    def __init__(self, record: GameRecord | Exception) -> None:
        self.record = record
        self.keys: list[str] = []

    async def play(self, job: object, on_start: object = None, on_snapshot: object = None) -> PackedGame:
        self.keys.append(getattr(job, "key", ""))
        if isinstance(self.record, Exception):
            raise self.record
        return PackedGame.of(self.record)


def tournament_of(*names: str) -> Tournament:
    bots = tuple(Player(name, ("/bin/true",), "/") for name in names)
    return Tournament(
        name="Cup", game="kalah(3,2)", rounds=1, ranking="points", control=TimeControl(move_s=1.0), bots=bots
    )


async def test_a_failure_of_the_host_is_no_problem_of_a_bot() -> None:
    engine = OneGame(EngineError("the worker died"))
    tournament = tournament_of("one", "two")
    assert await rehearse(tournament.bots, tournament, engine, Sandbox()) == []


async def test_a_bot_that_fails_is_tried_once_more() -> None:
    engine = OneGame(make_record(result=lost_by(Reason.EXIT, 1, "two (North) lost: it ended", "exited")))
    tournament = tournament_of("one", "two")
    counts: list[int] = []
    problems = await rehearse(tournament.bots, tournament, engine, Sandbox(), counts.append)
    assert len(problems) == 2
    assert len(set(engine.keys)) == 4
    assert counts == [1, 2]


@pytest.mark.parametrize(
    ("reason", "fault", "fails"),
    [
        (Reason.START, "start-limit", True),
        (Reason.START, "not-runnable", True),
        (Reason.EXIT, "memory-limit", True),
        (Reason.EXIT, "process-limit", True),
        (Reason.FLOOD, "long-line", True),
        (Reason.PROTOCOL, "unknown-message", True),
        (Reason.PROTOCOL, "crlf", False),
        (Reason.ILLEGAL, "empty-pit", False),
        (Reason.TIMEOUT, "late", False),
    ],
)
def test_only_faults_of_the_environment_are_problems(reason: Reason, fault: str, fails: bool) -> None:
    record = make_record(result=lost_by(reason, 0, "one (South) lost: it did something", fault))
    problem = problem_of(record)
    assert (problem is not None) == fails
    if problem is not None:
        assert problem.bot == "one"
        assert problem.why.startswith("it did something")
        assert problem.advice
    draw = make_record(result=MatchResult(None, Reason.SCORE, "a draw", (1, 1)))
    assert problem_of(draw) is None


def test_a_bot_that_starts_in_neither_seat_is_a_problem() -> None:
    """Its reason is given once, with the end of its standard error, which the verdict leaves out."""
    ended = "its process ended with exit status 1 before it had taken its START line"
    verdict = f"neither bot could be started: one (South): {ended}; two (North): {ended}"
    error = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"
    lost = MatchResult(None, Reason.START, verdict, None, "not-runnable")
    problem = problem_of(make_record(result=lost, stderr=(error, "")))
    assert problem is not None
    assert problem.bot == "one"
    assert problem.why.startswith(f"{ended}; its last words on standard error: ")
    assert "That is: the module torch is not there" in problem.why
    assert "neither" not in problem.why
    assert problem.advice == ""  # the explanation is enough, as for any other bot that ended


def test_a_command_that_runs_in_neither_seat_is_a_problem() -> None:
    verdict = "neither bot could be started: one (South): no interpreter; two (North): no interpreter"
    problem = problem_of(make_record(result=MatchResult(None, Reason.START, verdict, None, "not-runnable")))
    assert problem is not None
    assert (problem.why, problem.advice) == ("no interpreter", ADVICE["not-runnable"])


def test_a_long_name_and_a_hostile_text_fit_the_table() -> None:
    problems = [
        Problem("n" * 60, "its last words: \x1b[2J" + "word " * 60, "do\tthis"),
        Problem("b", "c", ""),
    ]
    lines = problem_table(problems, 2, Sandbox()).splitlines()
    assert all(len(line) <= WIDTH and line.isprintable() for line in lines)
    assert "n" * 60 in lines
