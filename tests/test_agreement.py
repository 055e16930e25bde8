"""Standings, cross table, marks, exports and report say the same as the games in the store."""

import csv
import io
import json
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.judge.results import GameRecord, MatchResult, MoveRecord, Reason
from tests.builders import invoke, make_record
from tournaments.config.load import load_tournament
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store
from tournaments.schedule.pairing import key_of, pair_of_games
from tournaments.schedule.plan import Plan

NAMES = ["ann", "bob", "cid", "dan"]
GAMES = [
    pairing
    for number in (1, 2)
    for one, other in permutations(range(len(NAMES)), 2)
    if one < other
    for pairing in pair_of_games(number, one, other, 1)
]
"""Two rounds of a round robin."""

MARKS = """
[[rule]]
name = "Points"
kind = "points"
marks = 100
[[rule]]
name = "Place"
kind = "rank"
bands = [{ top = 1, marks = 4 }, { top = 2, marks = 3 }, { top = 3, marks = 2 }, { marks = 1 }]
"""

RESULTS = st.fixed_dictionaries(
    {},
    optional={
        pairing.key: st.tuples(st.sampled_from([0, 1, None]), st.booleans(), st.sampled_from("123"))
        for pairing in GAMES
    },
)
"""Key -> winner, whether by a fault, a move (which makes games differ)."""


def record_of(key: str, first: str, second: str, winner: int | None, fault: bool, move: str) -> GameRecord:
    if winner is not None and fault:
        result = MatchResult(winner, Reason.EXIT, f"{(first, second)[1 - winner]} ended", None, "exited")
    else:
        score = {0: (2, 0), 1: (0, 2), None: (1, 1)}[winner]
        result = MatchResult(winner, Reason.SCORE, "played to the end", score)
    moves = [MoveRecord(0, move, 1500, 1500), MoveRecord(1, "1", 2500, 2500)]
    return make_record(key, first, second, result=result, moves=moves, sandbox="off")


def fill(folder: Path, results: dict[str, tuple[int | None, bool, str]], void: list[str]) -> Path:
    """A tournament's directory with these games."""
    plan = TournamentResults("Cup", "kalah(1,1)", "2 s per move", NAMES, "points", Plan(rounds=2))
    with Store(folder / "results.db") as store:
        store.claim(plan.name, plan.config(), {})
        for pairing in GAMES:
            if pairing.key in results:
                record = record_of(
                    pairing.key, NAMES[pairing.first], NAMES[pairing.second], *results[pairing.key]
                )
                store.add(record, pairing.round, pairing.pair)
        for key in void:
            store.note(Entry(Action.VOID, key, "the power failed", 2, "2026-01-02T03:04:05+00:00"))
    return folder


