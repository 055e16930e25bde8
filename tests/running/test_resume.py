"""Runs that are killed or stopped: the resumed tournament ends with the same table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import RUN_LIMIT_S, invoke
from tests.support.processes import all_end, descendants, open_pidfds
from tournaments.cli.tournament import run
from tournaments.config import tournament
from tournaments.results.game_files import GAMES, LOCK_FILE
from tournaments.results.store import Store

KALARENA = str(Path(sys.executable).parent / "kalarena")
BOTS = ["first_legal", "random:7", "greedy", "minimax:2"]

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)")


def write_tournament(folder: Path, rounds: int, game: str = "manchester") -> Path:
    path = folder / "cup.toml"
    path.write_text(
        f"name = 'cup'\nrounds = {rounds}\ngame = '{game}'\nbots = {json.dumps(BOTS)}\n"
        "[time]\nmove_s = 20.0\n"
    )
    return path


def run_to_the_end(path: Path, out: Path) -> None:
    subprocess.run(
        [KALARENA, "tournament", "run", str(path), "--out", str(out)],
        check=True,
        timeout=900,
        capture_output=True,
    )


def table(out: Path, form: str) -> str:
    done = invoke("tournament", "table", out, "--format", form)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def start_and_wait_for_games(path: Path, out: Path) -> subprocess.Popen[str]:
    """Start a run; return it when it has reported another tenth of the games."""
    runner = subprocess.Popen(
        [KALARENA, "tournament", "run", str(path), "--out", str(out), "--concurrency", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert runner.stderr is not None
    line = runner.stderr.readline()
    if line.startswith("cup: going on with "):
        line = runner.stderr.readline()
    assert line.startswith("cup: "), line
    assert line.endswith(" games\n"), line
    return runner


def test_a_killed_run_is_resumed_and_gives_the_same_table(tmp_path: Path) -> None:
    path = write_tournament(tmp_path, 1, "kalah(4,4)")
    assert invoke("tournament", "run", path, "--out", tmp_path / "calm", "--quiet").exit_code == 0
    calm = {form: table(tmp_path / "calm", form) for form in ("text", "csv", "json", "html")}
    out = tmp_path / "killed"
    runner = start_and_wait_for_games(path, out)
    left_behind = open_pidfds(descendants(runner.pid))
    runner.kill()
    runner.communicate(timeout=60)
    assert all_end(left_behind, RUN_LIMIT_S), "bots or workers outlived the runner"
    with Store(out / "results.db") as store:
        before = store.played()
        assert 0 < len(before) < 12
        assert all(store.record(key).result.detail for key in before)
    assert invoke("tournament", "run", path, "--out", out, "--quiet").exit_code == 0
    assert {form: table(out, form) for form in calm} == calm
    with Store(out / "results.db") as store:
        assert before < store.played()
        assert len(store.played()) == 12
    assert not list(out.glob("leash-*"))


def test_a_run_on_another_host_keeps_the_default_memory_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cup.toml"
    for memory_mb, rounds in ((512, 1), (2048, 2)):
        monkeypatch.setattr(tournament, "default_memory_here", lambda _games, limit=memory_mb: limit)
        path.write_text(f'game = "kalah(2,2)"\nrounds = {rounds}\nbots = ["first_legal", "greedy"]\n')
        result = invoke("tournament", "run", path, "--out", tmp_path / "out", "--quiet")
        assert result.exit_code == 0, result.stderr
    with Store(tmp_path / "out" / "results.db") as store:
        assert len(store.played()) == 4
        assert {store.record(key).limits.memory_mb for key in store.played()} == {512}


@pytest.mark.slow
def test_the_default_memory_limit_is_that_of_the_games_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tournament that is continued keeps its limit."""
    monkeypatch.setattr(tournament, "default_memory_here", lambda games: 512 + (games or 0))
    path = tmp_path / "cup.toml"
    for rounds, options in ((1, ("--concurrency", "1")), (2, ("--concurrency", "2")), (3, ())):
        path.write_text(
            f'game = "kalah(2,2)"\nconcurrency = 3\nrounds = {rounds}\nbots = ["first_legal", "greedy"]\n'
        )
        result = invoke("tournament", "run", path, "--out", tmp_path / "out", "--quiet", *options)
        assert result.exit_code == 0, result.stderr
    with Store(tmp_path / "out" / "results.db") as store:
        assert len(store.played()) == 6
        assert {store.record(key).limits.memory_mb for key in store.played()} == {513}


def test_too_much_memory_for_the_host_is_reported_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "host_memory_bytes", lambda: 3 << 30)
    path = tmp_path / "cup.toml"
    path.write_text('concurrency = 2\nbots = ["first_legal", "greedy"]\n[limits]\nmemory_mb = 1000\n')
    result = invoke("tournament", "run", path, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert (
        "2 games at a time may use 4000 MB of memory (1000 MB each), and this host has 3072" in result.stderr
    )
    path.write_text('bots = ["first_legal", "greedy"]\n[limits]\nmemory_mb = 2000\n')
    result = invoke("tournament", "run", path, "--out", tmp_path / "other")
    assert result.exit_code == 2
    assert "the bots of a game may use 4000 MB" in result.stderr


def test_damaged_files_of_games_are_written_again_after_a_crash_of_the_machine(tmp_path: Path) -> None:
    """A crash of the machine can leave empty files in folders that are in place; the store is complete."""
    path, out = tmp_path / "cup.toml", tmp_path / "out"
    path.write_text("name = 'cup'\ngame = 'kalah(3,2)'\nbots = ['first_legal', 'greedy']\n")

    def run_again() -> None:
        done = invoke("tournament", "run", path, "--out", out, "--sandbox", "off")
        assert done.exit_code == 0, done.stderr

    run_again()
    wire = out / GAMES / "r001-1v2" / "wire.txt"
    whole = wire.read_bytes()
    wire.write_bytes(b"")
    run_again()
    assert wire.read_bytes() == b""  # the machine was not started again: somebody has changed the file
    (out / LOCK_FILE).write_text("another start of the machine")
    run_again()
    assert wire.read_bytes() == whole
    wire.unlink()
    (out / LOCK_FILE).unlink()
    run_again()
    assert wire.read_bytes() == whole
    assert invoke("verify", out).exit_code == 0


@pytest.mark.slow
def test_files_of_an_earlier_tournament_are_replaced_after_a_kill(tmp_path: Path) -> None:
    """A tournament is begun anew, and its runs end between a game's transaction and its files."""
    path, out = tmp_path / "cup.toml", tmp_path / "out"
    text = "name = 'cup'\nconcurrency = 1\ngame = 'kalah(3,2)'\nbots = ['first_legal', '{}']\n"
    path.write_text(text.format("greedy"))
    assert invoke("tournament", "run", path, "--out", out).exit_code == 0
    (out / "results.db").unlink()
    path.write_text(text.format("random:1"))
    in_the_way = {key: out / GAMES / f".{key}.part" for key in ("r001-1v2", "r001-2v1")}
    for file in in_the_way.values():
        file.touch()
    for stored in (1, 2):
        done = invoke("tournament", "run", path, "--out", out)
        assert "the files of this game could not be written" in done.stderr
        with Store(out / "results.db", read_only=True) as store:
            assert len(store.played()) == stored
            for key in store.played():
                in_the_way[key].unlink(missing_ok=True)
    assert invoke("tournament", "run", path, "--out", out).exit_code == 0
    verified = invoke("verify", out)
    assert verified.exit_code == 0, verified.output
