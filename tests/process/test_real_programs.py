"""Mistakes of students as real programs in several languages: the verdict or its note names the mistake."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from referee.judge import match
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from tests.support.confinement import reading_bot, sandbox_of

pytestmark = pytest.mark.usefixtures("patient_referee")

QUICK_CONTROL = TimeControl(move_s=1.0, margin_s=0.05, start_s=60, setup_s=0.05)
"""For programs that are to be out of time."""
PATIENT = TimeControl(move_s=60, start_s=60)
COMPILE_LIMIT_S = 900.0
"""Go compiles its library first, which takes long on a busy machine."""


@dataclass(frozen=True)
class Program:
    """A bot of one file, the command that compiles it, and its own command."""

    source: str
    text: str
    command: tuple[str, ...]
    build: tuple[str, ...] = ()
    mode: int = 0o755

    def make(self, folder: Path, go_cache: Path) -> None:
        """Write and compile the program."""
        (folder / self.source).write_text(self.text, newline="")
        (folder / self.source).chmod(self.mode)
        if self.build:
            environment = {**os.environ, "GOCACHE": str(go_cache), "GO111MODULE": "off"}
            words = (found(self.build[0]), *self.build[1:])
            subprocess.run(words, cwd=folder, check=True, timeout=COMPILE_LIMIT_S, env=environment)

    def words(self, folder: Path) -> tuple[str, ...]:
        """Return the command that runs the program in a folder."""
        first, *others = self.command
        return (str(folder / first) if first.startswith("./") else found(first), *others)


Make = Callable[[Program], tuple[str, ...]]


@pytest.fixture(scope="module")
def compiled() -> dict[tuple[str, str], Path]:
    """Name and text of a source file -> folder in which it was compiled."""
    return {}


@pytest.fixture
def make(
    compiled: dict[tuple[str, str], Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Make:
    """Write a program into the test's folder, compiled once for all tests; return its command."""

    def made(program: Program) -> tuple[str, ...]:
        key = (program.source, program.text)
        if key not in compiled:
            folder = tmp_path_factory.mktemp("program")
            program.make(folder, tmp_path_factory.mktemp("go"))
            compiled[key] = folder
        shutil.copytree(compiled[key], tmp_path, dirs_exist_ok=True)
        tmp_path.chmod(0o755)
        return program.words(tmp_path)

    return made


def found(program: str) -> str:
    """Return a program's path; skip the test without it, or fail where all toolchains must be there."""
    if program == "python3":
        return sys.executable
    path = shutil.which(program)
    if path is None:
        if os.environ.get("KALARENA_REQUIRE_TOOLCHAINS") == "1":
            pytest.fail(f"{program} not found on PATH")
        pytest.skip(f"needs {program}")
    return path


def python(text: str) -> Program:
    return Program("bot.py", text, ("python3", "-S", "-E", "bot.py"))


def script(text: str, mode: int = 0o755) -> Program:
    return Program("bot", text, ("./bot",), mode=mode)


def java(body: str, *options: str) -> Program:
    text = "import java.io.*; import java.util.*; public class Bot {\n"
    text += f"public static void main(String[] words) throws Exception {{ {body} }} }}\n"
    return Program("Bot.java", text, ("java", *options, "-cp", ".", "Bot"), ("javac", "Bot.java"))


def c(body: str) -> Program:
    text = f"#include <stdio.h>\nint main(void) {{ {body} }}\n"
    return Program("bot.c", text, ("./bot",), ("gcc", "-o", "bot", "bot.c"))


def cplusplus(body: str, *command: str) -> Program:
    text = f"#include <iostream>\n#include <string>\n#include <vector>\nint main() {{ {body} }}\n"
    return Program("bot.cpp", text, command or ("./bot",), ("g++", "-o", "bot", "bot.cpp"))


async def play(
    folder: Path, command: tuple[str, ...], tier: str, limits: Limits, control: TimeControl = PATIENT
) -> GameRecord:
    """A game that the bot with this command begins, and loses."""
    culprit = Player("culprit", command, str(folder), reads=(str(folder),))
    players = (culprit, reading_bot(name="victim"))
    record = await play_game(Job("k", "manchester", players, control, limits, sandbox=sandbox_of(tier)))
    assert check_replay(record) == []
    assert record.result.winner == 1, (record.result, record.stderr)
    return record


