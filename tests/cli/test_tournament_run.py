"""`kalarena tournament run` and `table`: output, files, resuming, interruption, the terminal's screen."""

import csv
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import click
import pytest
import trio

from referee.sandbox.bubblewrap import Sandbox
from tests.support.builders import KALARENA, RUN_LIMIT_S, invoke, kalarena, one_object, write_tournament
from tests.support.processes import all_end, descendants, open_pidfds
from tests.support.tiers import slow
from tournaments.cli.tournament import run
from tournaments.cli.tournament.engine_options import EngineOptions, Notify
from tournaments.cli.tournament.live import PLAIN_FAULTS
from tournaments.cli.tournament.outcome import PROBLEM_LINES, Outcome, program, same_command
from tournaments.cli.tournament.run import command
from tournaments.config.load import load_tournament
from tournaments.config.tournament import Tournament
from tournaments.engines.base import Engine
from tournaments.engines.local import open_local_engine
from tournaments.reporting import tables
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.running.runner import RunReport

CUP = """name = "Cup"
game = "kalah(3,2)"
rounds = {rounds}
concurrency = 1
bots = ["first_legal", "greedy", "{third}"]
[sandbox]
mode = "off"
"""
PER_ROUND = 6
GAMES = 2 * PER_ROUND


def folder_with(folder: Path, rounds: int = 1, third: str = "random:3") -> Path:
    """A folder with cup.toml, and with bad.py for a third bot that fails every game."""
    write_tournament(folder, CUP.format(rounds=rounds, third=third))
    (folder / "bad.py").write_text("import sys; sys.exit('sorry')")
    return folder


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tournament that was played into ``my out``; no test changes it."""
    folder = folder_with(tmp_path_factory.mktemp("played"), 2)
    done = kalarena(folder, "tournament", "run", "cup.toml", "--out", "my out")
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    return folder


@pytest.fixture
def out(played: Path, tmp_path: Path) -> Path:
    """A copy of the played tournament's directory, which the test may change."""
    return Path(shutil.copytree(played / "my out", tmp_path / "out"))


def files_of(folder: Path) -> dict[Path, bytes]:
    """The tables and the games' files; not the database, which keeps files of its own."""
    kinds = (".html", ".csv", ".json", ".txt")
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.suffix in kinds
    }


def test_a_piped_run_prints_plain_lines_the_table_and_the_next_command(played: Path) -> None:
    out, errors = (played / "stdout").read_text(), (played / "stderr").read_text()
    expected = [f"Cup: {games} of 12 games" for games in (2, 3, 4, 5, 6, 8, 9, 10, 11, 12)]
    assert [line for line in errors.splitlines() if "not confined" not in line] == expected
    assert "\x1b" not in out + errors
    head = f"Cup: kalah(3,2), 10 s per move (margin 0.05 s, start 30 s), {GAMES} of {GAMES} games"
    assert out.startswith(head)
    assert all(name in out for name in ("first_legal", "greedy", "random:3"))
    *_, results, report, following = out.splitlines()
    assert results == "results  my out/results.db"
    assert report == "report   my out/report.html"
    assert following.startswith("next     ")
    assert "tournament report 'my out'" in following


def test_the_directory_of_the_results(played: Path) -> None:
    out = played / "my out"
    tables = {"report.html", "standings.csv", "games.csv", "results.json"}
    assert {path.name for path in out.iterdir()} == tables | {"results.db", "games", ".lock"}
    with Store(out / "results.db") as store:
        keys = store.played()
        assert len(keys) == GAMES
        assert {store.record(key).result.reason for key in keys} == {"score"}
    assert {path.name for path in (out / "games").iterdir()} == keys
    for key in keys:
        names = {path.name for path in (out / "games" / key).iterdir()}
        assert {"game.json", "wire.txt"} < names
        assert len(names) == 4
    with (out / "games.csv").open(newline="") as file:
        assert {row["key"] for row in csv.DictReader(file)} == keys


