"""`kalarena tournament run` as people meet it: piped, quiet, on a terminal, stopped, gone on with."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

import click
import pytest

from tests.builders import KALARENA, RUN_LIMIT_S, invoke, kalarena, one_object, write_tournament
from tournaments.cli.tournament.live import PLAIN_FAULTS
from tournaments.cli.tournament.outcome import UNPLAYED_LINES, Outcome, program, same_command
from tournaments.cli.tournament.run import command
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.running.runner import RunReport

OPEN = '[sandbox]\nmode = "off"\n'
"""What is told is the same, and games are shorter by a third."""
SHORT = (
    'name = "Cup"\ngame = "kalah(3,2)"\nrounds = {rounds}\nbots = ["first_legal", "greedy", "random:3"]\n'
    + OPEN
)
WITH_BAD = (
    'name = "Cup"\ngame = "kalah(3,2)"\nrounds = {rounds}\nbots = ["first_legal", "greedy", "bad.py"]\n'
    + OPEN
)


def folder_with(folder: Path, text: str, rounds: int = 1) -> Path:
    write_tournament(folder, text.format(rounds=rounds))
    (folder / "bad.py").write_text("import sys; sys.exit('sorry')")
    return folder


def shell(line: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run what a person would paste into a shell."""
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=cwd,
        env={**os.environ, "PATH": f"{KALARENA.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )


def lines_after(text: str, head: str) -> list[str]:
    return [line.removeprefix(head).strip() for line in text.split("\n") if line.startswith(head)]


def test_piped_there_are_plain_lines_and_what_to_do_next(tmp_path: Path) -> None:
    done = kalarena(folder_with(tmp_path, SHORT, 2), "tournament", "run", "cup.toml", "--out", "my out")
    assert done.returncode == 0
    expected = [f"Cup: {games} of 12 games" for games in (2, 3, 4, 5, 6, 8, 9, 10, 11, 12)]
    assert [line for line in done.stderr.splitlines() if "not confined" not in line] == expected
    assert "\x1b" not in done.stdout + done.stderr
    *_, results, report, following = done.stdout.splitlines()
    assert results == "results  my out/results.db"
    assert report == "report   my out/report.html"
    assert following.startswith("next     ")
    assert "tournament report 'my out'" in following


def test_faults_are_told_as_they_happen_within_bounds(tmp_path: Path) -> None:
    done = shell("kalarena tournament run cup.toml --out out", folder_with(tmp_path, WITH_BAD, 6))
    assert done.returncode == 0
    faults = [line for line in done.stderr.splitlines() if ": bad (" in line]
    assert len(faults) == PLAIN_FAULTS
    assert faults[0].startswith("Cup: r001-")
    assert done.stderr.count("Cup: further faults of bad are in the report") == 1
    assert "further" not in done.stdout
    commands = lines_after(done.stdout, "next")
    assert [line.partition("  #")[0] for line in commands] == [
        "kalarena tournament report out",
        "kalarena verify out",
    ]
    assert "24 faults" in commands[1]
    verified = shell(commands[1], tmp_path)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_quiet(tmp_path: Path) -> None:
    folder_with(tmp_path, WITH_BAD)
    done = kalarena(tmp_path, "tournament", "run", "cup.toml", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Cup: kalah(3,2)")
    assert "bad" in done.stdout
    assert "results/cup/results.db" in done.stdout
    assert lines_after(done.stdout, "next") == []
    (tmp_path / "cup.toml").write_text("bots = 3")
    done = kalarena(tmp_path, "tournament", "run", "cup.toml", "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")


def test_json_is_alone_even_if_bots_fail(tmp_path: Path) -> None:
    folder_with(tmp_path, WITH_BAD)
    done = kalarena(tmp_path, "tournament", "run", "cup.toml", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert one_object(done.stdout)["games"] == 6


def test_going_on_says_so(tmp_path: Path) -> None:
    folder_with(tmp_path, SHORT, 1)
    assert kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out").returncode == 0
    again = kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out")
    assert again.returncode == 0
    assert again.stderr.splitlines()[-1] == "Cup: all of 6 games are in out already"
    folder_with(tmp_path, SHORT, 2)
    more = kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out")
    assert more.returncode == 0
    assert "Cup: going on with 6 of 12 games in out" in more.stderr.splitlines()
    assert more.stderr.splitlines()[-1] == "Cup: 12 of 12 games"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_that_an_interrupted_run_prints_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    folder = folder_with(tmp_path / "it's here", SHORT, 10)
    given = ["cup.toml", "--out", "the out", "--concurrency", "2", "--sandbox", "off"]
    process = subprocess.Popen(
        [KALARENA, "tournament", "run", *given],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "Cup: 6 of 60 games\n"
    process.send_signal(number)
    out, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    with Store(folder / "the out" / "results.db") as store:
        kept = len(store.played())
    *_, said, printed = errors.rstrip("\n").split("\n")
    assert said == f"stopped with {60 - kept} of 60 games to play; the same command goes on:"
    assert shlex.split(printed)[-8:] == ["run", *given]
    assert out.startswith("Cup: ")
    again = shell(printed, folder)
    assert again.returncode == 0
    assert again.stderr.splitlines()[0] == f"Cup: going on with {kept} of 60 games in the out"
    assert again.stderr.splitlines()[-1] == "Cup: 60 of 60 games"


def test_impatience_tears_nothing(tmp_path: Path) -> None:
    """Ctrl-C again and again, from the first moment on until it has ended."""
    folder = folder_with(tmp_path, SHORT, 10)
    process = subprocess.Popen(
        [KALARENA, "tournament", "run", "cup.toml", "--out", "out", "--sandbox", "off"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "Cup: 6 of 60 games\n"
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    _, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert "Traceback" not in errors
    assert "weird" not in errors
    assert process.returncode == 130


def test_missing_files_of_all_games_are_written_again(tmp_path: Path) -> None:
    folder_with(tmp_path, SHORT)
    assert kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out").returncode == 0
    files = {path: path.read_bytes() for path in (tmp_path / "out" / "games").rglob("*.*")}
    subprocess.run(["rm", "-r", str(tmp_path / "out" / "games")], check=True)
    assert kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out").returncode == 0
    assert {path: path.read_bytes() for path in (tmp_path / "out" / "games").rglob("*.*")} == files


# On a terminal


def on_terminal(
    folder: Path, *arguments: str, columns: int, lines: int, kind: str = "xterm"
) -> tuple[int, str]:
    """Run the command on a terminal of this size; its exit status, and all that it showed."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [KALARENA, *arguments],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": kind, "NO_COLOR": "1"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while select.select([ours], [], [], RUN_LIMIT_S)[0]:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # Linux: everybody has closed the other end
                break
            if not part:
                break
            shown += part
        return process.wait(timeout=RUN_LIMIT_S), shown.decode()
    finally:
        os.close(ours)
        process.kill()
        process.wait()


def test_on_a_terminal(tmp_path: Path) -> None:
    folder_with(tmp_path, WITH_BAD, 4)
    status, shown = on_terminal(tmp_path, "tournament", "run", "cup.toml", columns=80, lines=24)
    assert status == 0
    live, _, result = shown.rpartition("\x1b[?25h")  # the cursor comes back before the result
    before, _, _ = live.partition("rank  name")
    assert "Cup: there are no openings: bots that use no chance play the same games in each" in before
    assert " of 24 games" in live
    assert " elapsed" in live
    assert not re.search(r"Cup: \d+ of \d+ games", shown)  # lines for a pipe
    assert "24 of 24 games" in result
    assert "\x1b" not in result.partition("Cup: kalah(3,2)")[2]
    table = [line for line in result.splitlines() if line.startswith("rank")]
    assert len(table) == 1
    assert len(table[0]) <= 80


def test_on_a_dumb_terminal_there_are_plain_lines(tmp_path: Path) -> None:
    folder_with(tmp_path, SHORT)
    status, shown = on_terminal(tmp_path, "tournament", "run", "cup.toml", columns=80, lines=24, kind="dumb")
    assert status == 0
    assert "Cup: 6 of 6 games" in shown
    assert "\x1b" not in shown


# What is said at the end, by hand


def ending(tmp_path: Path, unplayed: int = 0) -> Outcome[TournamentResults]:
    summary = TournamentResults("Cup", "kalah(6,4)", "2 s per move", ["one", "two"], "points")
    report = RunReport(100, 3, 4, {f"g{number}": "no sandbox" for number in range(unplayed)})
    return Outcome(summary, report, TournamentDirectory(tmp_path / "out"))


def test_games_that_could_not_be_played_are_listed_within_bounds(tmp_path: Path) -> None:
    assert list(ending(tmp_path).unplayed_lines()) == []
    assert list(ending(tmp_path, 1).unplayed_lines()) == [
        "game g0 could not be played, and counts for nobody: no sandbox"
    ]
    lines = list(ending(tmp_path, UNPLAYED_LINES + 5).unplayed_lines())
    assert len(lines) == UNPLAYED_LINES + 1
    assert lines[-1] == "and 5 more games could not be played"


def test_the_conclusion_is_below_the_table(tmp_path: Path) -> None:
    said = ending(tmp_path)
    said.results.conclusion = "one is stronger"
    result = said.text(quiet=False)
    table, conclusion, where = result.rsplit("\n\n", 2)
    assert "95 % interval" in table
    assert conclusion == "one is stronger"
    assert where.startswith("results  ")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["cup.toml"], ["cup.toml"]),
        (["--quiet", "a b.toml"], ["a b.toml", "--quiet"]),
        (["--json", "--out", "-x", "c.toml"], ["c.toml", "--out", "-x", "--json"]),
        (["--concurrency=3", "--", "-odd.toml"], ["--concurrency", "3", "--", "-odd.toml"]),
    ],
)
def test_the_same_command(given: list[str], words: list[str]) -> None:
    with command.make_context("run", list(given)) as context:
        assert isinstance(context, click.Context)
        assert shlex.split(same_command(context))[-len(words) - 2 :] == ["tournament", "run", *words]
    with command.make_context("run", words) as again:
        assert again.params == context.params


def test_how_the_program_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tmp_path / "kalarena"
    ours.write_text("#!/bin/sh\n")
    ours.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(ours)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == str(ours)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == "kalarena"
    monkeypatch.setattr("sys.argv", ["/somewhere/pytest"])
    assert program() == "kalarena"


def test_help_names_quiet() -> None:
    assert "--quiet" in invoke("tournament", "run", "--help").output
