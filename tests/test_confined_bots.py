"""Real bots of all kinds in a sandbox: they play as they would without one."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job, play_game
from referee.sandbox.runtime_settings import runtime_settings
from referee.sandbox.working_directory import MAX_COPIED_FILES
from sample_bots.catalog import SAMPLE_BOTS
from sample_bots.strong import kernels
from tests.builders import quick_sample_bot
from tests.confinement import needs_sandbox, outcome, reading_bot, sandbox_of
from tests.ordinary_user import as_ordinary_user
from tests.test_faults import CONTROL, FAULTS
from tournaments.bots.resolve import resolve_bot

GAMES = ("kalah(3,2)", "kalamala")
SMALL = GAMES[0]
PATIENT = TimeControl(move_s=20, start_s=20)
LIMITS = Limits(end_grace_s=0.5)

# Each plays the lowest pit with seeds that it is told of.
PYTHON_BOT = """
import sys
side = board = None
for line in sys.stdin:
    words = line.strip().split(";")
    if words[0] == "END":
        break
    if words[0] == "START":
        side, board, mine = words[1], None, words[1] == "South"
    elif words[0] == "CHANGE":
        board, mine = [int(n) for n in words[2].split(",")], words[3] == "YOU"
    if mine:
        if board is None:
            pit = 1
        else:
            half = len(board) // 2
            own = board[half:-1] if side == "South" else board[:half - 1]
            pit = next(i + 1 for i, n in enumerate(own) if n)
        print(f"MOVE;{pit}", flush=True)
"""
REPORT = """
import os, sys
def can_write(folder):
    try:
        open(os.path.join(folder, "new"), "w").close()
        return True
    except OSError:
        return False
"""


@pytest.fixture(autouse=True)
def _sandbox_is_there() -> None:
    needs_sandbox()


async def play(*players: Player, game: str = SMALL, limits: Limits = LIMITS) -> GameRecord:
    first, second = players if len(players) == 2 else (*players, resolve_bot("greedy", Path("/")))
    return await play_game(Job("k", game, (first, second), PATIENT, limits, sandbox=needs_sandbox()))


def report_bot(folder: Path, code: str, text: str | None = None) -> Player:
    """A bot that writes something to standard error, and then plays."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bot.py").write_text(REPORT + code + PYTHON_BOT)
    return resolve_bot(text or str(folder), folder.parent)


async def plays_and_says(player: Player) -> str:
    record = await play(player)
    assert record.result.reason is Reason.SCORE, (record.result, record.stderr)
    assert record.exit_status == (0, 0)
    return record.stderr[0]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", SAMPLE_BOTS)
async def test_sample_bots(name: str, game: str) -> None:
    player = resolve_bot(quick_sample_bot(name), Path("/"), game=game)
    record = await play(player, replace(player, name="other"), game=game)
    assert record.result.reason in (Reason.SCORE, Reason.TURN_CAP), record.result
    assert record.sandbox == "bubblewrap"
    assert record.exit_status == (0, 0)


def directory_bot(folder: Path, kind: str) -> Path:
    """A bot's directory, of mode 0700 and for its owner alone."""
    folder.mkdir(parents=True, mode=0o700)
    if kind == "python":
        (folder / "bot.py").write_text(PYTHON_BOT)
    elif kind == "script":
        script = folder / "player"
        script.write_text("#!/usr/bin/env python3" + PYTHON_BOT)
        script.chmod(0o700)
    elif kind == "shell":
        (folder / "inner").mkdir(mode=0o700)
        (folder / "inner" / "real.py").write_text(PYTHON_BOT)
        script = folder / "player"
        script.write_text("#!/bin/sh\nexec python3 inner/real.py\n")
        script.chmod(0o700)
        command = f"command = [{str(script)!r}]"
        (folder / "bot.toml").write_text(command)
    elif kind == "node":
        _need("node")
        (folder / "bot.js").write_text(NODE_BOT)
        (folder / "bot.toml").write_text('command = ["node", "bot.js"]\n')
    elif kind == "java":
        _need("javac", "java")
        (folder / "Player.java").write_text(JAVA_BOT)
        subprocess.run(["javac", "Player.java"], cwd=folder, check=True, timeout=60)
        (folder / "bot.toml").write_text('command = ["java", "-cp", ".", "Player"]\n')
    elif kind == "jar":
        _need("javac", "jar", "java")
        (folder / "Player.java").write_text(JAVA_BOT)
        subprocess.run(["javac", "Player.java"], cwd=folder, check=True, timeout=60)
        classes = [path.name for path in folder.glob("*.class")]
        subprocess.run(["jar", "cfe", "bot.jar", "Player", *classes], cwd=folder, check=True, timeout=60)
    else:
        _need("cc")
        (folder / "player.c").write_text(C_BOT)
        subprocess.run(["cc", "-o", "player", "player.c"], cwd=folder, check=True, timeout=60)
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(path.stat().st_mode & 0o700)
    return folder


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


