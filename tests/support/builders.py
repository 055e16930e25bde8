"""Records, players, tournament files, and runs of `kalarena`, for tests in all folders."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from referee.judge.clock import TimeControl
from referee.judge.record_rows import Fact, MoveRecord, WireLine
from referee.judge.results import GameRecord, MatchResult, Player, Reason
from tournaments.cli.main import main
from tournaments.results.game_summary import GameSummary

KALARENA = Path(sys.executable).with_name("kalarena")
"""The console command, beside the interpreter that runs the tests."""

RUN_LIMIT_S = 600.0
"""Timeout of the subprocesses of tests; most need less than one second, some minutes on a busy machine."""

CONTROL = TimeControl(move_s=2.0)


def make_player(name: str, digest: str = "d1") -> Player:
    """Return a player that is never started."""
    return Player(name, ("/opt/python", f"/home/{name}/bot.py"), f"/home/{name}", digest)


def make_record(key: str = "r001-1v2", first: str = "one", second: str = "two", **changes: Any) -> GameRecord:
    """Return a short game that ``first`` won; ``changes`` replace fields of the record."""
    values: dict[str, Any] = {
        "key": key,
        "game": "kalah(1,1)",
        "players": (make_player(first), make_player(second)),
        "control": CONTROL,
        "moves": [MoveRecord(0, "1", 1500, 1500), MoveRecord(1, "1", 2500, 2500)],
        "wire": [
            WireLine(1, "to", "START;North", 10),
            WireLine(0, "to", "START;South", 20),
            WireLine(0, "from", "MOVE;1", 1520),
        ],
        "facts": [Fact(0, "Taken", 30, 2), Fact(None, "TimePassed", 40, 2, (("x", ""), None, ""))],
        "final_state": "0,1,0,1",
        "result": MatchResult(0, Reason.SCORE, f"{first} (South) won: 2 to 0", (2, 0)),
        "stderr": (f"private words of {first}\n", f"private words of {second}\n"),
        "exit_status": (0, -9),
        "started_at": "2026-01-02T03:04:05.678+00:00",
        "opening": "",
        "duration_us": 250_000,
        "host": "the-lecturers-machine",
        "versions": {"kalarena": "0.1.0"},
    }
    return GameRecord(**(values | changes))


def lost_by(reason: Reason, loser: int, detail: str = "it lost", fault: str = "fault") -> MatchResult:
    """Return the verdict of a game that ended by a fault."""
    return MatchResult(1 - loser, reason, detail, None, fault)


def make_summary(
    first: str,
    second: str,
    winner: int | None,
    *,
    reason: Reason = Reason.SCORE,
    moves: tuple[int, int] = (2, 2),
    wall_us: tuple[int, int] = (2000, 2000),
    key: str = "r001-1v2",
    detail: str = "what happened",
) -> GameSummary:
    """Return the summary of a game, from which tables are made."""
    return GameSummary(
        key=key,
        round=1,
        first=first,
        second=second,
        winner=winner,
        reason=reason,
        fault=None if reason in (Reason.SCORE, Reason.TURN_CAP) else "fault",
        detail=detail,
        score=(3, 1) if reason is Reason.SCORE else None,
        moves=moves,
        wall_us=wall_us,
        charged_us=wall_us,
        sandbox="off",
    )


def write_tournament(folder: Path, text: str, name: str = "cup.toml") -> Path:
    """Write a tournament file; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def run_command(
    arguments: Sequence[str | os.PathLike[str]], cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        arguments,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )


def kalarena(
    cwd: Path, *arguments: str | os.PathLike[str], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the console command to its end."""
    return run_command([KALARENA, *arguments], cwd, **environment)


def invoke(*arguments: str | os.PathLike[str]) -> Result:
    """Run the command in this process, which is quicker; an unhandled error is raised."""
    result = CliRunner().invoke(main, [os.fspath(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def one_object(text: str) -> dict[str, Any]:
    """Return the JSON object that the whole text is."""
    value = json.loads(text)
    assert isinstance(value, dict)
    return value


def quick_sample_bot(name: str) -> str:
    """Return the name of a sample bot with an option that makes it quick."""
    return {"minimax": "minimax:1", "ladder": "ladder:3", "strong": "strong:0.02"}.get(name, name)
