"""Real runtimes in the sandbox, sized by their limits and not by the host."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord
from referee.playing import Job, play_game
from tests.support.confinement import sandbox_of
from tournaments.bots.resolve import resolve_bot

pytestmark = pytest.mark.toolchain

JAVA_BOT = r"""
import java.io.*;
public class Bot {
    static long[] table = new long[200 << 17];
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < table.length; i++) table[i] = i * 31L;
        Runtime runtime = Runtime.getRuntime();
        System.err.println("heap " + (runtime.maxMemory() >> 20) + " cores " + runtime.availableProcessors());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line, seat = "";
        while ((line = in.readLine()) != null && !line.equals("END")) {
            String[] parts = line.split(";");
            if (parts[0].equals("START")) {
                seat = parts[1];
                if (seat.equals("South")) System.out.print("MOVE;1\n");
            } else if (parts[3].equals("YOU")) {
                if (parts[1].equals("SWAP")) seat = seat.equals("South") ? "North" : "South";
                String[] pits = parts[2].split(",");
                int offset = seat.equals("North") ? 0 : 8, move = 0;
                while (pits[offset + move].equals("0")) move++;
                System.out.print("MOVE;" + (move + 1) + "\n");
            }
            System.out.flush();
        }
    }
}
"""
LARGE_HOST = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name) {
    long (*original)(int) = dlsym(RTLD_NEXT, "sysconf");
    if (name == _SC_PHYS_PAGES) return (256L << 30) / original(_SC_PAGESIZE);
    return original(name);
}
"""
"""A host with 256 GB, as a Java virtual machine sees it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None or shutil.which("gcc") is None:
        pytest.skip("needs a JDK and gcc")
    folder = tmp_path_factory.mktemp("java")
    (folder / "Bot.java").write_text(JAVA_BOT)
    (folder / "manifest").write_text("Main-Class: Bot\n")
    (folder / "large.c").write_text(LARGE_HOST)
    for command in (
        ("javac", "Bot.java"),
        ("jar", "cfm", "bot.jar", "manifest", "Bot.class"),
        ("gcc", "-shared", "-fPIC", "-o", "large.so", "large.c", "-ldl"),
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "run.sh").write_text("#!/bin/sh\nexec java -XX:+UseG1GC -Xms600m -jar bot.jar\n")
    (folder / "run.sh").chmod(0o755)
    return folder


async def play(folder: Path, command: str, memory_mb: int, tier: str = "confined") -> GameRecord:
    (folder / "bot.toml").write_text(f'command = "{command}"\nname = "java"\n')
    bots = (resolve_bot(str(folder), folder), resolve_bot("first_legal", folder))
    limits = Limits(memory_mb=memory_mb)
    control = TimeControl(move_s=10, start_s=30)
    return await play_game(Job("k", "manchester", bots, control, limits, sandbox=sandbox_of(tier)))


@pytest.mark.parametrize(
    ("command", "memory_mb", "heap"),
    [
        ("java -jar bot.jar", 512, range(330, 353)),
        ("java -jar bot.jar", 2048, range(1600, 1697)),
        ("env LD_PRELOAD=./large.so java -jar bot.jar", 512, range(330, 353)),
        ("env LD_PRELOAD=./large.so java -XX:+UseG1GC -jar bot.jar", 512, range(352, 353)),
        ("java -Xmx400m -XX:+UseParallelGC -jar bot.jar", 512, range(340, 401)),
        ("java -Xms1g -jar bot.jar", 512, range(900, 1025)),
        ("java -XX:MaxRAMPercentage=60 -jar bot.jar", 512, range(290, 309)),
        ("./run.sh", 512, range(600, 601)),
    ],
)
async def test_a_jar_with_a_table_of_200_mb(folder: Path, command: str, memory_mb: int, heap: range) -> None:
    record = await play(folder, command, memory_mb)
    assert record.result.fault is None, (record.result, record.stderr)
    found = re.search(r"^heap (\d+) cores \d+$", record.stderr[0], re.MULTILINE)
    assert found is not None
    assert int(found[1]) in heap, record.stderr[0]
    assert "MaxRAM=" in record.runtime_settings[0]["JAVA_TOOL_OPTIONS"]
    assert record.runtime_settings[1]["JAVA_TOOL_OPTIONS"] != ""


async def test_the_weak_tier_and_none(folder: Path) -> None:
    weak = await play(folder, "java -jar bot.jar", 512, "weak")
    assert weak.result.fault is None, (weak.result, weak.stderr)
    assert "-Xmx352m" in weak.runtime_settings[0]["JAVA_TOOL_OPTIONS"]
    off = await play(folder, "java -jar bot.jar", 512, "off")
    assert off.runtime_settings == ({}, {})
    assert "Picked up" not in off.stderr[0]
