"""Formats in which results decide who meets whom go on after a kill as if there had been none."""

import json
from pathlib import Path

import pytest

from tests.running.test_resume import start_and_wait_for_games, table
from tests.support.builders import RUN_LIMIT_S, invoke
from tests.support.processes import all_end, descendants, open_pidfds
from tournaments.results.store import Store
from tournaments.schedule.plan import FORMATS

WITHOUT_CHOICE = ("round-robin", "gauntlet", "groups", "ladder")
"""Their games do not depend on results, or only as a knockout's or a Swiss's do.
tests/running/test_resume.py plays a round robin, test_formats_contract.py all of them without processes."""

CASES: dict[str, tuple[str, int]] = {
    "swiss": ('format = {kind = "swiss", pairs = 1}\nrounds = 3', 5),
    "knockout": ('format = {kind = "knockout", pairs = 2}', 5),
    "placement": ('format = {kind = "placement", challengers = ["greedy"], pairs = 1}\nrounds = 3', 5),
    "sprt": ('format = {kind = "sprt", elo0 = -5.0, elo1 = 5.0, max_games = 16, batch = 4}', 2),
}
"""Format -> (lines of the file, number of bots).  The bots play the same in every run."""

BOTS = ["minimax:1", "greedy", "first_legal", "random:1", "random:2"]


def write(folder: Path, kind: str) -> Path:
    lines, count = CASES[kind]
    path = folder / "cup.toml"
    path.write_text(
        f"name = 'cup'\ngame = 'kalah(4,3)'\n{lines}\nseed = 3\nbots = {json.dumps(BOTS[:count])}\n"
        "openings = {random = {plies = 3, seed = 5}}\n[time]\nmove_s = 20.0\n"
        "[sandbox]\nmode = 'off'\n"  # tests/running/test_resume.py and tests/running/test_kill.py have one
    )
    return path


def test_every_format_is_tried() -> None:
    assert {*CASES, *WITHOUT_CHOICE} == set(FORMATS)


@pytest.mark.kill
@pytest.mark.parametrize("kind", CASES)
def test_kills_change_nothing(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path, kind)
    assert invoke("tournament", "run", path, "--out", tmp_path / "calm").exit_code == 0
    calm = {form: table(tmp_path / "calm", form) for form in ("csv", "json")}
    with Store(tmp_path / "calm" / "results.db") as store:
        keys = store.played()

    out = tmp_path / "disturbed"
    runner = start_and_wait_for_games(path, out)
    left_behind = open_pidfds(descendants(runner.pid))
    runner.kill()
    runner.communicate(timeout=RUN_LIMIT_S)
    assert all_end(left_behind, RUN_LIMIT_S)
    with Store(out / "results.db") as store:
        assert store.played() < keys
    assert invoke("tournament", "run", path, "--out", out).exit_code == 0
    with Store(out / "results.db") as store:
        assert store.played() == keys
    assert {form: table(out, form) for form in calm} == calm
