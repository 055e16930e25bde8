"""What students really do wrong, as real programs, bare and confined: the verdict or its note says it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job, play_game
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import probe

FIRST_LEGAL = Path(__file__).parent.parent / "sample_bots" / "first_legal.py"
CONTROL = TimeControl(move_s=1.0, margin_s=0.05, start_s=20, setup_s=0.05)
LIMITS = Limits(end_grace_s=0.3)
COMPILE_LIMIT_S = 60.0
SANDBOXES = ("bare", "confined")
PYTHON = (sys.executable, "-S", "-E")


def sandbox(name: str) -> Sandbox:
    if name == "bare":
        return Sandbox()
    found = probe().sandbox
    if not found.tier.confines:
        pytest.skip("no bot can be confined here")
    return found


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


async def play(
    folder: Path,
    command: tuple[str, ...],
    where: str,
    limits: Limits = LIMITS,
    control: TimeControl = CONTROL,
) -> GameRecord:
    """A game that the bot with this command begins, in a directory that is its own."""
    folder.chmod(0o755)
    culprit = Player("culprit", command, str(folder), reads=(str(folder),))
    victim = Player("victim", (*PYTHON, str(FIRST_LEGAL)), str(FIRST_LEGAL.parent), reads=(str(FIRST_LEGAL),))
    job = Job("real", "manchester", (culprit, victim), control, limits, sandbox=sandbox(where))
    record = await play_game(job)
    assert record.result.winner == 1, record.result
    return record


def python(folder: Path, text: str) -> tuple[str, ...]:
    program = folder / "bot.py"
    program.write_text(text, encoding="utf-8")
    return (*PYTHON, str(program))


def script(folder: Path, text: str, mode: int = 0o755) -> tuple[str, ...]:
    program = folder / "bot"
    program.write_text(text, encoding="utf-8", newline="")
    program.chmod(mode)
    return (str(program),)


# A move that is printed and not flushed


def python_buffered(folder: Path) -> tuple[str, ...]:
    return python(folder, "import sys\nfor line in sys.stdin:\n    print('MOVE;1')\n")


def c_buffered(folder: Path) -> tuple[str, ...]:
    needs("gcc")
    (folder / "bot.c").write_text(
        "#include <stdio.h>\nint main(void) {\n    char line[1000];\n"
        '    while (fgets(line, sizeof line, stdin)) printf("MOVE;1\\n");\n}\n'
    )
    subprocess.run(["gcc", "-o", "bot", "bot.c"], cwd=folder, check=True, timeout=COMPILE_LIMIT_S)
    return (str(folder / "bot"),)


def java_buffered(folder: Path) -> tuple[str, ...]:
    needs("java", "javac")
    (folder / "Bot.java").write_text(
        "import java.io.*;\npublic class Bot {\n    public static void main(String[] words) throws "
        "IOException {\n"
        "        var in = new BufferedReader(new InputStreamReader(System.in));\n"
        "        var out = new BufferedWriter(new OutputStreamWriter(System.out));\n"
        '        while (in.readLine() != null) out.write("MOVE;1\\n");\n    }\n}\n'
    )
    subprocess.run(["javac", "Bot.java"], cwd=folder, check=True, timeout=COMPILE_LIMIT_S)
    java = shutil.which("java")
    assert java is not None
    return (java, "-Xmx64m", "-cp", str(folder), "Bot")


@pytest.mark.parametrize("where", SANDBOXES)
@pytest.mark.parametrize("make", [python_buffered, c_buffered, java_buffered])
async def test_a_move_that_is_not_flushed(
    tmp_path: Path, make: Callable[[Path], tuple[str, ...]], where: str
) -> None:
    record = await play(tmp_path, make(tmp_path), where)
    assert record.result.reason is Reason.TIMEOUT
    assert "waiting to read from us while we wait for its move: did you flush stdout?" in record.result.detail


@pytest.mark.parametrize("where", SANDBOXES)
async def test_an_endless_loop_is_not_told_to_flush(tmp_path: Path, where: str) -> None:
    record = await play(tmp_path, python(tmp_path, "input()\nwhile True: pass\n"), where)
    assert "still computing" in record.result.detail
    assert "flush" not in record.result.detail


# Ends, and lines that are none

PROGRAMS = {
    # Text of a Python bot -> reason, what the verdict says, what the note says.
    "carriage return": (
        "import sys\ninput()\nsys.stdout.write('MOVE;1\\r\\n')\nsys.stdout.flush()\ninput()\n",
        (Reason.PROTOCOL, "CR LF", ""),
    ),
    "debug print": (
        "input()\nprint('thinking...', flush=True)\ninput()\n",
        (Reason.PROTOCOL, "it sent 'thinking...'", ""),
    ),
    "traceback": (
        "def think(line):\n    return {}[line]\n\nthink(input())\n",
        (Reason.EXIT, "exit status 1 on its turn", "KeyError: 'START;South'\" (at bot.py, line 2, in think)"),
    ),
    "ended too early": (
        "print('MOVE;1', flush=True)\ninput()\n",
        (Reason.EXIT, "exit status 0", ""),
    ),
    "module": (
        "input()\nimport my_own_module\n",
        (Reason.EXIT, "exit status 1", "the module my_own_module is not there"),
    ),
    "number": (
        "int(input())\n",
        (Reason.EXIT, "exit status 1", "it took a text for a number"),
    ),
    "memory": (
        "input()\nbytearray(10**13)\n",
        (Reason.MEMORY, "it ran out of memory on its turn", "Python found no more memory"),
    ),
    "segmentation fault": (
        "import os\ninput()\nos.kill(os.getpid(), 11)\nos.read(0, 1)\n",
        (Reason.EXIT, "SIGSEGV on its turn (a bad pointer", ""),
    ),
    "exit status of a shell": (
        "import os\ninput()\nos._exit(134)\n",
        (Reason.EXIT, "SIGABRT", ""),
    ),
}


@pytest.mark.parametrize("where", SANDBOXES)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_that_goes_wrong(tmp_path: Path, name: str, where: str) -> None:
    text, (reason, detail, note) = PROGRAMS[name]
    record = await play(tmp_path, python(tmp_path, text), where)
    assert record.result.reason is reason, record.result
    assert detail in record.result.detail
    assert note in record.result.note
    assert bool(record.result.note) == bool(note)


@pytest.mark.parametrize("where", SANDBOXES)
async def test_an_exit_before_start(tmp_path: Path, where: str) -> None:
    record = await play(tmp_path, python(tmp_path, "raise SystemExit('no opening book')\n"), where)
    assert record.result.reason is Reason.EXIT
    assert "exit status 1 before" in record.result.detail
    assert "no opening book" in record.result.note
    assert "no opening book" not in record.result.detail


CONFINED_ONLY = {
    "read-only": (
        "input()\nopen('/usr/log.txt', 'w')\n",
        "[Errno 30] Read-only file system: '/usr/log.txt'\" (at bot.py, line 2, in <module>). "
        "That is: the file or folder is read-only in the sandbox",
    ),
    "network": (
        "import socket\ninput()\nsocket.create_connection(('192.0.2.1', 9), 1)\n",
        "(at bot.py, line 3, in <module>). That is: a bot in the sandbox has no network",
    ),
    "threads": (
        "import threading\ninput()\nwait = threading.Event().wait\n"
        "for _ in range(100):\n    threading.Thread(target=wait, daemon=True).start()\n",
        "it started more processes or threads than a bot may have",
    ),
    "processes": (
        "import os, signal\ninput()\nfor _ in range(100):\n    if not os.fork():\n        signal.pause()\n",
        "it started more processes or threads than a bot may have",
    ),
    "space": (
        "import os\ninput()\n"
        "for number in range(9):\n    open(os.environ['TMPDIR'] + f'/{number}', 'wb').write(bytes(1 << "
        "20))\n",
        "the space for a bot's files in the sandbox is limited, and full",
    ),
    "file": (
        "import os\ninput()\nopen(os.environ['TMPDIR'] + '/a', 'wb').write(bytes(3 << 20))\n",
        "it wrote a file larger than a bot's files may be",
    ),
    "files": (
        "input()\nfiles = [open('/dev/null') for _ in range(1000)]\n",
        "it has too many files open",
    ),
    "memory": (
        "input()\nheld = bytearray(8 << 30)\n",  # more than may be reserved beyond a bot's memory
        "Python found no more memory",
    ),
}


REASONS = {
    "memory": Reason.MEMORY,
    **dict.fromkeys(("read-only", "space", "file", "files"), Reason.FILES),
}
"""Name -> reason; ``exit`` for all others."""


@pytest.mark.parametrize("name", CONFINED_ONLY)
async def test_what_the_sandbox_refuses(tmp_path: Path, name: str) -> None:
    text, note = CONFINED_ONLY[name]
    limits = Limits(file_mb=2, scratch_mb=4, end_grace_s=0.3)
    record = await play(tmp_path, python(tmp_path, text), "confined", limits)
    assert record.result.reason is REASONS.get(name, Reason.EXIT), record.result
    assert note in record.result.note


# Commands that cannot be run


@pytest.mark.parametrize("where", SANDBOXES)
@pytest.mark.parametrize(
    ("text", "mode", "reason", "words"),
    [
        ("#!/usr/bin/python7\nprint()\n", 0o755, Reason.START, "names an interpreter that is not there"),
        ("#!/usr/bin/python3\r\nprint()\r\n", 0o755, Reason.START, "CR LF"),
        ("#!/usr/bin/env python3\r\nprint()\r\n", 0o755, None, "CR LF"),
        ("#!/bin/sh\n", 0o644, Reason.START, "is not executable: chmod +x bot"),
        ("print('MOVE;1')\n", 0o755, None, "first line"),
        ("#!/bin/sh\npython7 bot.py\n", 0o755, Reason.EXIT, "a shell's way to say: command not found"),
        ("#!/bin/sh\n./bot.txt\n", 0o755, Reason.EXIT, "a shell's way to say: found, but not executable"),
    ],
)
async def test_a_command_that_cannot_be_run(
    tmp_path: Path, where: str, text: str, mode: int, reason: Reason | None, words: str
) -> None:
    (tmp_path / "bot.txt").write_text("")
    record = await play(tmp_path, script(tmp_path, text, mode), where)
    assert reason in (None, record.result.reason), record.result
    assert words in record.result.detail + record.result.note


@pytest.mark.parametrize("where", SANDBOXES)
async def test_a_program_that_is_not_there(tmp_path: Path, where: str) -> None:
    record = await play(tmp_path, (str(tmp_path / "bot"),), where)
    assert record.result.reason is Reason.START
    assert "there is no file bot (command not found)" in record.result.detail


# Programs in other languages


def java(folder: Path, body: str) -> tuple[str, ...]:
    needs("java", "javac")
    program = "public class Bot { public static void main(String[] words) throws Exception { %s } }\n"
    (folder / "Bot.java").write_text(program % body)
    subprocess.run(["javac", "Bot.java"], cwd=folder, check=True, timeout=COMPILE_LIMIT_S)
    found = shutil.which("java")
    assert found is not None
    return (found, "-Xmx64m", "-cp", str(folder), "Bot")


@pytest.mark.parametrize("where", SANDBOXES)
async def test_a_java_exception_with_its_place(tmp_path: Path, where: str) -> None:
    record = await play(tmp_path, java(tmp_path, 'System.in.read(); Integer.parseInt("North");'), where)
    assert 'NumberFormatException: For input string: "North"' in record.result.note
    assert "(at Bot.java, line 1, in Bot.main). That is: it took a text for a number" in record.result.note


@pytest.mark.parametrize("where", SANDBOXES)
async def test_a_java_heap_that_is_full(tmp_path: Path, where: str) -> None:
    record = await play(tmp_path, java(tmp_path, "System.in.read(); long[] held = new long[1 << 27];"), where)
    assert "its Java heap is full" in record.result.note


@pytest.mark.parametrize("where", SANDBOXES)
async def test_a_class_that_is_not_there(tmp_path: Path, where: str) -> None:
    needs("java")
    found = shutil.which("java")
    assert found is not None
    record = await play(tmp_path, (found, "-cp", str(tmp_path), "Bot"), where)
    assert "Java finds no class Bot" in record.result.note


def cplusplus(folder: Path, body: str) -> tuple[str, ...]:
    needs("g++")
    (folder / "bot.cpp").write_text(f"#include <iostream>\n#include <string>\nint main() {{ {body} }}\n")
    subprocess.run(["g++", "-o", "bot", "bot.cpp"], cwd=folder, check=True, timeout=COMPILE_LIMIT_S)
    return (str(folder / "bot"),)


@pytest.mark.parametrize("where", SANDBOXES)
async def test_what_cplusplus_says_of_an_exception(tmp_path: Path, where: str) -> None:
    program = cplusplus(tmp_path, 'std::cin.get(); return std::stoi("North");')
    record = await play(tmp_path, program, where)
    assert "SIGABRT" in record.result.detail
    assert "std::invalid_argument: stoi" in record.result.note