# Mistakes that have the same end in a sandbox and without one

FLUSH = "waiting for input while the referee waits for its move: did you flush stdout?"
MISTAKES: dict[str, tuple[Program, Reason | None, str, str]] = {
    # Program, reason, words of the verdict, words of the note (or of the verdict): without any, no note.
    "not flushed": (
        python("import sys\nfor line in sys.stdin:\n    print('MOVE;1')\n"),
        Reason.TIMEOUT,
        FLUSH,
        "",
    ),
    "endless loop beside a reader": (
        python(
            "import sys, threading\nthreading.Thread(target=lambda: list(sys.stdin), daemon=True).start()\n"
            "while True: pass\n"
        ),
        Reason.TIMEOUT,
        " still ",  # thinking, or computing
        "",
    ),
    "endless loop": (python("input()\nwhile True: pass\n"), Reason.TIMEOUT, "still computing", ""),
    "carriage return": (
        python("import sys\ninput()\nsys.stdout.write('MOVE;1\\r\\n')\nsys.stdout.flush()\ninput()\n"),
        Reason.PROTOCOL,
        "CR LF",
        "",
    ),
    "debug print": (
        python("input()\nprint('thinking...', flush=True)\ninput()\n"),
        Reason.PROTOCOL,
        "it sent 'thinking...'",
        "",
    ),
    "traceback": (
        python("def think(line):\n    return {}[line]\n\nthink(input())\n"),
        Reason.EXIT,
        "exit status 1 on its turn",
        "KeyError: 'START;South'\" (at bot.py, line 2, in think)",
    ),
    "ended too early": (python("print('MOVE;1', flush=True)\ninput()\n"), Reason.EXIT, "exit status 0", ""),
    "exit before START": (
        python("raise SystemExit('no opening book')\n"),
        Reason.EXIT,
        "exit status 1 before",
        "no opening book",
    ),
    "module": (
        python("input()\nimport my_own_module\n"),
        Reason.EXIT,
        "exit status 1",
        "the module my_own_module is not there",
    ),
    "number": (python("int(input())\n"), Reason.EXIT, "exit status 1", "it took a text for a number"),
    "memory": (
        python("input()\nbytearray(10**13)\n"),
        Reason.MEMORY,
        "it ran out of memory on its turn",
        "Python found no more memory",
    ),
    "segmentation fault": (
        python("import os\ninput()\nos.kill(os.getpid(), 11)\nos.read(0, 1)\n"),
        Reason.EXIT,
        "SIGSEGV on its turn (a bad pointer",
        "",
    ),
    "exit status of a shell": (python("import os\ninput()\nos._exit(134)\n"), Reason.EXIT, "SIGABRT", ""),
    "env and CR LF": (script("#!/usr/bin/env python3\r\nprint()\r\n"), None, "", "CR LF"),
    "command of a shell": (
        script("#!/bin/sh\npython7 bot.py\n"),
        Reason.EXIT,
        "",
        "a shell's way to say: command not found",
    ),
    "no program of a shell": (
        script("#!/bin/sh\n> bot.txt; ./bot.txt\n"),
        Reason.EXIT,
        "",
        "a shell's way to say: found, but not executable",
    ),
    "C: not flushed": (
        c('char line[1000]; while (fgets(line, sizeof line, stdin)) printf("MOVE;1\\n");'),
        Reason.TIMEOUT,
        FLUSH,
        "",
    ),
    "Java: not flushed": (
        java(
            "var in = new BufferedReader(new InputStreamReader(System.in));"
            "var out = new BufferedWriter(new OutputStreamWriter(System.out));"
            'while (in.readLine() != null) out.write("MOVE;1\\n");',
            "-Xmx64m",
        ),
        Reason.TIMEOUT,
        FLUSH,
        "",
    ),
    "Java: exception": (
        java('System.in.read(); Integer.parseInt("North");', "-Xmx64m"),
        Reason.EXIT,
        "",
        "(at Bot.java, line 2, in Bot.main). That is: it took a text for a number",
    ),
    "Java: heap": (
        java("System.in.read(); long[] held = new long[1 << 27];", "-Xmx64m"),
        Reason.MEMORY,
        "",
        "its Java heap is full",
    ),
    "Java: class": (
        Program("Bot.java", "", ("java", "-cp", ".", "Bot")),
        Reason.EXIT,
        "",
        "Java finds no class Bot",
    ),
    "C++: exception": (
        cplusplus('std::cin.get(); return std::stoi("North");'),
        Reason.EXIT,
        "SIGABRT",
        "std::invalid_argument: stoi",
    ),
}


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        pytest.param(
            name,
            tier,
            marks=[pytest.mark.toolchain] * (": " in name)
            + [pytest.mark.slow] * (tier == "confined" or name == "endless loop beside a reader"),
        )
        for name in MISTAKES
        for tier in ("bare", "confined")
    ],
)
async def test_a_mistake(tmp_path: Path, make: Make, name: str, tier: str) -> None:
    program, reason, detail, note = MISTAKES[name]
    control = QUICK_CONTROL if reason is Reason.TIMEOUT else PATIENT
    record = await play(tmp_path, make(program), tier, Limits(end_grace_s=0.3), control)
    assert reason in (None, record.result.reason), record.result
    assert detail in record.result.detail
    assert note in f"{record.result.note} {record.result.detail}"
    if not note:
        assert record.result.note == ""
    if name in ("traceback", "exit before START"):
        assert note not in record.result.detail  # which the opponent reads, too
    if name == "endless loop":
        assert "flush" not in record.result.detail


