"""Real programs that allocate beyond a limit: each ends with reason ``memory``, whatever it prints where."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job, play_game
from tests.confinement import reading_bot, sandbox_of

CONTROL = TimeControl(move_s=60, start_s=60)
COMPILE_LIMIT_S = 120.0
KIB_JAVA, KIB, KIB_NODE = 300_000, 100_000, 600_000

SOURCES = {
    "Hog.java": (
        "import java.util.*; public class Hog { public static void main(String[] a) throws Exception {"
        " System.in.read(); var l = new ArrayList<long[]>();"
        " while (true) { l.add(new long[1 << 20]); Arrays.fill(l.get(l.size() - 1), 1); } } }"
    ),
    "hog.js": (
        "process.stdin.once('data', () => { const l = []; while (true) l.push(new Array(9999).fill(1.5)); });"
    ),
    "buffers.js": (
        "process.stdin.once('data', () => { const l = []; while (true) l.push(Buffer.alloc(1 << 26, 1)); });"
    ),
    "hog.go": (
        'package main\nimport ("bufio"; "os")\nfunc main() { bufio.NewReader(os.Stdin).ReadString(10)\n'
        "m := map[int][64]byte{}\nfor i := 0; ; i++ { m[i] = [64]byte{} } }\n"
    ),
    "hog.rs": (
        "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap();"
        " let mut l = vec![]; loop { l.push(vec![1u8; 1 << 24]); } }"
    ),
    "hog.cpp": (
        "#include <vector>\n#include <cstdio>\nint main() { getchar(); std::vector<std::vector<char>> l;"
        " for (;;) l.emplace_back(1 << 24, 1); }\n"
    ),
    "hog.lua": 'io.read() local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 1 << 20) .. i end\n',
    "hog.py": "input()\nheld = []\nwhile True:\n    held.append(b'x' * (1 << 24))\n",
    "Hog.cs": (
        "using System; using System.Collections.Generic; class Hog { static void Main() {"
        " Console.ReadLine(); var l = new List<object>(); while (true) l.Add(new int[1000]); } }"
    ),
}
PROGRAMS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], int]] = {
    # Name -> source, the compiler's command, its own command, RLIMIT_DATA in KiB where it is unconfined.
    "java commit": ("Hog.java", ("javac", "Hog.java"), ("java", "-Xmx4g", "-cp", ".", "Hog"), KIB_JAVA),
    "java heap": ("Hog.java", ("javac", "Hog.java"), ("java", "-Xmx32m", "-cp", ".", "Hog"), 0),
    "java exit": (
        "Hog.java",
        ("javac", "Hog.java"),
        ("java", "-Xmx32m", "-XX:+ExitOnOutOfMemoryError", "-cp", ".", "Hog"),
        0,
    ),
    "node heap": ("hog.js", (), ("node", "--max-old-space-size=40", "hog.js"), 0),
    "node buffers": ("buffers.js", (), ("node", "buffers.js"), KIB_NODE),
    "go": ("hog.go", ("go", "build", "-o", "hog", "hog.go"), ("./hog",), KIB),
    "rust": ("hog.rs", ("rustc", "-o", "hog", "hog.rs"), ("./hog",), KIB),
    "c++": ("hog.cpp", ("g++", "-o", "hog", "hog.cpp"), ("./hog",), KIB),
    "c++ in a shell": ("hog.cpp", ("g++", "-o", "hog", "hog.cpp"), ("sh", "-c", "./hog; exit $?"), KIB),
    "lua": ("hog.lua", (), ("lua5.4", "hog.lua"), KIB),
    "python": ("hog.py", (), ("python3", "-S", "-E", "hog.py"), KIB),
    "mono": ("Hog.cs", ("mcs", "Hog.cs"), ("mono", "Hog.exe"), 150_000),
}


def found(program: str) -> str:
    """Its path; the test is skipped without it, or fails where all toolchains must be there."""
    if program == "python3":
        return sys.executable
    path = program if program.startswith("./") else shutil.which(program)
    if path is not None:
        return path
    if os.environ.get("KALARENA_REQUIRE_TOOLCHAINS") == "1":
        pytest.fail(f"{program} not found on PATH")
    pytest.skip(f"needs {program}")


def compile_in(folder: Path, command: tuple[str, ...]) -> None:
    environment = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    words = (found(command[0]), *command[1:])
    subprocess.run(words, cwd=folder, check=True, timeout=COMPILE_LIMIT_S, env=environment)


async def play(folder: Path, command: tuple[str, ...], tier: str, memory_mb: int = 128) -> GameRecord:
    folder.chmod(0o755)
    culprit = Player("culprit", command, str(folder), reads=(str(folder),))
    players = (culprit, reading_bot(name="victim"))
    limits = Limits(memory_mb=memory_mb, file_mb=2, scratch_mb=4, end_grace_s=0.3)
    record = await play_game(Job("k", "manchester", players, CONTROL, limits, sandbox=sandbox_of(tier)))
    assert check_replay(record) == []
    return record


@pytest.mark.parametrize("tier", ["confined", "weak", "bare"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_that_allocates_beyond_its_limit(tmp_path: Path, name: str, tier: str) -> None:
    source, build, command, data_kib = PROGRAMS[name]
    (tmp_path / source).write_text(SOURCES[source])
    if build:
        compile_in(tmp_path, build)
    words = (found(command[0]), *command[1:])
    if words[0].startswith("./"):
        words = (str(tmp_path / words[0]), *words[1:])
    if tier == "bare" and data_kib:
        words = ("/bin/sh", "-c", f'ulimit -c 0; ulimit -d {data_kib}; exec "$@"', "sh", *words)
    record = await play(tmp_path, words, tier)
    assert (record.result.winner, record.result.reason) == (1, Reason.MEMORY), (record.result, record.stderr)
    if tier != "bare":
        assert "128 MB are allowed" in record.result.detail
    elif name == "java commit":
        assert any(line.line == "#" for line in record.wire)  # it complained on standard output
        assert "-Xmx" in record.result.detail


@pytest.mark.parametrize("tier", ["confined", "bare"])
async def test_a_java_heap_that_cannot_be_reserved(tmp_path: Path, tier: str) -> None:
    """It ends before START is taken, with its complaint on standard output."""
    words: tuple[str, ...] = (found("java"), "-Xmx900g", "-Xms900g", "-cp", ".", "Hog")
    if tier == "bare":
        words = ("/bin/sh", "-c", 'ulimit -v 6000000; exec "$@"', "sh", *words)
    record = await play(tmp_path, words, tier)
    assert (record.result.winner, record.result.reason) == (1, Reason.MEMORY), (record.result, record.stderr)
    assert "-Xmx" in record.result.detail


FILES = {
    "read-only": "open('/usr/log.txt', 'w')",
    "disk-full": "[open(os.environ['TMPDIR'] + f'/{n}', 'wb').write(bytes(1 << 20)) for n in range(9)]",
    "file-too-large": "open(os.environ['TMPDIR'] + '/a', 'wb').write(bytes(3 << 20))",
    "too-many-files": "files = [open('/dev/null') for _ in range(1000)]",
}


@pytest.mark.parametrize("fault", FILES)
async def test_a_program_that_a_file_is_refused(tmp_path: Path, fault: str) -> None:
    (tmp_path / "bot.py").write_text(f"import os\ninput()\n{FILES[fault]}\n")
    record = await play(tmp_path, (found("python3"), "-S", "-E", "bot.py"), "confined")
    assert (record.result.reason, record.result.fault) == (Reason.FILES, fault), (
        record.result,
        record.stderr,
    )