class Cells(HTMLParser):
    """All tables of a page, as rows of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._open = False

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.tables[-1][-1][-1] += data


def value(cell: str) -> float:
    """A number as the report writes it: halves as a fraction."""
    text = cell.strip().replace("½", ".5").replace("\N{MINUS SIGN}", "-")
    return float(text)


@given(results=RESULTS, data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_all_say_the_same(results: dict[str, tuple[int | None, bool, str]], data: st.DataObject) -> None:
    void = data.draw(st.lists(st.sampled_from(sorted(results)), unique=True, max_size=2)) if results else []
    folder = Path(tempfile.mkdtemp())
    try:
        check(fill(folder, results, void), results, set(void))
    finally:
        shutil.rmtree(folder)


def check(folder: Path, results: dict[str, tuple[int | None, bool, str]], void: set[str]) -> None:
    points: Counter[str] = Counter()
    versus: Counter[tuple[str, str]] = Counter()
    forfeits: Counter[str] = Counter()
    played: Counter[str] = Counter()
    kinds: dict[str, set[object]] = {name: set() for name in NAMES}
    for pairing in GAMES:
        if pairing.key not in results or pairing.key in void:
            continue
        winner, fault, move = results[pairing.key]
        bots = (NAMES[pairing.first], NAMES[pairing.second])
        for index, name in enumerate(bots):
            gained = 0.5 if winner is None else float(winner == index)
            points[name] += gained  # type: ignore[assignment]
            versus[name, bots[1 - index]] += gained  # type: ignore[assignment]
            played[name] += 1
            forfeits[name] += winner == 1 - index and fault
            kinds[name].add((bots, move))  # near-copies, whatever came of them

    table = json.loads(invoke("tournament", "table", folder, "--format", "json").stdout)
    lines = {line["name"]: line for line in table["standings"]}
    assert table["games"] == len(results) - len(void)
    for name, line in lines.items():
        assert (line["points"], line["played"], line["forfeits"]) == (
            points[name],
            played[name],
            forfeits[name],
        )
        assert line["unique"] == len(kinds[name])
        for other in NAMES:
            if other != name:
                assert line["versus"][other]["points"] == versus[name, other]
        if played[name]:
            assert line["rating_low"] < line["rating"] < line["rating_high"]
        else:
            assert line["rating"] is None

    rows = list(csv.DictReader(io.StringIO(invoke("tournament", "table", folder, "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == [line["name"] for line in table["standings"]]
    for row in rows:
        line = lines[row["name"]]
        assert (int(row["rank"]), float(row["points"])) == (line["rank"], points[row["name"]])

    (folder / "marks.toml").write_text(MARKS)
    sheet = invoke("tournament", "marks", folder, "--rules", folder / "marks.toml").stdout
    for row in csv.DictReader(io.StringIO(sheet)):
        name = row["bot"]
        assert (float(row["points"]), int(row["rank"])) == (points[name], lines[name]["rank"])
        share = 100 * points[name] / played[name] if played[name] else 0.0
        assert float(row["Points (marks)"]) == pytest.approx(share, abs=0.0051)
        place = max(1, 5 - lines[name]["rank"]) if played[name] else 0
        assert float(row["Place (marks)"]) == place

    exported = invoke("tournament", "export", folder, "--what", "games").stdout
    games = {row["key"]: row for row in csv.DictReader(io.StringIO(exported))}
    assert set(games) == set(results)

    assert invoke("tournament", "report", folder).exit_code == 0
    page = Cells()
    page.feed((folder / "report" / "index.html").read_text(encoding="utf-8"))
    standings = page.tables[0]
    head = standings[0]
    assert len(standings) == 1 + len(NAMES)
    for row_cells, line in zip(standings[1:], table["standings"], strict=True):
        shown = dict(zip(head, row_cells, strict=True))
        assert shown["Bot"].strip() == line["name"]
        assert (value(shown["Rank"]), value(shown["Points"])) == (line["rank"], line["points"])
        assert (value(shown["Played"]), value(shown["Unique"])) == (line["played"], line["unique"])
        if line["rating"] is not None:
            assert value(shown["Elo"]) == round(line["rating"])
    crossed = [table for table in page.tables if "1" in [cell.strip() for cell in table[0]]]
    assert len(crossed) == bool(table["games"])  # without a game there is nothing to be crossed
    order = [line["name"] for line in table["standings"]]
    for name, cells in zip(order, crossed[0][1:] if crossed else [], strict=bool(crossed)):
        against = cells[-1 - len(order) : -1]
        for other, cell in zip(order, against, strict=True):
            if other != name and cell.strip():
                assert value(cell) == versus[name, other]
    pages = {path.stem for path in (folder / "report" / "games").glob("*.html")}
    assert pages == set(results)
    for key in void:
        assert "counts for nobody" in (folder / "report" / "games" / f"{key}.html").read_text()


@pytest.mark.parametrize("copies", [100])
def test_copies_of_a_deterministic_pairing_move_no_interval(tmp_path: Path, copies: int) -> None:
    """Whole tournaments, one with each game once and one with all of them again and again."""
    base = {pairing.key: (pairing.first % 2, False, "1") for pairing in GAMES if pairing.round == 1}
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    fill(few, dict(base), [])
    shutil.copytree(few, many)
    with Store(many / "results.db") as store:
        for number in range(2, copies + 1):
            for pairing in pair_of_games(number, 0, 1, 1):
                first, second = NAMES[pairing.first], NAMES[pairing.second]
                record = record_of(
                    pairing.key, first, second, *base[key_of(1, pairing.first, pairing.second, 1)]
                )
                store.add(replace(record, started_at="2026-01-02T05:00:00+00:00"), number, pairing.pair)
    shown = []
    for folder in (few, many):
        table = json.loads(invoke("tournament", "table", folder, "--format", "json").stdout)
        shown.append(
            {
                line["name"]: (line["rating"], line["rating_low"], line["rating_high"], line["unique"])
                for line in table["standings"]
            }
        )
        assert {line["played"] for line in table["standings"] if line["name"] in ("ann", "bob")} == {
            6 if folder is few else 6 + 2 * (copies - 1)
        }
    assert shown[0] == shown[1]


def test_a_real_deterministic_tournament_of_many_rounds_knows_no_more(tmp_path: Path) -> None:
    shown = []
    for rounds in (1, 4):
        file = tmp_path / f"{rounds}.toml"
        file.write_text(
            f'game = "kalah(3,2)"\nrounds = {rounds}\nbots = ["first_legal", "greedy", "minimax:1"]\n'
        )
        assert len(load_tournament(file).bots) == 3
        done = invoke("tournament", "run", file, "--out", tmp_path / str(rounds), "--json")
        table = json.loads(done.stdout)
        assert table["games"] == 6 * rounds
        shown.append({line["name"]: (line["rating_low"], line["rating_high"]) for line in table["standings"]})
    assert shown[0] == shown[1]


def test_the_page_parser_sees_tables() -> None:
    cells = Cells()
    cells.feed("<table><tr><th>a <i>b</i></th><td>1½</td></tr></table>")
    assert cells.tables == [[["a b", "1½"]]]
    assert value(" \N{MINUS SIGN}1½ ") == -1.5
    assert re.fullmatch(r"r001-1v2", GAMES[0].key)
