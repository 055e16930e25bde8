"""`kalarena play` and the runner as processes: signals, full pipes, and what bots leave behind."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.builders import KALARENA, invoke, kalarena, one_object, write_tournament
from tests.support.processes import HEEDING, command_lines_with
from tests.support.tiers import slow

LIMIT_S = 300
"""Nothing waits that long unless it has failed."""
DEAF = "import signal, time\nfor number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"


def deaf_bot(folder: Path) -> str:
    """A bot that neither reads nor ends by itself; its mark finds it again."""
    mark = f"deaf-{os.getpid()}-{folder.name}"
    (folder / f"{mark}.py").write_text(DEAF + "time.sleep(600)\n")
    return mark


def wait_for_bot(mark: str) -> list[int]:
    """Wait until the bot lives; its processes, without those that confine it."""
    until = time.monotonic() + LIMIT_S
    while not (found := pids_with(f"{mark}.py", "kalarena", "bwrap")):
        assert time.monotonic() < until
        select.select([], [], [], 0.01)
    return found


@pytest.mark.parametrize(
    ("number", "sandbox"),
    [
        (signal.SIGINT, "auto"),
        *slow((signal.SIGTERM, "off"), (signal.SIGTERM, "auto"), (signal.SIGHUP, "off")),
    ],
)
def test_a_signal_to_play_ends_the_bots_too(tmp_path: Path, number: int, sandbox: str) -> None:
    mark = deaf_bot(tmp_path)
    command = [str(KALARENA), "play", f"{mark}.py", "greedy", "--move-time", "600", "--sandbox", sandbox]
    heeding = [sys.executable, "-c", HEEDING, *command]
    with subprocess.Popen(heeding, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_for_bot(mark)
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert errors == "stopped: the game has no result\n"
    assert command_lines_with(mark) == []


@pytest.mark.parametrize("name", ["game.json", *slow("game.msgpack")])
def test_a_game_that_is_stopped_leaves_its_record_without_a_verdict(tmp_path: Path, name: str) -> None:
    mark = f"slow-{os.getpid()}-{tmp_path.name}"
    (tmp_path / f"{mark}.py").write_text("import sys, time\nfor line in sys.stdin:\n    time.sleep(600)\n")
    command = [str(KALARENA), "play", "first_legal", f"{mark}.py", "--record", name, "-v", "--sandbox", "off"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "CHANGE" not in process.stderr.readline():  # a move was made
            pass
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert f"{name}: the " in errors
    if name.endswith(".json"):
        view = one_object((tmp_path / name).read_text())
        assert (view["winner"], view["reason"], view["score"], view["unfinished"]) == (None, None, None, True)
        assert view["moves"]
        assert view["wire"]
    done = invoke("verify", tmp_path / name)
    assert done.exit_code == 2
    assert (
        "before the game had a result: its record has the conversation so far, and no verdict" in done.output
    )


def test_a_full_standard_output_is_one_clear_message_and_loses_no_record(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [KALARENA, "play", "greedy", "first_legal", "--game", "kalah(3,2)", "--record", "game.json"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: the result could not be printed: No space left on device\n"
    assert one_object((tmp_path / "game.json").read_text())["reason"] == "score"


@pytest.mark.slow
def test_a_conversation_that_nobody_reads_costs_no_bot_its_time(tmp_path: Path) -> None:
    """With -v into a pipe that is full, the game is played as without."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    command = [str(KALARENA), "play", "greedy", "first_legal", "-v", "--json", "--move-time", "0.5"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=writer, text=True) as process:
        os.close(writer)
        output, _ = process.communicate(timeout=LIMIT_S)
    os.close(reader)
    assert process.returncode == 0
    assert one_object(output)["reason"] == "score"


@pytest.mark.slow
def test_sigchld_ignored_by_a_parent_does_no_harm(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, str(KALARENA), "play", "greedy", "greedy", "--game", "kalah(3,2)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("own", ["os.setsid()", *slow("os.setpgid(0, 0)")])
def test_children_that_left_the_group_are_ended_after_the_game(tmp_path: Path, own: str) -> None:
    mark = f"left-{os.getpid()}-{tmp_path.name}"
    child = f"import os, time; {own}; open('alive', 'w').write('x'); time.sleep(600)  # {mark}"
    os.mkfifo(tmp_path / "alive")
    (tmp_path / "parent.py").write_text(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "open('alive').read()\nprint('nonsense', flush=True)\nsys.stdin.read()\n"
    )
    done = kalarena(tmp_path, "play", "parent.py", "greedy", "--sandbox", "off")  # which has no such file
    assert done.returncode == 0
    assert "unknown-message" in done.stdout or "nonsense" in done.stdout
    assert command_lines_with(mark) == []


@pytest.mark.kill
def test_a_signal_to_the_runners_whole_group_ends_the_bots_too(tmp_path: Path) -> None:
    """A closed terminal and `timeout` send such signals."""
    mark = deaf_bot(tmp_path)
    path = write_tournament(tmp_path, f'bots = ["{mark}.py", "greedy"]\n[time]\nmove_s = 600.0')
    runner = subprocess.Popen(
        [KALARENA, "tournament", "run", str(path), "--out", "out", "--concurrency", "1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    bots = [os.pidfd_open(pid) for pid in wait_for_bot(mark)]
    assert bots
    os.killpg(runner.pid, signal.SIGKILL)
    runner.wait(LIMIT_S)
    for bot in bots:
        ended, _, _ = select.select([bot], [], [], LIMIT_S)
        os.close(bot)
        assert ended


def pids_with(text: str, *but: str) -> list[int]:
    """Processes whose command line holds one text and none of the others."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if text in line and not any(other in line for other in but):
            found.append(int(folder.name))
    return found


def test_a_game_spares_processes_that_were_started_for_other_ends() -> None:
    """A game in this process does not end multiprocessing's resource tracker, for example."""
    with subprocess.Popen(["sleep", "60"]) as ours:
        assert invoke("play", "first_legal", "first_legal", "--game", "kalah(2,1)").exit_code == 0
        assert ours.poll() is None
        ours.kill()