# These play the lowest pit that was not refused by its own count of seeds, in three other languages.
NODE_BOT = """
let side = '', first = true;
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const words = line.split(';');
  if (words[0] === 'END') process.exit(0);
  let own = [2, 2, 2], mine = false;
  if (words[0] === 'START') { side = words[1]; mine = side === 'South'; }
  else {
    const board = words[2].split(',').map(Number), half = board.length / 2;
    own = side === 'South' ? board.slice(half, -1) : board.slice(0, half - 1);
    mine = words[3] === 'YOU';
  }
  if (mine) process.stdout.write(`MOVE;${own.findIndex(n => n > 0) + 1}\\n`);
});
"""
JAVA_BOT = """
import java.util.Scanner;
public class Player {
  public static void main(String[] arguments) {
    Scanner in = new Scanner(System.in);
    boolean south = false;
    while (in.hasNextLine()) {
      String[] words = in.nextLine().split(";");
      if (words[0].equals("END")) return;
      int pit = 1;
      boolean mine;
      if (words[0].equals("START")) { south = words[1].equals("South"); mine = south; }
      else {
        String[] board = words[2].split(",");
        int from = south ? board.length / 2 : 0;
        while (board[from + pit - 1].equals("0")) pit++;
        mine = words[3].equals("YOU");
      }
      if (mine) System.out.println("MOVE;" + pit);
    }
  }
}
"""
C_BOT = r"""
#include <stdio.h>
#include <string.h>
int main(void) {
  char line[1024];
  int south = 0;
  while (fgets(line, sizeof line, stdin) && strncmp(line, "END", 3) != 0) {
    int pit = 1, mine;
    if (strncmp(line, "START", 5) == 0) mine = south = strstr(line, "South") != NULL;
    else {
      char *board = strchr(strchr(line, ';') + 1, ';') + 1;
      int fields = 1, field = 0;
      mine = strstr(line, "YOU") != NULL;
      for (char *c = board; *c != ';'; c++) fields += *c == ',';
      for (char *c = board; field < (south ? fields / 2 : 0) || strncmp(c, "0,", 2) == 0; ) {
        if (field++ >= (south ? fields / 2 : 0)) pit++;
        c = strchr(c, ',') + 1;
        board = c;
      }
    }
    if (mine) { printf("MOVE;%d\n", pit); fflush(stdout); }
  }
  return 0;
}
"""


@pytest.mark.parametrize("kind", ["python", "script", "shell", "node", "c", "java", "jar"])
async def test_bots_of_several_languages(tmp_path: Path, kind: str) -> None:
    folder = directory_bot(tmp_path / "bots" / kind, kind)
    await plays_and_says(resolve_bot(str(folder), tmp_path))


def make_environment(environment: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=60)


async def test_python_of_a_virtual_environment(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    make_environment(environment)
    (next(environment.glob("lib/*/site-packages")) / "own_module.py").write_text("WORD = 'found'")
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "player.py").write_text(
        "import own_module, sys; sys.stderr.write(own_module.WORD)" + PYTHON_BOT
    )
    player = resolve_bot("../venv/bin/python player.py", tmp_path / "bot")
    assert await plays_and_says(player) == "found"


@pytest.mark.parametrize("name", ["with space", "größe-\u4e2d", "line\nfeed", "quote'\"", "-dash", "%s;$(x)"])
async def test_directories_of_any_name(tmp_path: Path, name: str) -> None:
    said = await plays_and_says(report_bot(tmp_path / name, "sys.stderr.write(os.getcwd())\n", f"./{name}"))
    assert said == str(tmp_path / name)


@pytest.mark.parametrize("mode", [0o700, 0o755])
async def test_links_and_directories_inside(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "bot"
    (folder / "inner" / "deep").mkdir(parents=True)
    (folder / "inner" / "deep" / "data.txt").write_text("data")
    (folder / "empty").mkdir()
    (folder / "link.txt").symlink_to("inner/deep/data.txt")
    (folder / "folder").symlink_to("inner/deep")
    (folder / "absolute").symlink_to(folder / "inner")
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "outside").symlink_to(tmp_path / "outside.txt")
    (folder / "nowhere").symlink_to("/nowhere/at/all")
    (folder / "around").symlink_to("around")
    code = """
for name in ("inner/deep/data.txt", "link.txt", "folder/data.txt", "absolute/deep/data.txt", "outside"):
    try:
        sys.stderr.write(open(name).read() + " ")
    except OSError as error:
        sys.stderr.write(type(error).__name__ + " ")
sys.stderr.write(str(sorted(os.listdir("."))))
"""
    player = report_bot(folder, code)
    folder.chmod(mode)
    names = ["absolute", "around", "bot.py", "empty", "folder", "inner", "link.txt", "nowhere", "outside"]
    assert await plays_and_says(player) == f"data data data data FileNotFoundError {names}"