def test_table_in_all_formats(played: Path) -> None:
    out, found = played / "my out", {}
    for form in tables.FORMATS:
        result = invoke("tournament", "table", out, "--format", form)
        assert (result.exit_code, result.stderr) == (0, "")
        found[form] = result.stdout
    assert (played / "stdout").read_text().startswith(found["text"])
    assert found["csv"] == (out / "standings.csv").read_text()
    assert found["html"] == (out / "report.html").read_text()
    assert found["json"] == (out / "results.json").read_text()
    names = [row["name"] for row in csv.DictReader(found["csv"].splitlines())]
    value = one_object(found["json"])
    assert names == [line["name"] for line in value["standings"]]
    assert sum(line["points"] for line in value["standings"]) == GAMES
    assert (value["games"], value["games_total"]) == (GAMES, GAMES)


def test_running_again_plays_nothing_and_makes_missing_files_again(out: Path, played: Path) -> None:
    """A kill between a game's transaction and its files must not lose them for good."""
    shutil.rmtree(out / "games" / "r001-1v2")
    (out / "report.html").unlink()
    again = invoke("tournament", "run", played / "cup.toml", "--out", out, "--json")
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout == (played / "my out" / "results.json").read_text()
    assert files_of(out) == files_of(played / "my out")
    shutil.rmtree(out / "games")
    again = invoke("tournament", "run", played / "cup.toml", "--out", out)
    assert again.stderr.splitlines()[-1] == f"Cup: all of {GAMES} games are in {out} already"
    assert files_of(out / "games") == files_of(played / "my out" / "games")


def test_more_rounds_later(out: Path, tmp_path: Path) -> None:
    folder_with(tmp_path, 3)
    more = invoke("tournament", "run", tmp_path / "cup.toml", "--out", out)
    assert more.exit_code == 0
    assert f"Cup: going on with {GAMES} of 18 games in {out}" in more.stderr.splitlines()
    assert more.stderr.splitlines()[-1] == "Cup: 18 of 18 games"
    value = one_object((out / "results.json").read_text())
    assert (value["games"], value["games_total"]) == (18, 18)
    assert {line["wins"] + line["draws"] + line["losses"] for line in value["standings"]} == {12}


def test_fewer_rounds_later_are_refused(out: Path, tmp_path: Path) -> None:
    folder_with(tmp_path, 1)
    done = invoke("tournament", "run", tmp_path / "cup.toml", "--out", out, "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "round" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("kalah(3,2)", "kalah(3,1)", "its game is kalah(3,2), now it is kalah(3,1)"),
        ('"random:3"', '"minimax:3"', "it has no bot 'minimax:3'"),
        ('"first_legal", "greedy"', '"greedy", "first_legal"', "the same but in another order"),
        ("[sandbox]", "[time]\nmove_s = 3.0\n[sandbox]", "its time control is "),
    ],
)
def test_another_tournament_in_the_directory(
    out: Path, tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    text = CUP.format(rounds=2, third="random:3")
    assert old in text
    file = write_tournament(tmp_path, text.replace(old, new))
    before = files_of(out)
    done = invoke("tournament", "run", file, "--out", out)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "holds another tournament ('Cup')" in done.stderr
    assert complaint in done.stderr
    assert files_of(out) == before


@pytest.mark.slow
def test_faults_are_printed_as_they_happen_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder_with(tmp_path, 6, "bad.py"))
    done = invoke("tournament", "run", "cup.toml", "--out", "out")
    assert done.exit_code == 0
    faults = [line for line in done.stderr.splitlines() if ": bad (" in line]
    assert len(faults) == PLAIN_FAULTS
    assert faults[0].startswith("Cup: r001-")
    assert done.stderr.count("Cup: further faults of bad are in the report") == 1
    assert "further" not in done.stdout
    commands = [
        line.removeprefix("next     ") for line in done.stdout.splitlines() if line.startswith("next")
    ]
    assert [line.partition("  #")[0] for line in commands] == [
        "kalarena tournament report out",
        "kalarena verify out",
    ]
    assert "24 faults" in commands[1]
    assert invoke("verify", "out").exit_code == 0


