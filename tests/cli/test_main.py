"""The command `kalarena` as a whole: help, lazy loading, bad usage, interrupts."""

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

from referee.version import VERSION
from sample_bots.solver.prover import TooDeepError
from tests.support.builders import KALARENA, RUN_LIMIT_S, invoke, run_command, write_tournament
from tests.support.ordinary_user import as_ordinary_user
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import HEEDING, all_end, descendants, open_pidfds
from tests.support.tiers import slow
from tournaments.cli import main as main_module
from tournaments.cli import solve
from tournaments.cli.main import COMMANDS, main
from tournaments.cli.tournament import TOURNAMENT_COMMANDS
from tournaments.config.load import load_tournament
from tournaments.results.store import Store
from tournaments.running.runner import open_run

SUBCOMMANDS = [(name,) for name in COMMANDS] + [("tournament", name) for name in TOURNAMENT_COMMANDS]
HEAVY = {"alembic", "numpy", "pydantic", "rich", "sqlalchemy", "trio"}
NOT_FOR_ONE_GAME = HEAVY - {"trio"} | {
    *("asyncio", "importlib.metadata", "jinja2", "networkx", "scipy", "starlette"),
    *("tournaments.bots.build", "tournaments.reporting.tables"),
}
"""Modules that one game between built bots does not need; each takes milliseconds to import."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def restored_process(monkeypatch: pytest.MonkeyPatch, restored_signals: None) -> None:
    """Restore the signal handlers and the hook that ``entry`` sets."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)


@pytest.mark.parametrize("words", SUBCOMMANDS, ids=" ".join)
def test_every_command_has_help_and_documentation(words: tuple[str, ...]) -> None:
    result = invoke(*words, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: main {' '.join(words)} ")
    assert result.stdout.partition("\n\n")[2].strip()
    if len(words) == 1:
        docs = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY_ROOT / "docs").rglob("*.md"))
        for text in (docs, (REPOSITORY_ROOT / "README.md").read_text(encoding="utf-8")):
            assert f"kalarena {words[0]}" in text


@pytest.mark.parametrize(("group", "commands"), [((), COMMANDS), (("tournament",), TOURNAMENT_COMMANDS)])
def test_help_of_a_group_lists_each_command(
    group: tuple[str, ...], commands: dict[str, tuple[str, str]]
) -> None:
    shown = invoke(*group, "--help").stdout
    for name, (_, about) in commands.items():
        assert re.search(rf"^  {name} +{about[:20]}", shown, re.MULTILINE)


def modules_loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a command."""
    code = (
        "import sys; from click.testing import CliRunner; from tournaments.cli.main import main; "
        f"done = CliRunner().invoke(main, {arguments!r}, catch_exceptions=False); "
        "assert done.exit_code == 0, done.output; print(*sys.modules)"
    )
    done = run_command([sys.executable, "-c", code], Path.cwd())
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_help_loads_no_database_layer() -> None:
    assert not HEAVY & modules_loaded_by("tournament", "--help")


def test_one_confined_game_loads_nothing_heavy() -> None:
    Path("bot").mkdir()
    Path("bot/bot.toml").write_text('command = ["python3", "bot.py"]\n')
    Path("bot/bot.py").write_bytes((REPOSITORY_ROOT / "sample_bots" / "first_legal.py").read_bytes())
    game = ("play", "bot", "first_legal", "--game", "kalah(2,2)", "--record", "game.msgpack")
    assert not NOT_FOR_ONE_GAME & modules_loaded_by(*game)


def test_the_version_is_that_of_the_package() -> None:
    assert invoke("--version").stdout == f"kalarena {metadata.version('kalarena')}\n"
    assert metadata.version("kalarena") == VERSION


INTERRUPTED_CALLBACK = """
import os, signal, sys
from tournaments.cli import main

class Passing:
    def __del__(self):
        if {error!r} == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            raise ValueError("a mistake")

def run():
    thing = Passing()
    del thing
    print("went on")

