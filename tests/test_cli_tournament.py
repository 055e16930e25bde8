"""The command line: `kalarena tournament run` and `table`."""

import csv
import json
import select
import signal
import subprocess
from pathlib import Path

import pytest

from tests.builders import KALARENA, RUN_LIMIT_S, invoke, kalarena, one_object, write_tournament
from tournaments.reporting import tables
from tournaments.results.store import Store

THREE = """
name = "Cup"
game = "kalah(4,3)"
rounds = 2
bots = ["first_legal", "greedy", "minimax:2"]
"""
GAMES = 2 * 3 * 2


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tournament that was played into ``out``; nobody changes it."""
    folder = tmp_path_factory.mktemp("played")
    write_tournament(folder, THREE)
    done = kalarena(folder, "tournament", "run", "cup.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    return folder


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def test_run_prints_the_table_and_where_everything_lies(played: Path) -> None:
    out = (played / "stdout").read_text()
    assert out.startswith(
        f"Cup: kalah(4,3), 10 s per move (margin 0.05 s, start 30 s), {GAMES} of {GAMES} games"
    )
    assert all(name in out for name in ("first_legal", "greedy", "minimax:2"))
    assert "out/results.db" in out
    assert "out/report.html" in out
    assert f"Cup: {GAMES} of {GAMES} games" in (played / "stderr").read_text()


def test_what_is_in_the_directory(played: Path) -> None:
    out = played / "out"
    files = {path.name for path in out.iterdir()}
    assert files == {
        "results.db",
        "report.html",
        "standings.csv",
        "games.csv",
        "results.json",
        "games",
        ".lock",
    }
    with Store(out / "results.db") as store:
        keys = store.played()
        assert len(keys) == GAMES
        for key in keys:
            assert store.record(key).result.reason == "score"
    assert {path.name for path in (out / "games").iterdir()} == keys
    for key in keys:
        names = {path.name for path in (out / "games" / key).iterdir()}
        assert {"game.json", "wire.txt"} < names
        assert len(names) == 4
    with (out / "games.csv").open(newline="") as file:
        assert {row["key"] for row in csv.DictReader(file)} == keys


def test_table_in_all_formats(played: Path) -> None:
    found = {}
    for form in tables.FORMATS:
        result = invoke("tournament", "table", played / "out", "--format", form)
        assert (result.exit_code, result.stderr) == (0, "")
        found[form] = result.stdout
    done = kalarena(played, "tournament", "table", "out", "--format", "json")
    assert (done.returncode, done.stdout, done.stderr) == (0, found["json"], "")
    assert (played / "stdout").read_text().startswith(found["text"])
    assert found["csv"] == (played / "out" / "standings.csv").read_text()
    assert found["html"] == (played / "out" / "report.html").read_text()
    assert found["json"] == (played / "out" / "results.json").read_text()
    names = [row["name"] for row in csv.DictReader(found["csv"].splitlines())]
    value = one_object(found["json"])
    assert names == [line["name"] for line in value["standings"]]
    assert sum(line["points"] for line in value["standings"]) == GAMES
    assert (value["games"], value["games_total"]) == (GAMES, GAMES)


def test_running_again_plays_nothing_and_says_the_same(played: Path) -> None:
    before = {path: path.read_bytes() for path in (played / "out").rglob("*.json")}
    again = invoke("tournament", "run", played / "cup.toml", "--out", played / "out", "--json")
    assert (again.exit_code, again.stderr) == (0, "")
    assert one_object(again.stdout) == one_object((played / "out" / "results.json").read_text())
    assert {path: path.read_bytes() for path in (played / "out").rglob("*.json")} == before


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("kalah(4,3)", "kalah(4,2)", "its game is kalah(4,3), now it is kalah(4,2)"),
        ('"minimax:2"', '"minimax:3"', "it has no bot 'minimax:3'"),
        ('"first_legal", "greedy"', '"greedy", "first_legal"', "the same but in another order"),
        ("rounds = 2", "rounds = 2\n[time]\nmove_s = 3.0\n", "its time control is "),
    ],
)
def test_another_tournament_in_the_directory(
    played: Path, tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    text = changed(THREE, old, new)
    if "[time]" in text:  # tables come last in TOML
        text = THREE + "[time]\nmove_s = 3.0\n"
    file = write_tournament(tmp_path, text)
    before = (played / "out" / "report.html").read_bytes()
    done = invoke("tournament", "run", file, "--out", played / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "holds another tournament ('Cup')" in done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert (played / "out" / "report.html").read_bytes() == before


def copy_of(played: Path, target: Path) -> Path:
    """A copy of the played tournament that a test may change."""
    subprocess.run(["cp", "-r", str(played / "out"), str(target)], check=True, timeout=RUN_LIMIT_S)
    return target


def test_more_rounds_later(played: Path, tmp_path: Path) -> None:
    out = copy_of(played, tmp_path / "out")
    write_tournament(tmp_path, changed(THREE, "rounds = 2", "rounds = 3"))
    done = invoke("tournament", "run", tmp_path / "cup.toml", "--out", out, "--json")
    assert done.exit_code == 0
    value = one_object(done.stdout)
    assert (value["games"], value["games_total"]) == (18, 18)
    assert sorted(line["wins"] + line["draws"] + line["losses"] for line in value["standings"]) == [
        12,
        12,
        12,
    ]


def test_fewer_rounds_later(played: Path, tmp_path: Path) -> None:
    """There are never more games than games."""
    out = copy_of(played, tmp_path / "out")
    write_tournament(tmp_path, changed(THREE, "rounds = 2", "rounds = 1"))
    done = invoke("tournament", "run", tmp_path / "cup.toml", "--out", out, "--json")
    assert "Traceback" not in done.stderr
    if done.exit_code == 0:
        value = one_object(done.stdout)
        assert value["games"] <= value["games_total"]
    else:
        assert done.exit_code == 2
        assert "round" in done.stderr


def test_files_that_are_missing_are_made_again(played: Path, tmp_path: Path) -> None:
    """A kill between a game's transaction and its files must not lose them for good."""
    out = copy_of(played, tmp_path / "out")
    subprocess.run(["rm", "-r", str(out / "games" / "r001-1v2"), str(out / "report.html")], check=True)
    write_tournament(tmp_path, THREE)
    done = invoke("tournament", "run", tmp_path / "cup.toml", "--out", out)
    assert done.exit_code == 0
    for path in (played / "out" / "games").rglob("*.*"):
        assert (out / path.relative_to(played / "out")).read_bytes() == path.read_bytes()
    assert (out / "report.html").is_file()