def test_json_and_quiet_are_alone_even_if_a_bot_fails_every_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each game has its result, with the fault; the exit status is 0.  The default for --out is used."""
    monkeypatch.chdir(folder_with(tmp_path, 1, "bad.py"))
    done = invoke("tournament", "run", "cup.toml", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    value = one_object(done.stdout)
    bad = next(line for line in value["standings"] if line["name"] == "bad")
    assert (bad["losses"], bad["forfeits"], bad["rank"]) == (4, 4, 3)
    assert value["games"] == PER_ROUND
    assert "sorry" in Path("results/cup/games/r001-1v3/stderr-2-bad.txt").read_text()
    quiet = invoke("tournament", "run", "cup.toml", "--quiet")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert quiet.stdout.startswith("Cup: kalah(3,2)")
    assert "bad" in quiet.stdout
    assert "results/cup/results.db" in quiet.stdout
    assert "next" not in quiet.stdout
    Path("cup.toml").write_text("bots = 3")
    wrong = invoke("tournament", "run", "cup.toml", "--quiet")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("Error: ")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "ranking"), [("gauntlet", ["score", "wins"]), ("placement", ["rating"])])
def test_a_run_of_an_earlier_version_keeps_its_ranking(tmp_path: Path, kind: str, ranking: list[str]) -> None:
    """Earlier versions ranked these formats by points where the file said nothing."""
    write_tournament(
        tmp_path,
        f'game = "kalah(1,1)"\nformat = {{kind = "{kind}", challengers = ["random"]}}\n'
        'bots = ["first_legal", "greedy", "random"]\n[sandbox]\nmode = "off"\n',
    )

    def criteria() -> object:
        file, out = tmp_path / "cup.toml", tmp_path / "out"
        return one_object(invoke("tournament", "run", file, "--out", out, "--json").stdout)["criteria"]

    assert criteria() == ranking
    with Store(tmp_path / "out" / "results.db") as store:
        identity, config = store.identity(), store.config()
        assert identity is not None
        del config["has_default_ranking"]
        store.claim(config.pop("name"), {**config, "ranking": "points"}, identity)
    assert criteria() == ["points", "wins"]
    assert criteria() == ["points", "wins"]
    path = tmp_path / "cup.toml"
    path.write_text('ranking = "score"\n' + path.read_text())
    assert criteria() == ["score", "wins"]


@pytest.mark.parametrize(
    ("format_", "ranking"),
    [
        ('"swiss"', ["points", "buchholz", "head-to-head", "wins"]),
        ('{kind = "gauntlet", challengers = ["greedy"]}', ["score", "wins"]),
    ],
)
def test_a_ranking_by_points_is_taken_back(tmp_path: Path, format_: str, ranking: list[str]) -> None:
    text = f'game = "kalah(1,1)"\nformat = {format_}\nbots = ["first_legal", "greedy"]\n'
    text += 'sandbox = {mode = "off"}\n'

    def criteria(line: str) -> object:
        path = write_tournament(tmp_path, line + text)
        return one_object(invoke("tournament", "run", path, "--out", tmp_path / "out", "--json").stdout)[
            "criteria"
        ]

    assert criteria('ranking = "points"\n') == ["points", "wins"]
    assert criteria("") == ranking


# Interruption


@asynccontextmanager
async def talking_engine(
    options: EngineOptions,
    tournament: Tournament,
    directory: Path,
    sandbox: Sandbox,
    concurrency: int | None,
    notify: Notify,
    alert: Notify,
) -> AsyncIterator[Engine]:
    """An engine on this host that sends messages as that of a cluster does."""
    async with open_local_engine(directory, 1) as engine:
        notify("1 game at a time, on lab-1")
        alert("lab-2 was refused")
        yield engine


def test_a_run_does_not_end_when_nobody_reads_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "open_engine", talking_engine)
    tournament = load_tournament(folder_with(tmp_path) / "cup.toml")
    unread, end = os.pipe()
    os.close(unread)
    with os.fdopen(end, "w", buffering=1) as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        outcome = run.run_in(tmp_path / "out", tournament, Sandbox(), base=tmp_path, kind=TournamentResults)
    assert (outcome.report.played, outcome.interrupted) == (PER_ROUND, False)


def test_quiet_shows_the_reasons_of_refused_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "open_engine", talking_engine)
    done = invoke(
        "tournament", "run", folder_with(tmp_path) / "cup.toml", "--out", tmp_path / "out", "--quiet"
    )
    assert (done.exit_code, done.stderr) == (0, "Cup: lab-2 was refused\n")


def running(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """A run of 30 games, of which a tenth is done."""
    process = subprocess.Popen(
        [KALARENA, "tournament", "run", "cup.toml", "--out", "the out", *options],
        cwd=folder_with(folder, 5),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert select.select([process.stderr], [], [], RUN_LIMIT_S)[0], "nothing was printed"
    assert process.stderr.readline() == "Cup: 3 of 30 games\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_that_an_interrupted_run_prints_continues_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "it's here"
    process = running(folder, "--concurrency", "2", "--sandbox", "off")
    left_behind = open_pidfds(descendants(process.pid))
    process.send_signal(number)
    out, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert all_end(left_behind, RUN_LIMIT_S)
    assert "Traceback" not in errors
    assert out.startswith("Cup: ")
    results = folder / "the out"
    with Store(results / "results.db") as store:
        kept = len(store.played())
    assert one_object((results / "results.json").read_text())["games"] == kept
    assert len(list((results / "games").iterdir())) == kept
    assert (results / "report.html").is_file()
    names = {path.name for path in results.iterdir()}
    assert not [name for name in names if name.startswith("leash") or name.endswith((".part", "-wal"))]
    *_, said, printed = errors.rstrip("\n").split("\n")
    assert said == f"stopped with {30 - kept} of 30 games to play; the same command goes on:"
    words = ["tournament", "run", "cup.toml", "--out", "the out", "--concurrency", "2", "--sandbox", "off"]
    assert shlex.split(printed)[1:] == words
    if number == signal.SIGTERM:  # the command is that of SIGINT, after which it is tried
        return
    again = subprocess.run(
        ["/bin/sh", "-c", printed],  # as a person pastes it
        cwd=folder,
        env={**os.environ, "PATH": f"{KALARENA.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        check=True,
    )
    assert again.stderr.splitlines()[0] == f"Cup: going on with {kept} of 30 games in the out"
    assert again.stderr.splitlines()[-1] == "Cup: 30 of 30 games"


@pytest.mark.kill
def test_repeated_interrupts_tear_nothing(tmp_path: Path) -> None:
    process = running(tmp_path)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    _, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert "Traceback" not in errors
    assert "weird" not in errors
    assert "the same command goes on" in errors
    assert process.returncode == 130


@pytest.mark.usefixtures("restored_signals")
def test_another_interrupt_after_the_games_costs_no_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    @contextmanager
    def interrupted_at_the_end() -> Iterator[None]:
        yield
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run, "play_all", interrupt)
    monkeypatch.setattr(run, "prepare_for_many_games", interrupted_at_the_end)
    result = invoke("tournament", "run", folder_with(tmp_path) / "cup.toml", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "stopped with 6 of 6 games to play" in result.stderr
    assert (tmp_path / "out" / "standings.csv").exists()


@pytest.mark.parametrize("name", ["report.html", "standings.csv", "games.csv", "results.json"])
def test_files_of_something_else_are_not_overwritten(tmp_path: Path, name: str) -> None:
    folder_with(tmp_path)
    out = tmp_path / "work"
    out.mkdir()
    (out / name).write_text("mine")
    result = invoke("tournament", "run", str(tmp_path / "cup.toml"), "--out", str(out))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"Error: {out} has a {name}, which a run would overwrite, but no results.db: move the file, or "
        "choose another directory\n"
    )
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [(name, "mine")]


@pytest.mark.slow
def test_a_tournament_begins_anew_after_its_results_were_removed(tmp_path: Path) -> None:
    command = ("tournament", "run", folder_with(tmp_path) / "cup.toml", "--out", tmp_path / "out", "--quiet")
    assert invoke(*command).exit_code == 0
    (tmp_path / "out" / "results.db").unlink()
    assert invoke(*command).exit_code == 0


@pytest.mark.kill
def test_a_second_run_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    process = running(tmp_path)
    out = tmp_path / "the out"
    try:
        other = invoke("tournament", "run", tmp_path / "cup.toml", "--out", out)
        assert (other.exit_code, other.stdout) == (2, "")
        assert other.stderr.startswith(f"Error: another run is at work in {out}")
        # Reading the table is possible meanwhile.
        value = one_object(invoke("tournament", "table", out, "--format", "json").stdout)
        assert 0 < value["games"] <= value["games_total"] == 30
    finally:
        process.kill()
        process.communicate(timeout=RUN_LIMIT_S)
    # The lock went with the process; what was played is whole.
    after = one_object(invoke("tournament", "table", out, "--format", "json").stdout)
    assert after["games"] >= value["games"]
    with Store(out / "results.db") as store:
        assert all(store.record(key).key == key for key in store.played())


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


@pytest.mark.slow
def test_on_a_terminal(tmp_path: Path) -> None:
    folder_with(tmp_path, 2, "bad.py")
    with (tmp_path / "cup.toml").open("a") as file:
        file.write("[rating]\nvalue = 1000\n")
    status, shown = on_terminal(tmp_path, "tournament", "run", "cup.toml", columns=80, lines=24)
    assert status == 0
    live, _, result = shown.rpartition("\x1b[?25h")  # the cursor comes back before the result
    before, _, _ = live.partition("rank  name")
    assert "Cup: [rating] value = 1000 has no effect without an anchor: the average" in before
    assert "Cup: there are no openings: bots that use no chance play the same games in each" in before
    assert " of 12 games" in live
    assert " elapsed" in live
    assert not re.search(r"Cup: \d+ of \d+ games", shown)  # lines for a pipe
    assert "12 of 12 games" in result
    assert "\x1b" not in result.partition("Cup: kalah(3,2)")[2]
    table = [line for line in result.splitlines() if line.startswith("rank")]
    assert len(table) == 1
    assert len(table[0]) <= 80


@pytest.mark.slow
def test_on_a_dumb_terminal_there_are_plain_lines(tmp_path: Path) -> None:
    folder_with(tmp_path)
    status, shown = on_terminal(tmp_path, "tournament", "run", "cup.toml", columns=80, lines=24, kind="dumb")
    assert status == 0
    assert "Cup: 6 of 6 games" in shown
    assert "\x1b" not in shown


# The end of the output


@pytest.mark.parametrize("edits_tournament", [*slow(False), True])
def test_a_bot_whose_file_changes_meanwhile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits_tournament: bool
) -> None:
    monkeypatch.chdir(folder_with(tmp_path, third="bad.py"))
    edit = "open('cup.toml', 'w').write('edited'); " if edits_tournament else ""
    Path("bad.py").write_text(f"{edit}open('bad.py', 'a').write(' ')")
    result = invoke("tournament", "run", "cup.toml", "--out", "out", "--quiet")
    assert result.exit_code == 0
    assert result.stderr.startswith("the files of bad changed during the run (")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_late_bot_whose_file_changes_meanwhile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder_with(tmp_path))
    Path("late.py").write_text("open('late.py', 'a').write(' ')")
    assert invoke("tournament", "run", "cup.toml", "--out", "out", "--quiet").exit_code == 0
    assert invoke("tournament", "add", "out", "late.py").exit_code == 0
    result = invoke("tournament", "run", "cup.toml", "--out", "out", "--quiet")
    assert result.stderr.startswith("the files of late changed during the run (")


def ending(tmp_path: Path, unplayed: int = 0) -> Outcome[TournamentResults]:
    summary = TournamentResults("Cup", "kalah(6,4)", "2 s per move", ["one", "two"], "points")
    report = RunReport(100, 3, 4, {f"g{number}": "no sandbox" for number in range(unplayed)})
    return Outcome(summary, report, TournamentDirectory(tmp_path / "out"))


def test_games_that_could_not_be_played_are_listed_within_bounds(tmp_path: Path) -> None:
    assert list(ending(tmp_path).problem_lines()) == []
    assert list(ending(tmp_path, 1).problem_lines()) == [
        "game g0 could not be played, and counts for nobody: no sandbox"
    ]
    lines = list(ending(tmp_path, PROBLEM_LINES + 5).problem_lines())
    assert len(lines) == PROBLEM_LINES + 1
    assert lines[-1] == "and 5 more games could not be played"


def test_what_failed_after_a_verdict_is_listed_within_bounds(tmp_path: Path) -> None:
    over = ending(tmp_path)
    over.report.warnings["g0"] = ("process 7 of one does not end", "no room")
    assert list(over.problem_lines()) == [
        "game g0 has its result, but process 7 of one does not end; no room"
    ]
    over.report.warnings.update((f"g{number}", ("why",)) for number in range(PROBLEM_LINES + 5))
    lines = list(over.problem_lines())
    assert len(lines) == PROBLEM_LINES + 1
    assert lines[-1] == "and 5 more games could not be cleaned up"


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
    monkeypatch.setattr("sys.argv", ["kalarena"])  # no file: set by a program that calls the command
    assert program() == "kalarena"