async def test_below_a_parent_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    player = report_bot(tmp_path / "home" / "bot", "sys.stderr.write(os.path.basename(os.getcwd()))\n")
    assert await plays_and_says(player) == "bot"


async def test_what_a_bot_can_write_and_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    code = """
for folder in (os.environ["HOME"], os.environ["TMPDIR"], "/tmp", os.getcwd(), "/", "/usr", "/etc", "/dev"):
    sys.stderr.write(str(int(can_write(folder))))
sys.stderr.write(" " + " ".join(sorted(os.environ)) + " " + os.environ["KALARENA_GAME"])
"""
    said = await plays_and_says(report_bot(tmp_path / "bot", code))
    writable, *names, game = said.split()
    assert writable == "11110000"
    allowed = {
        "HOME",
        "KALARENA_GAME",
        "KALARENA_TIME",
        "LANG",
        "LC_CTYPE",
        "PATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "TMPDIR",
        "USER",
        "_",
        *runtime_settings((sys.executable,), Limits(), 1),
    }
    assert {"HOME", "KALARENA_GAME", "LANG", "PATH", "TMPDIR", "USER"} <= set(names) <= allowed
    assert game == SMALL
    assert not (tmp_path / "bot" / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="as another user, all of one's own can be read")
@pytest.mark.parametrize("count", [MAX_COPIED_FILES - 1, MAX_COPIED_FILES])
async def test_files_that_only_root_can_read(tmp_path: Path, count: int) -> None:
    player = report_bot(tmp_path / "bot", "")
    for number in range(count):
        (tmp_path / "bot" / f"data{number}").touch(mode=0o600)
    if count < MAX_COPIED_FILES:
        await plays_and_says(player)
        return
    with pytest.raises(RefereeError) as raised:
        await play(player)
    assert f"chmod -R o+rX {tmp_path / 'bot'}" in str(raised.value)


STATUSES = {
    "sys.exit(0)": 0,
    "sys.exit(3)": 3,
    "sys.exit(126)": 126,
    "sys.exit(127)": 127,
    "sys.exit(255)": 255,
    "os.kill(os.getpid(), 11)": -11,
    "os.kill(os.getpid(), 9)": -9,
    "os._exit(139)": -11,  # bubblewrap tells the same of both
}


@pytest.mark.parametrize("code", STATUSES)
async def test_exit_statuses(tmp_path: Path, code: str) -> None:
    record = await play(report_bot(tmp_path / "bot", f"input(); {code}\n"))
    assert record.exit_status[0] == STATUSES[code]
    assert outcome(record) == (1, "exit", "killed" if STATUSES[code] < 0 else "exited")


@pytest.mark.parametrize("tier", ["confined", "weak"])
@pytest.mark.parametrize("what", FAULTS)
async def test_faults_are_the_same_as_without_a_sandbox(what: str, tier: str) -> None:
    seat = len(what) % 2
    reason, fault, words = FAULTS[what]
    victim = reading_bot(*(["--do", "slow"] if what == "exit-off-turn" else []), name="victim")
    culprit = reading_bot("--do", what)
    players = (culprit, victim) if seat == 0 else (victim, culprit)
    job = Job("k", "manchester", players, CONTROL, Limits(end_grace_s=0.3), sandbox=sandbox_of(tier))
    record = await play_game(job)
    assert outcome(record) == (1 - seat, reason.value, fault), record.result
    assert words in record.result.detail
    assert record.exit_status[1 - seat] == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user")
@pytest.mark.parametrize(
    "name", ["test_confined_bots", "test_launch", "test_limits", "test_sandbox", "test_working_directory"]
)
def test_all_of_this_as_an_ordinary_user(name: str, tmp_path: Path) -> None:
    home = _made(tmp_path / "home")
    if kernels.can_compile():  # once is enough
        compiled = kernels.prepare()
        shutil.copytree(compiled, home / ".cache" / "kalarena" / compiled.name)
    file = f"tests/{name}.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file, "-m", "not slow"]
    done = subprocess.run(
        as_ordinary_user([*command, f"--basetemp={home / 'base'}"], [home]),
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