def test_json_goes_alone_to_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tournament(tmp_path, changed(THREE, "rounds = 2", "rounds = 1"))
    monkeypatch.chdir(tmp_path)
    done = invoke("tournament", "run", "cup.toml", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert one_object(done.stdout)["games"] == 6
    assert (tmp_path / "results" / "cup" / "results.db").is_file()  # the default for --out


def test_a_bot_that_fails_every_game_ends_no_tournament(tmp_path: Path) -> None:
    """Each game has its result, with the fault; the exit status is 0."""
    (tmp_path / "bad.py").write_text("import sys; sys.exit('sorry')")
    write_tournament(tmp_path, 'game = "kalah(3,2)"\nbots = ["bad.py", "greedy", "first_legal"]')
    done = invoke("tournament", "run", tmp_path / "cup.toml", "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0
    value = one_object(done.stdout)
    bad = next(line for line in value["standings"] if line["name"] == "bad")
    assert (bad["losses"], bad["forfeits"], bad["rank"]) == (4, 4, 3)
    assert value["games"] == 6
    assert "sorry" in (tmp_path / "out" / "games" / "r001-1v2" / "stderr-1-bad.txt").read_text()


LONG = changed(THREE, "rounds = 2", "rounds = 50")


def start_long_run(folder: Path) -> "subprocess.Popen[str]":
    """A run that is at work: a tenth of its 300 games is done."""
    write_tournament(folder, LONG)
    process = subprocess.Popen(
        [KALARENA, "tournament", "run", "cup.toml", "--out", "out"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert select.select([process.stderr], [], [], RUN_LIMIT_S)[0], "nothing was said"
    assert process.stderr.readline() == "Cup: 30 of 300 games\n"
    return process


def test_two_runs_at_once_then_killed_then_table(tmp_path: Path) -> None:
    process = start_long_run(tmp_path)
    try:
        other = kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out")
        assert (other.returncode, other.stdout) == (2, "")
        assert other.stderr.startswith("Error: another run is at work in out")
        # Looking at the table disturbs nobody.
        table = invoke("tournament", "table", tmp_path / "out", "--format", "json")
        assert table.exit_code == 0
        value = one_object(table.stdout)
        assert 2 < value["games"] < value["games_total"] == 300
    finally:
        process.kill()
        process.communicate(timeout=RUN_LIMIT_S)
    # The lock went with the process; what was played is whole, and its files too.
    after = one_object(invoke("tournament", "table", tmp_path / "out", "--format", "json").stdout)
    assert after["games"] >= value["games"]
    with Store(tmp_path / "out" / "results.db") as store:
        keys = store.played()
        assert all(store.record(key).key == key for key in keys)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """It says how much is left, prints the table so far, and leaves everything ready to go on."""
    process = start_long_run(tmp_path)
    process.send_signal(number)
    out, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "of 300 games to play; the same command goes on" in errors
    assert out.startswith("Cup: ")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert not [name for name in files if name.startswith("leash") or name.endswith((".part", "-wal"))]
    with Store(tmp_path / "out" / "results.db") as store:
        kept = len(store.played())
    assert json.loads((tmp_path / "out" / "results.json").read_text())["games"] == kept
    assert len(list((tmp_path / "out" / "games").iterdir())) == kept


def test_a_gauntlet_of_an_earlier_version_keeps_its_ranking(tmp_path: Path) -> None:
    """Earlier versions ranked it by points where the file said nothing."""
    write_tournament(
        tmp_path,
        'game = "kalah(1,1)"\nformat = {kind = "gauntlet", challengers = ["random"]}\n'
        'bots = ["first_legal", "greedy", "random"]\n[sandbox]\nmode = "off"\n',
    )
    command = ("tournament", "run", "cup.toml", "--out", "out", "--json")
    begun = kalarena(tmp_path, *command)
    assert begun.returncode == 0, begun.stderr
    assert one_object(begun.stdout)["criteria"] == ["score", "wins"]
    with Store(tmp_path / "out" / "results.db") as store:
        identity, config = store.identity(), store.config()
        assert identity is not None
        store.claim(config.pop("name"), {**config, "ranking": "points"}, identity)
    gone_on = kalarena(tmp_path, *command)
    assert gone_on.returncode == 0, gone_on.stderr
    assert one_object(gone_on.stdout)["criteria"] == ["points", "wins"]
    path = tmp_path / "cup.toml"
    path.write_text('ranking = "score"\n' + path.read_text())
    assert one_object(kalarena(tmp_path, *command).stdout)["criteria"] == ["score", "wins"]
