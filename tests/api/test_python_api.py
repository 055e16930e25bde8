"""Tournaments from Python: settings, runs that go on, results as rows, and clear errors."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tournaments
from referee.players.function_player import FunctionPlayer
from tests.support.builders import invoke, write_tournament
from tests.support.ordinary_user import forbid
from tests.support.paths import REPOSITORY_ROOT
from tournaments import BotError, ConfigError, DirectoryError, Results, StoreError, Tournament, run
from tournaments.reporting.exports import COLUMNS
from tournaments.reporting.tournament_directory import TournamentDirectory

BOTS: Sequence[Any] = ["greedy", {"bot": "first_legal", "name": "simple"}]
NAME = "<b>Cup</b>"
PLAIN = (str, int, float, bool, type(None))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of a tournament that was run as in a notebook: beside a running event loop."""
    cup = Tournament.from_settings(BOTS, name=NAME, game="kalah(3,2)")

    async def cell() -> Results:
        return run(cup, tmp_path_factory.mktemp("cup"), concurrency=1)

    return asyncio.run(cell())


def test_results_that_may_not_be_read_are_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "is_file", tmp_path / "cup")
    with pytest.raises(StoreError, match=r"cup cannot be read: Permission denied$"):
        Results.load(tmp_path / "cup")


def test_settings_are_those_of_a_file(tmp_path: Path) -> None:
    path = write_tournament(
        tmp_path,
        'bots = ["greedy", {bot = "minimax:1", name = "reference"}]\nrounds = 3\ngame = "kalah(4,3)"\n'
        "[time]\nmove_s = 0.5",
    )
    made = Tournament.from_settings(
        ["greedy", {"bot": "minimax:1", "name": "reference"}],
        folder=tmp_path,
        name=Tournament.from_file(path).name,
        rounds=3,
        game="kalah(4,3)",
        time={"move_s": 0.5},
    )
    assert made == Tournament.from_file(str(path))


def test_all_problems_of_settings_are_in_one_message() -> None:
    with pytest.raises(ConfigError) as caught:
        Tournament.from_settings(["greedy", "no_such_bot"], roundz=2)
    first, second = str(caught.value).splitlines()
    assert first.startswith("bots[2]: no such bot: 'no_such_bot'")
    assert second == "roundz: unknown key; did you mean 'rounds'?"


def test_a_function_is_no_bot_of_a_tournament() -> None:
    with pytest.raises(ConfigError, match=r"bots\[1\]: must be .* not <referee.players.function_player"):
        Tournament.from_settings([FunctionPlayer(max), "greedy"])  # type: ignore[list-item]


def test_rows_have_plain_values_and_the_documented_columns(results: Results) -> None:
    table, games, moves = results.table, results.games(), results.moves()
    for rows in (table, games, moves):
        assert {type(value) for row in rows for value in row.values()} <= set(PLAIN)
        assert json.loads(json.dumps(rows)) == rows
        assert all(list(row) == list(rows[0]) for row in rows)
    assert {row["name"]: row["played"] for row in table} == {"greedy": 2, "simple": 2}
    assert list(games[0]) == list(COLUMNS["games"])
    assert list(moves[0]) == list(COLUMNS["moves"])
    assert len(games) == 2
    assert [row["counts"] for row in games] == [True, True]


def test_the_criteria_of_the_ranking_are_columns(tmp_path: Path) -> None:
    cup = Tournament.from_settings(BOTS, game="kalah(2,1)", ranking=["points", "head-to-head", "speed"])
    row = run(cup, tmp_path, concurrency=1).table[0]
    assert {"points", "head_to_head", "mean_move_ms"} <= set(row)


def test_results_are_shown_as_a_text_and_as_a_table(results: Results) -> None:
    assert "2 of 2 games" in str(results)
    assert repr(results) == f"<Results of {NAME}: 2 of 2 games in {results.directory}>"
    html = results._repr_html_()
    assert NAME not in html
    assert "&lt;b&gt;Cup&lt;/b&gt;" in html
    for row in results.table:
        assert f'scope="row">{row["name"]}</th>' in html
    (report,) = results.directory.glob("report.html")
    assert html[html.index("<table>") : html.index("</table>")] in report.read_text(encoding="utf-8")


def test_a_record_is_read_by_its_key(results: Results) -> None:
    row = results.games()[0]
    record = results.record(str(row["key"]))
    assert record.result.detail == row["detail"]
    with pytest.raises(StoreError, match="holds no game 'r9'"):
        results.record("r9")


def test_the_same_call_goes_on_and_the_command_line_reads_the_results(results: Results) -> None:
    cup = Tournament.from_settings(BOTS, name=NAME, game="kalah(3,2)", rounds=2)
    loaded = Results.load(str(results.directory))
    again = run(cup, results.directory, concurrency=1)
    assert len(loaded.games()) == 2  # as it was loaded
    assert len(again.games()) == 4
    done = invoke("tournament", "table", results.directory, "--format", "json")
    standings = json.loads(done.stdout)["standings"]
    assert [(row["name"], row["points"]) for row in standings] == [
        (row["name"], row["points"]) for row in again.table
    ]


@pytest.mark.parametrize("beside_a_loop", [False, True])
def test_an_interrupt_stops_a_run_and_keeps_its_directory_usable(tmp_path: Path, beside_a_loop: bool) -> None:
    (tmp_path / "stopper.py").write_text(
        "import os, signal, sys\nos.kill(int(sys.argv[1]), signal.SIGINT)\nsys.stdin.read()\n"
    )
    cup = Tournament.from_settings(
        [{"bot": f"{sys.executable} stopper.py {os.getpid()}", "name": "stopper"}, "greedy"],
        folder=tmp_path,
        game="kalah(2,1)",
        sandbox={"mode": "off"},
    )

    def call() -> None:
        run(cup, tmp_path / "out", concurrency=1)

    async def cell() -> None:
        call()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell()) if beside_a_loop else call()
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)
    assert Results.load(tmp_path / "out").games() == []
    with TournamentDirectory(tmp_path / "out").locked():
        pass


def test_another_tournament_is_refused(results: Results) -> None:
    other = Tournament.from_settings(BOTS, name=NAME, game="kalah(2,2)")
    with pytest.raises(StoreError, match="another tournament"):
        run(other, results.directory)


def test_a_directory_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no results\.db"):
        Results.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_of_something_else_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("mine")
    with pytest.raises(DirectoryError, match=r"has a results\.json, which a run would overwrite"):
        run(Tournament.from_settings(BOTS, name=NAME, game="kalah(2,2)"), tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("results.json", "mine")]


def test_a_text_names_a_bot(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print()\n")
    assert tournaments.bot("mine.py", folder=tmp_path).name == "mine"
    assert tournaments.bot("greedy", "Ada").name == "Ada"
    with pytest.raises(BotError, match="no such bot"):
        tournaments.bot("gredy")


@pytest.mark.slow
def test_a_script_without_a_guard_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from tournaments import Tournament, run\n"
        'run(Tournament.from_settings(["greedy", "first_legal"], game="kalah(2,1)"), "out", concurrency=1)\n'
    )
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(REPOSITORY_ROOT)},
    )
    assert done.returncode == 1
    assert done.stderr.count('RuntimeError: call tournaments.run below `if __name__ == "__main__":`') == 1
    assert done.stderr.endswith("EngineError: a worker process died at its start\n")
