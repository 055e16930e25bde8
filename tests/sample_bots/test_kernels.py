"""The cache of compiled kernels: compiling once, keeping, and loading in a bot that may not write there."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from referee.judge import clock
from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord
from referee.playing import Job, play_alone
from referee.sandbox.bubblewrap import Sandbox
from sample_bots.catalog import sample_bot_command
from sample_bots.options import PURE_VARIABLE
from sample_bots.strong import kernels
from tests.support.builders import invoke
from tests.support.confinement import needs_sandbox
from tournaments.bots.resolve import resolve_bot


@pytest.fixture(autouse=True)
def _host_may_be_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn in which the host lets a bot wait for seconds voids no game, although the limits are low.

    Compiling for the first time, which takes 20 s on an idle machine, may take many minutes.
    """
    monkeypatch.setattr(clock, "HOST_FAULT_EXTRA_US", 300_000_000)
    monkeypatch.setattr(kernels, "PREPARE_LIMIT_S", 1800.0)


MARGIN_S = 2.0
"""Margin of the referee in seconds: a busy machine may keep a program waiting, which no counter shows."""


def play_strong(opponent: str, game: str, folder: Path, sandbox: Sandbox, move_s: float = 1.0) -> GameRecord:
    players = (resolve_bot("strong", folder, game=game), resolve_bot(opponent, folder, game=game))
    control = TimeControl(move_s=move_s, margin_s=MARGIN_S)
    return play_alone(Job("strong", game, players, control, sandbox=sandbox))


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has never compiled anything."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not kernels.is_prepared()
    return tmp_path / "cache"


def test_numba_is_installed() -> None:
    """The tests need it; without it most of this file tests nothing."""
    assert kernels.can_compile() or os.environ.get(PURE_VARIABLE)


def compiler(folder: Path, count: int) -> str:
    """A program in Python's place that "compiles" in no time, once ``count`` of its processes run."""
    program = folder / "compiler"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, pathlib, sys, time\n"
        f"started = pathlib.Path({str(folder / 'started')!r})\n"
        "started.mkdir(exist_ok=True)\n"
        "(started / str(os.getpid())).touch()\n"
        f"while len(list(started.iterdir())) < {count}:\n"
        "    time.sleep(0.001)\n"
        f"(pathlib.Path(os.environ[{kernels.CACHE_VARIABLE!r}]) / 'code').write_text('machine code')\n"
    )
    program.chmod(0o755)
    return str(program)


def test_processes_that_prepare_kernels_at_the_same_time_share_them(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", compiler(tmp_path, count=2))
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: kernels.prepare(), range(2))
    assert first == second == kernels.directory()
    assert len(list((tmp_path / "started").iterdir())) == 2  # else they were not at the same time
    assert [path.name for path in first.parent.iterdir()] == [first.name]  # nothing half-made is left
    assert {path.name for path in first.iterdir()} == {"code", kernels.COMPLETE}
    made = first.stat().st_mtime_ns
    assert kernels.prepare() == first
    assert first.stat().st_mtime_ns == made
    assert len(list((tmp_path / "started").iterdir())) == 2


@pytest.mark.slow  # compiling takes 20 s
def test_kernels_are_compiled_and_loaded_by_a_confined_bot(tmp_path: Path) -> None:
    record = play_strong("first_legal", "kalah(3,3)", tmp_path, needs_sandbox())
    assert record.sandbox != "off"
    assert record.stderr[0].startswith("strong: search compiled by numba ")
    assert "had to be compiled" not in record.stderr[0]
    assert record.result.fault is None
    assert kernels.is_prepared()


@pytest.mark.slow
def test_nothing_is_compiled_for_a_level_that_is_no_engine_in_the_game(empty_cache: Path) -> None:
    result = invoke("play", "ladder:5", "first_legal", "--game", "kalah(3,2)", "--sandbox", "off")
    assert result.exit_code == 0, result.output
    assert "compiling" not in result.stderr
    assert not empty_cache.exists()


def test_kernels_that_cannot_be_prepared_are_reported(empty_cache: Path, tmp_path: Path) -> None:
    """Compiling at each start might take longer than a bot has to start: it plays in plain Python then."""
    empty_cache.write_text("a file where a folder should be")
    with pytest.raises(kernels.NotPreparedError, match="cache"):
        kernels.prepare()
    player = resolve_bot("strong", tmp_path, game="manchester")
    assert "could not be compiled, and runs in plain Python" in player.how
    assert "-S" in player.command
    assert "--kernels" not in player.command