# What only the sandbox refuses

FULL = "the space for a bot's files in the sandbox is limited, and full"
LARGE = "it wrote a file larger than a bot's files may be"
PROCESSES = "it started more processes or threads than a bot may have"
REFUSED_PROCESS = "the system refused a further process or thread"
REFUSED = {
    # Text after the first line was read -> reason, finer word, words of the note.
    "open('/usr/log.txt', 'w')": (
        Reason.FILES,
        "read-only",
        "[Errno 30] Read-only file system: '/usr/log.txt'\" (at bot.py, line 3, in <module>). "
        "That is: the file or folder is read-only in the sandbox",
    ),
    "[open(os.environ['TMPDIR'] + f'/{n}', 'wb').write(bytes(1 << 20)) for n in range(9)]": (
        Reason.FILES,
        "disk-full",
        FULL,
    ),
    "open(os.environ['TMPDIR'] + '/a', 'wb').write(bytes(3 << 20))": (Reason.FILES, "file-too-large", LARGE),
    "files = [open('/dev/null') for _ in range(1000)]": (
        Reason.FILES,
        "too-many-files",
        "it has too many files open",
    ),
    "held = bytearray(8 << 30)": (Reason.MEMORY, "out-of-memory", "Python found no more memory"),
    "socket.create_connection(('192.0.2.1', 9), 1)": (
        Reason.EXIT,
        "exited",
        "(at bot.py, line 3, in <module>). That is: a bot in the sandbox has no network",
    ),
    "for _ in range(100): threading.Thread(target=signal.pause, daemon=True).start()": (
        Reason.EXIT,
        "exited",
        PROCESSES,
    ),
    "for _ in range(100): os.fork() or signal.pause()": (Reason.EXIT, "exited", REFUSED_PROCESS),
}


@pytest.mark.parametrize("text", REFUSED)
async def test_an_action_that_the_sandbox_refuses(tmp_path: Path, make: Make, text: str) -> None:
    reason, fault, note = REFUSED[text]
    program = python(f"import os, signal, socket, threading\ninput()\n{text}\n")
    limits = Limits(file_mb=2, scratch_mb=4, end_grace_s=0.3)
    record = await play(tmp_path, make(program), "confined", limits)
    assert (record.result.reason, record.result.fault) == (reason, fault), (record.result, record.stderr)
    assert note in record.result.note


# Programs that allocate beyond a limit


def node(body: str, *options: str) -> Program:
    text = f"process.stdin.once('data', () => {{ const l = []; while (true) {body} }});"
    return Program("bot.js", text, ("node", *options, "bot.js"))