main.main = run
main.entry()
"""
"""What the interpreter runs on its own account: what that raises, it tells of, and goes on."""


@pytest.mark.parametrize(("error", "said"), [("interrupt", ""), ("mistake", "ValueError: a mistake\n")])
def test_an_interrupt_of_the_interpreters_own_doings_shows_no_traceback(error: str, said: str) -> None:
    code = INTERRUPTED_CALLBACK.format(error=error)
    done = run_command([sys.executable, "-c", code], Path.cwd())
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert done.stderr.endswith(said)
    assert ("Traceback" in done.stderr) is bool(said)


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *slow(signal.SIGTERM, signal.SIGHUP)],
)
def test_a_signal_during_a_build_ends_the_build(number: signal.Signals) -> None:
    Path("bot").mkdir()
    Path("bot/bot.toml").write_text('command = ["./engine"]\nbuild = ["sh", "make.sh"]\n')
    Path("bot/make.sh").write_text("echo > begun\nexec sleep 1000\n")
    os.mkfifo("bot/begun")
    words = [sys.executable, "-c", HEEDING, str(KALARENA), "play", "bot", "greedy", "--sandbox", "off"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        Path("bot/begun").read_text()  # waits until the build has begun
        builds = open_pidfds(descendants(process.pid))
        process.send_signal(number)
        output = process.communicate(timeout=RUN_LIMIT_S)
    assert (process.returncode, output) == (128 + number, (b"", b""))
    assert len(builds) == 1
    assert all_end(builds)


@pytest.mark.usefixtures("restored_process", "capsys")
def test_a_signal_that_nohup_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module, "main", lambda: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    main_module.entry()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_working_directory_that_was_deleted(unbuffered: str) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    command = ("sh", "-c", script, "sh", KALARENA, "play", "greedy", "greedy")
    done = run_command(command, Path.cwd(), PYTHONUNBUFFERED=unbuffered)
    message = "Error: the working directory was deleted: change to another one with cd\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


BAD_USAGE = {
    "no such command": ("fly",),
    "no such option": ("play", "greedy", "greedy", "--fast"),
    "play: one bot": ("play", "greedy"),
    "play: three bots": ("play", "greedy", "greedy", "greedy"),
    "play: no such bot": ("play", "greedy", "gredy"),
    "play: no such path": ("play", "greedy", "bots/none.py"),
    "play: an empty bot": ("play", "greedy", ""),
    "play: a bot that is no text of a command": ("play", "greedy", "it's"),
    "play: a home that is not": ("play", "greedy", "~no-such-user-here/bot"),
    "play: longer than a file's name": ("play", "greedy", "y" * 300),
    "play: bad option of a bot": ("play", "greedy", "minimax:deep"),
    "play: no such game": ("play", "greedy", "greedy", "--game", "chess"),
    "play: no such option of a game": ("play", "greedy", "greedy", "--game", "manchester+fast"),
    "play: board that cannot be": ("play", "greedy", "greedy", "--game", "kalah(0,4)"),
    "play: time of words": ("play", "greedy", "greedy", "--move-time", "long"),
    "play: no time": ("play", "greedy", "greedy", "--move-time", "0"),
    "play: time that never ends": ("play", "greedy", "greedy", "--game-time", "inf"),
    "play: time that is no number": ("play", "greedy", "greedy", "--move-time", "nan"),
    "play: negative margin": ("play", "greedy", "greedy", "--margin", "-1"),
    "play: negative start": ("play", "greedy", "greedy", "--start-time", "-1"),
    "play: increment to nothing": ("play", "greedy", "greedy", "--increment", "1"),
    "play: record in no folder": ("play", "greedy", "greedy", "--record", "none/x.rec"),
    "play: record is a folder": ("play", "greedy", "greedy", "--record", "."),
    "perft: no depth": ("perft", "manchester"),
    "perft: negative depth": ("perft", "manchester", "--depth", "-1"),
    "perft: no such game": ("perft", "chess", "--depth", "1"),
    "perft: no position": ("perft", "manchester", "--depth", "1", "--position", "1,2,3"),
    "perft: empty position": ("perft", "manchester", "--depth", "1", "--position", ""),
    "solve: time that is no number": ("solve", "kalah(2,2)", "--seconds", "nan"),
    "games: something": ("games", "manchester"),
    "tournament: nothing": ("tournament", "run"),
    "tournament: no such file": ("tournament", "run", "none.toml"),
    "tournament: a folder": ("tournament", "run", "."),
    "tournament: no such verb": ("tournament", "walk"),
    "tournament: no workers": ("tournament", "run", "none.toml", "--concurrency", "0"),
    "table: no such folder": ("tournament", "table", "none"),
    "table: a folder without results": ("tournament", "table", "."),
    "table: no such format": ("tournament", "table", ".", "--format", "pdf"),
}


@pytest.mark.parametrize("arguments", BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    """Exit status 2 and one message on standard error; nothing on standard output, nothing left behind."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("Error: ") == 1
    assert "Traceback" not in result.stderr
    assert list(Path.cwd().iterdir()) == []