def test_only_a_complete_directory_is_used(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(kernels.NotPreparedError, match="exit status 1"):
        kernels.prepare()
    assert list((empty_cache / "kalarena").iterdir()) == []  # no incomplete directory is left
    kernels.directory().mkdir(parents=True)
    assert not kernels.is_prepared()
    assert kernels.shared_directory() != kernels.directory()
    monkeypatch.setattr(sys, "executable", "/bin/true")  # compiles nothing, successfully
    assert kernels.prepare() == kernels.directory() == kernels.shared_directory()
    assert kernels.is_prepared()


PROCESSOR = """\
processor\t: {number}
model name\t: Some processor
cpu MHz\t\t: 2596.{number}
flags\t\t: fpu sse {feature}

"""


def test_machines_with_different_processors_may_share_a_home(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba would compile again in each game what another processor's machine has prepared."""
    monkeypatch.setattr(sys, "executable", "/bin/true")
    processors = tmp_path / "cpuinfo"
    monkeypatch.setattr(kernels, "PROCESSORS", processors)
    prepared = []
    for feature in ("avx", "avx2", "avx512f", "sve"):
        processors.write_text("".join(PROCESSOR.format(number=n, feature=feature) for n in range(2)))
        assert not kernels.is_prepared()
        prepared.append(kernels.prepare())
        processors.write_text(PROCESSOR.format(number=7, feature=feature))  # at another speed, with one core
        assert kernels.is_prepared()
    assert all((path / kernels.COMPLETE).is_file() for path in prepared)
    for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.setenv(variable, "generic")
        assert not kernels.is_prepared()
        monkeypatch.delenv(variable)
    processors.unlink()  # as on a system without /proc
    assert not kernels.is_prepared()


def test_older_kernels_are_removed(empty_cache: Path) -> None:
    base = empty_cache / "kalarena"
    for number in range(5):
        for name in (f"kernels-{number}", f"own-kernels-{number}"):
            (base / name).mkdir(parents=True)
            os.utime(base / name, (number, number))
    (base / "building-killed").mkdir()
    os.utime(base / "building-killed", (1, 1))
    (base / "building-now").mkdir()
    for name in ("kernels-2-other", "own-kernels-4-other", "own-kernels-new", "kernels-new-other"):
        (base / name).mkdir()
        os.utime(base / name, (1, 1))
    kept = base / "kernels-new-ours"
    kept.mkdir()
    kernels._remove_older(kept)
    assert {path.name for path in base.iterdir()} == {
        *("kernels-3", "kernels-4", "kernels-new-other", "kernels-new-ours"),
        *("own-kernels-3", "own-kernels-4", "own-kernels-4-other", "own-kernels-new", "building-now"),
    }


def test_kept_kernels_are_copied_where_they_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    (kept / "inner").mkdir(parents=True)
    (kept / "inner" / "code").write_bytes(b"machine code")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setenv(kernels.CACHE_VARIABLE, "before")
    monkeypatch.setattr(os, "access", lambda *_: False)
    kernels.use(str(tmp_path / "not-there"))
    assert os.environ[kernels.CACHE_VARIABLE] == str(scratch / "kernels")  # where they are compiled again
    kernels.use(str(kept))
    assert os.environ[kernels.CACHE_VARIABLE] == str(scratch / "kernels")
    assert (scratch / "kernels" / "inner" / "code").read_bytes() == b"machine code"


@pytest.mark.slow
def test_without_numba_it_plays_in_plain_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PURE_VARIABLE, "1")
    command = sample_bot_command("strong")
    assert command is not None
    assert "-S" in command  # no site-packages, so no numba
    record = play_strong("random:1", "manchester(3,2)", tmp_path, Sandbox(), move_s=0.2)
    assert record.stderr[0].startswith("strong: search in plain Python, slowly: KALARENA_PURE is set")
    assert record.result.fault is None


@pytest.mark.slow
@pytest.mark.parametrize("game", ["manchester", "kalamala"])
def test_strong_wins_within_a_short_time(game: str, tmp_path: Path) -> None:
    record = play_strong("random:1", game, tmp_path, needs_sandbox(), move_s=0.05)
    assert record.result.winner == 0
    assert record.result.fault is None


def test_directory_of_the_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/cache")  # to be ignored, says the specification
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kernels.directory().parent == tmp_path / ".cache" / "kalarena"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user without an account
    assert not kernels.can_compile()
