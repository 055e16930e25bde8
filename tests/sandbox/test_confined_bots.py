"""Real bots of all kinds in a sandbox: they play as they would without one."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from referee.sandbox import visible_files
from referee.sandbox.runtime_settings import runtime_settings
from referee.sandbox.working_directory import MAX_COPIED_FILES
from sample_bots.catalog import SAMPLE_BOTS
from tests.support.builders import quick_sample_bot
from tests.support.confinement import UNHURRIED, needs_sandbox, outcome
from tests.support.ordinary_user import as_ordinary_user
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tiers import slow
from tournaments.bots.resolve import resolve_bot

GAMES = ("kalah(3,2)", "kalamala")
SMALL = GAMES[0]
PATIENT = TimeControl(move_s=20, start_s=20)
LIMITS = UNHURRIED

# It plays the lowest pit with seeds, by the last board that it received.
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


@pytest.mark.parametrize(
    ("name", "game"),
    [
        pytest.param(name, game, marks=() if (name, game) == ("greedy", SMALL) else pytest.mark.slow)
        for name in SAMPLE_BOTS
        for game in GAMES
    ],
)
async def test_sample_bots(name: str, game: str) -> None:
    player = resolve_bot(quick_sample_bot(name), Path("/"), game=game)
    record = await play(player, replace(player, name="other"), game=game)
    assert record.result.reason in (Reason.SCORE, Reason.TURN_CAP), record.result
    assert record.sandbox == "bubblewrap"
    assert record.exit_status == (0, 0)


C_BOT = r"""
#include <stdio.h>
#include <string.h>
int main(void) {
  char line[1024];
  while (fgets(line, sizeof line, stdin) && strncmp(line, "END", 3) != 0) {
    int pit = 1;
    if (strncmp(line, "START", 5) == 0) { if (!strstr(line, "South")) continue; }
    else {
      if (!strstr(line, "YOU")) continue;
      int seeds[8];
      char *board = strchr(strchr(line, ';') + 1, ';') + 1;  // always South's: this bot begins
      sscanf(board, "%d,%d,%d,%d,%d,%d,%d,%d", seeds, seeds + 1, seeds + 2, seeds + 3, seeds + 4, seeds + 5,
             seeds + 6, seeds + 7);
      while (!seeds[3 + pit]) pit++;
    }
    printf("MOVE;%d\n", pit);
    fflush(stdout);
  }
}
"""
FILES = {
    # Files of a bot; of a compiled one, the command that makes the program.
    "python": {"bot.py": PYTHON_BOT},
    "script": {"player": "#!/usr/bin/env python3" + PYTHON_BOT},
    "shell": {
        "inner/real.py": PYTHON_BOT,
        "player": "#!/bin/sh\nexec python3 inner/real.py\n",
        "bot.toml": 'command = ["./player"]\n',
    },
    "c": {"player.c": C_BOT},
}


def directory_bot(folder: Path, kind: str) -> Path:
    """A bot's directory, of mode 0700 and for its owner alone."""
    folder.mkdir(parents=True, mode=0o700)
    for name, text in FILES[kind].items():
        (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    if kind == "c":
        if shutil.which("cc") is None:
            pytest.skip("needs cc")
        subprocess.run(["cc", "-o", "player", "player.c"], cwd=folder, check=True, timeout=60)
        (folder / "player.c").unlink()
        (folder / "player").chmod(0o700)
    return folder


@pytest.mark.parametrize("kind", ["shell", *slow(*FILES)])
async def test_bots_that_only_their_owner_can_read(tmp_path: Path, kind: str) -> None:
    folder = directory_bot(tmp_path / "bots" / kind, kind)
    await plays_and_says(resolve_bot(str(folder), tmp_path))


def make_environment(environment: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=60)


@pytest.mark.slow
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


async def test_a_program_of_a_version_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is behind a shim on PATH, and its own directory is not on PATH."""
    nodenv = tmp_path / ".nodenv"
    installed = nodenv / "versions" / "20.1.0"
    files = {
        installed / "bin" / "node": '#!/bin/sh\n. "${0%/*}/../lib/node_modules/start"\n',
        installed / "lib" / "node_modules" / "start": 'exec python3 "$@"\n',
        nodenv / "shims" / "node": f"#!/bin/sh\nexec {nodenv}/libexec/nodenv exec node\n",
        nodenv / "libexec" / "nodenv": f'#!/bin/sh\necho "{installed}/bin/$2"\n',
        tmp_path / "bot" / "bot.js": PYTHON_BOT,
        tmp_path / "bot" / "bot.toml": 'command = ["node", "bot.js"]\n',
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{nodenv / 'shims'}:/usr/bin:/bin")
    await plays_and_says(resolve_bot("bot", tmp_path))


@pytest.mark.parametrize("name", ["with space", "größe-\u4e2d\nfeed", "-quote'\"%s;$(x)"])
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


async def test_writable_directories_and_environment_of_a_bot(
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


async def test_a_bot_sees_settings_of_its_runtime_outside_of_usr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the list of packages of ghc, in /var/lib/ghc: a bot of another user must reach it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # not hidden by the sandbox's own /tmp
        settings = Path(folder, "settings.conf")
        settings.write_text("packages")
        settings.parent.chmod(0o755)
        monkeypatch.setattr(visible_files, "RUNTIME_SETTINGS", (str(settings.parent / "*.conf")[1:],))
        visible_files.settings_options.cache_clear()
        player = report_bot(tmp_path / "bot", f"sys.stderr.write(open({str(settings)!r}).read())\n")
        try:
            assert await plays_and_says(player) == "packages"
        finally:
            visible_files.settings_options.cache_clear()


async def test_a_bot_opens_its_own_streams_by_name(tmp_path: Path) -> None:
    """As Node does with ``fs.readFileSync("/dev/stdin")``, and a shell with ``echo ... >/dev/stderr``."""
    code = """
for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
    with open("/dev/" + name, mode) as stream:
        if name == "stderr":
            stream.write("all three")
"""
    assert await plays_and_says(report_bot(tmp_path / "bot", code)) == "all three"


@pytest.mark.slow
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
    "sys.exit(3)": 3,
    "sys.exit(126)": 126,
    "sys.exit(127)": 127,
    "sys.exit(255)": 255,
    "os.kill(os.getpid(), 9)": -9,
    "os._exit(139)": -11,  # bubblewrap reports the same for both
}


@pytest.mark.parametrize(
    "code",
    [pytest.param(code, marks=() if STATUSES[code] in (127, -9) else pytest.mark.slow) for code in STATUSES],
)
@pytest.mark.usefixtures("patient_referee")
async def test_exit_statuses(tmp_path: Path, code: str) -> None:
    record = await play(report_bot(tmp_path / "bot", f"input(); {code}\n"))
    assert record.exit_status[0] == STATUSES[code]
    assert outcome(record) == (1, "exit", "killed" if STATUSES[code] < 0 else "exited")


AS_USER = (
    # Files of tests, and the tests whose outcome depends on the referee's user.
    (
        "tests/sandbox/test_confined_bots.py",
        "only_their_owner or links_and or writable_dir or own_streams",
    ),
    ("tests/sandbox/test_working_directory.py", "can_change or strange_contents or are_kept or is_bounded"),
    ("tests/sandbox/test_sandbox.py", "test_"),
    ("tests/process/test_launch.py", "(missing or interpreter or is_cancelled) and confined or left_by_many"),
    ("tests/process/test_limits.py", "confined or test_files or shared_memory"),
)


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user")
def test_confinement_as_an_ordinary_user(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    chosen = [f"{Path(file).name} and ({names})" for file, names in AS_USER]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ""),
        *(file for file, _ in AS_USER),
        *("-k", " or ".join(chosen)),
    ]
    done = subprocess.run(
        as_ordinary_user([*command, f"--basetemp={home / 'base'}"], [home]),
        cwd=REPOSITORY_ROOT, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
