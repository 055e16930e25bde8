"""Bots of games with a core of their own: they stay there, and runtimes start all the same."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player
from referee.playing import Job
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.host_resources import usable_cores
from referee.sandbox.seccomp import program
from tests.support.confinement import needs_sandbox
from tournaments.engines.local import open_local_engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cores are bound on Linux alone")

WIDENING = r"""
import ctypes, json, os, platform, sys, threading
NUMBER = {"x86_64": 203, "aarch64": 122}[platform.machine()]
ALL = b"\xff" * 128
call = ctypes.CDLL(None, use_errno=True).syscall

def attempt(number, mask=ALL):
    ctypes.set_errno(0)
    return -1 if call(NUMBER, number, len(mask), mask) < 0 else 0

tried = {"itself": attempt(0), "its parent": attempt(os.getppid())}
waits = threading.Event()
thread = threading.Thread(target=waits.wait)
thread.start()
tried["its thread"] = attempt(thread.native_id)
waits.set()
child = os.fork()
if child == 0:
    os._exit(1 if attempt(0) else 0)
tried["a child"] = -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
try:
    os.sched_setaffinity(0, range(1024))
    tried["by the library"] = 0
except OSError:
    tried["by the library"] = -1
grown = len(os.sched_getaffinity(0))
print(json.dumps({"tried": tried, "cores": grown}), file=sys.stderr, flush=True)
"""
PLAYING = r"""
for line in sys.stdin:
    if line == "END\n": break
    if line == "START;South\n": print("MOVE;1", flush=True)
"""


def bot(source: str) -> Player:
    return Player("bot", ("/usr/bin/python3", "-S", "-E", "-c", source), "/")


async def played(source: str, folder: Path, sandbox: Sandbox, *, own_core: bool) -> GameRecord:
    resigning = Player("other", ("/usr/bin/python3", "-S", "-E", "-c", "input(); input(); exit(3)"), "/")
    control = TimeControl(move_s=20.0)
    async with open_local_engine(folder, 1, own_core=own_core) as engine:
        job = Job("game", "manchester", (bot(source), resigning), control, sandbox=sandbox)
        return (await engine.play(job)).record


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the bot's number of the call")
async def test_a_bot_with_a_core_of_its_own_cannot_leave_it(tmp_path: Path) -> None:
    record = await played(WIDENING + PLAYING, tmp_path, needs_sandbox(), own_core=True)
    seen = json.loads(record.stderr[0])
    assert seen["cores"] == len(record.cores) == 1
    tried = seen["tried"]
    assert set(tried.values()) == {0}, tried  # .NET ends if a call fails


@pytest.mark.skipif(len(usable_cores()) < 2, reason="there is no other core")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the bot's number of the call")
@pytest.mark.parametrize(("own_core", "confined"), [(True, False), (False, True)])
async def test_a_bot_elsewhere_chooses_its_cores(tmp_path: Path, own_core: bool, confined: bool) -> None:
    """Else the test above would prove little."""
    sandbox = needs_sandbox() if confined else Sandbox()
    record = await played(WIDENING + PLAYING, tmp_path, sandbox, own_core=own_core)
    seen = json.loads(record.stderr[0])
    assert seen["cores"] == os.cpu_count()
    assert seen["tried"]["itself"] == seen["tried"]["its thread"] == seen["tried"]["a child"] == 0


OPEN_MP = r"""
#include <cstdio>
#include <omp.h>
int main() {
    int sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < 100; i++) sum += i;
    std::printf("%d", sum);
}
"""
GO = 'package main\nimport ("fmt"; "runtime")\nfunc main() { fmt.Print(runtime.NumCPU() > 0) }\n'
JAVA = 'public class Bot { public static void main(String[] a) { System.out.print("started"); } }\n'
MONO = "class Bot { static void Main() { var t = new System.Threading.Thread(() => {}); t.Start(); t.Join();"
MONO += ' System.Console.Write("started"); } }\n'
NUMPY = "import numpy; print(int((numpy.ones((300, 300)) @ numpy.ones((300, 300)))[0, 0]), end='')"
RUNTIMES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...], str]] = {
    # Name of the source, source, how it is built, how it is run, output.
    "openmp": ("bot.cc", OPEN_MP, ("g++", "-fopenmp", "-o", "bot", "bot.cc"), ("./bot",), "4950"),
    "go": ("bot.go", GO, ("go", "build", "-o", "bot", "bot.go"), ("./bot",), "true"),
    "java": ("Bot.java", JAVA, ("javac", "Bot.java"), ("java", "Bot"), "started"),
    "parallel java": (
        *("Bot.java", JAVA, ("javac", "Bot.java")),
        *(("java", "-XX:+UseParallelGC", "-XX:+UseNUMA", "Bot"), "started"),
    ),
    "mono": ("Bot.cs", MONO, ("mcs", "Bot.cs"), ("mono", "Bot.exe"), "started"),
    "node": ("bot.js", "process.stdout.write('started')", (), ("node", "bot.js"), "started"),
    "lua": ("bot.lua", "io.write('started')", (), ("lua", "bot.lua"), "started"),
    "numpy": ("bot.py", NUMPY, (), (sys.executable, "bot.py"), "300"),
}


@pytest.mark.toolchain
@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("variables", [{}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}])
def test_runtimes_start_on_a_core_of_their_own(tmp_path: Path, name: str, variables: dict[str, str]) -> None:
    if variables and name not in ("openmp", "numpy"):
        pytest.skip("the variables are of OpenMP")
    file, source, build, command, output = RUNTIMES[name]
    for tool in (*build[:1], *command[:1]):
        if not tool.startswith((".", "/")) and shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (tmp_path / file).write_text(source)
    if build:
        environment = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off"}
        subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, env=environment)
    done = run_bound([*(f"{key}={value}" for key, value in variables.items())], list(command), tmp_path)
    assert (done.returncode, done.stdout) == (0, output), done.stderr


def run_bound(variables: list[str], command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command under the filter of a game with a core of its own."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        pytest.skip("bwrap (bubblewrap) is not installed")
    read_end, write_end = os.pipe()
    os.write(write_end, program(platform.machine(), shared_memory=False, own_core=True))
    os.close(write_end)
    sandbox = ("--unshare-pid", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    core = str(min(usable_cores()))
    words = ["taskset", "-c", core, bubblewrap, *sandbox, "--chdir", str(folder), "--seccomp", str(read_end)]
    try:
        return subprocess.run(
            [*words, "--", "env", *variables, *command],
            capture_output=True, text=True, check=False, pass_fds=[read_end],
        )  # fmt: skip
    finally:
        os.close(read_end)