JAVA_HOG = (
    "System.in.read(); var l = new ArrayList<long[]>();"
    " while (true) { l.add(new long[1 << 20]); Arrays.fill(l.get(l.size() - 1), 1); }"
)
HOG = "getchar(); std::vector<std::vector<char>> l; for (;;) l.emplace_back(1 << 24, 1);"
GO_HOG = """package main
import ("bufio"; "os")
func main() { bufio.NewReader(os.Stdin).ReadString(10)
m := map[int][64]byte{}
for i := 0; ; i++ { m[i] = [64]byte{} } }
"""
RUST_HOG = (
    "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap();"
    " let mut l = vec![]; loop { l.push(vec![1u8; 1 << 24]); } }"
)
MONO_HOG = (
    "using System; using System.Collections.Generic; class Hog { static void Main() {"
    " Console.ReadLine(); var l = new List<object>(); while (true) l.Add(new int[1000]); } }"
)
LUA_HOG = 'io.read() local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 1 << 20) .. i end'
KIB = 100_000
HOGS: dict[str, tuple[Program, int]] = {
    # Program, and RLIMIT_DATA in KiB where it is unconfined.
    "java commit": (java(JAVA_HOG, "-Xmx4g"), 300_000),
    "java heap": (java(JAVA_HOG, "-Xmx32m"), 0),
    "java exit": (java(JAVA_HOG, "-Xmx32m", "-XX:+ExitOnOutOfMemoryError"), 0),
    "node heap": (node("l.push(new Array(9999).fill(1.5));", "--max-old-space-size=40"), 0),
    "node buffers": (node("l.push(Buffer.alloc(1 << 26, 1));"), 600_000),
    "go": (Program("hog.go", GO_HOG, ("./hog",), ("go", "build", "-o", "hog", "hog.go")), KIB),
    "rust": (Program("hog.rs", RUST_HOG, ("./hog",), ("rustc", "-o", "hog", "hog.rs")), KIB),
    "c++": (cplusplus(HOG), KIB),
    "c++ in a shell": (cplusplus(HOG, "sh", "-c", "./bot; exit $?"), KIB),
    "lua": (Program("hog.lua", LUA_HOG, ("lua5.4", "hog.lua")), KIB),
    "python": (python("input()\nheld = []\nwhile True:\n    held.append(b'x' * (1 << 24))\n"), KIB),
    "mono": (Program("Hog.cs", MONO_HOG, ("mono", "Hog.exe"), ("mcs", "Hog.cs")), 150_000),
}


@pytest.mark.parametrize("tier", ["confined", "weak", "bare"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "python" else pytest.mark.toolchain) for name in HOGS]
)
async def test_a_program_that_allocates_beyond_its_limit(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch, name: str, tier: str
) -> None:
    # Each program ends after its message, on a busy machine later than the judge waits for that.
    monkeypatch.setattr(match, "CAUSE_WAIT_US", 60_000_000)
    program, data_kib = HOGS[name]
    words = make(program)
    if tier == "bare" and data_kib:
        words = ("/bin/sh", "-c", f'ulimit -c 0; ulimit -d {data_kib}; exec "$@"', "sh", *words)
    record = await play(tmp_path, words, tier, Limits(memory_mb=128, end_grace_s=0.3))
    assert record.result.reason is Reason.MEMORY, (record.result, record.stderr)
    if tier != "bare":
        assert "128 MB are allowed" in record.result.detail
    elif name == "java commit":
        assert any(line.line == "#" for line in record.wire)  # a complaint on standard output
        assert "-Xmx" in record.result.detail


@pytest.mark.toolchain
@pytest.mark.parametrize("tier", ["confined", "bare"])
async def test_a_java_heap_that_cannot_be_reserved(tmp_path: Path, tier: str) -> None:
    """It ends before START is taken, with its complaint on standard output."""
    words: tuple[str, ...] = (found("java"), "-Xmx900g", "-Xms900g", "-cp", ".", "Bot")
    if tier == "bare":
        words = ("/bin/sh", "-c", 'ulimit -v 6000000; exec "$@"', "sh", *words)
    tmp_path.chmod(0o755)
    record = await play(tmp_path, words, tier, Limits(memory_mb=128, end_grace_s=0.3))
    assert record.result.reason is Reason.MEMORY, (record.result, record.stderr)
    assert "-Xmx" in record.result.detail