class Terminal(io.StringIO):
    """Standard error or output that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


CLOSED = {
    "table": (("tournament", "table", "closed/it"), "closed/it cannot be read"),
    "void": (("tournament", "void", "closed/it", "r001-1v2", "--why", "x"), "closed/it cannot be read"),
    "run": (("tournament", "run", "cup.toml", "--out", "listed"), "listed cannot be read"),
    "verify": (("verify", "closed/it", "--head", "0123456789abcdef"), "closed/it: cannot be read"),
    "export": (
        ("tournament", "export", "out", "--what", "games", "--out", "closed/it/x"),
        "/closed/it/x cannot be",
    ),
    "report": (
        ("tournament", "report", "out", "--out", "closed/it/x"),
        "report cannot be written to .*closed/it/x",
    ),
    "pseudonyms": (
        ("tournament", "report", "out", "--anonymous", "--key", "closed/it"),
        "closed/it: the pseudon",
    ),
    "record": (
        ("play", "greedy", "greedy", "--record", "closed/it/x"),
        "--record: .*/closed/it cannot be read",
    ),
    "keep": (
        ("play", "greedy", "greedy", "--keep-files", "closed/it"),
        "--keep-files: closed/it cannot be read",
    ),
    "junit": (("check", "greedy", "--junit", "closed/it/x"), "--junit: .*/closed/it cannot be read"),
}
"""Commands with files in a folder that may not be entered, and their messages."""


INVOKE_EACH = """
import json, sys
from tests.support.builders import invoke
results = map(lambda words: invoke(*words), json.loads(sys.argv[1]))
print(json.dumps([(result.exit_code, result.stdout, result.stderr) for result in results]))
"""
"""A process that runs commands one after the other: as another user they need a process of their own."""


@pytest.mark.slow
def test_a_folder_that_may_not_be_entered_is_one_message() -> None:
    for folder in ("closed/it", "listed", "out"):
        Path(folder).mkdir(parents=True)
    tournament = load_tournament(write_tournament(Path(), 'bots = ["greedy", "first_legal"]'))
    with Store(Path("out/results.db")) as store:
        open_run(tournament, store)
    lines = json.dumps([words for words, _ in CLOSED.values()])
    command = as_ordinary_user([sys.executable, "-c", INVOKE_EACH, lines], [Path.cwd()])
    Path("closed").chmod(0o000)
    Path("listed").chmod(0o600)
    done = run_command(command, Path.cwd(), PYTHONPATH=str(REPOSITORY_ROOT))
    for folder in ("closed", "listed"):
        Path(folder).chmod(0o700)
    assert done.returncode == 0, done.stderr
    for (words, message), (status, out, errors) in zip(CLOSED.values(), json.loads(done.stdout), strict=True):
        assert (status in (1, 2), out) == (True, ""), words
        assert re.fullmatch(f"Error: .*{message}.*[Pp]ermission denied.*\n", errors), (words, errors)


def on_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """Run a command on a terminal; return its exit status and its output with that on standard error."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    with pytest.raises(SystemExit) as ended:
        main.main(list(arguments))
    monkeypatch.undo()
    assert isinstance(ended.value.code, int)
    return ended.value.code, terminal.getvalue()


def test_solve_shows_its_progress_on_a_terminal_and_erases_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "REDRAW_S", 0.0)
    status, text = on_terminal(monkeypatch, "solve", "kalah(2,2)")
    assert status == 0
    progress, _, result = text.rpartition("\r\x1b[K")
    assert re.search(r"^\r\x1b\[K[0-9,]+ positions searched; South, the first player, ", progress)
    assert result.startswith("kalah(2,2): South, the first player, ")
    assert "\x1b" not in result


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (MemoryError(), 2, "Error: --memory-mb 70: this host does not give so much; name less\n"),
        (TooDeepError("a line of more than 9 plies"), 1, "Error: kalah(2,2): a line of more than 9 plies\n"),
    ],
    ids=["memory", "depth"],
)
def test_a_board_that_this_host_cannot_solve(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, message: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(solve, "Solver" if status == 2 else "solve", fail)
    done = invoke("solve", "kalah(2,2)", "--memory-mb", "70")
    assert (done.exit_code, done.stdout, done.stderr) == (status, "", message)


def test_check_shows_marks_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = on_terminal(monkeypatch, "check", "nobody", "--sandbox", "off")
    assert status == 1
    assert "\r\x1b[KCheck of nobody\n" in text  # the line of progress is erased
    assert "\x1b[31m\x1b[1m\u2717\x1b[0m" in text
    assert "\nFAILED: 1 failed" in text
    assert "\x1b" not in invoke("check", "nobody", "--sandbox", "off").output


def raising(error: Exception) -> Callable[[], NoReturn]:
    def run() -> NoReturn:
        raise error

    return run


@pytest.mark.usefixtures("restored_process", "capsys")
@pytest.mark.parametrize(
    "error",
    [
        UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"),
        OSError(errno.EIO, "Input/output error", "somewhere"),
        FileNotFoundError(errno.ENOENT, "No such file or directory"),
        ValueError("a mistake"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_unexpected_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(main_module, "main", raising(error))
    with pytest.raises(type(error)) as raised:
        main_module.entry()
    assert raised.value is error


@pytest.mark.usefixtures("restored_process")
def test_a_name_that_the_locale_cannot_write_is_bad_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = UnicodeEncodeError("ascii", "bot-\u00fc", 4, 5, "ordinal not in range(128)")
    monkeypatch.setattr(main_module, "main", raising(error))
    with pytest.raises(SystemExit) as ended:
        main_module.entry()
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert "'\u00fc' cannot be part of a file's name in this locale, whose encoding is ascii" in message
    assert "LC_ALL=C.UTF-8" in message
