"""Standings, cross table, marks, exports and report agree with the games in the store."""

import csv
import io
import json
import tempfile
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.judge.record_rows import MoveRecord
from referee.judge.results import GameRecord, MatchResult, Reason
from tests.reporting.reports import page_at
from tests.support.builders import invoke, make_record
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store
from tournaments.schedule.pairing import pair_of_games
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


def value(cell: str) -> float:
    """Return a number as the report writes it: halves as a fraction."""
    text = cell.strip().replace("½", ".5").replace("\N{MINUS SIGN}", "-")
    return float(text)


@pytest.mark.slow
@given(results=RESULTS, data=st.data())
@settings(max_examples=15, deadline=None)
def test_all_outputs_agree_with_any_games(
    results: dict[str, tuple[int | None, bool, str]], data: st.DataObject
) -> None:
    void = data.draw(st.lists(st.sampled_from(sorted(results)), unique=True, max_size=2)) if results else []
    with tempfile.TemporaryDirectory() as folder:
        check(fill(Path(folder), results, void), results, set(void))


def test_all_outputs_agree_with_the_games(tmp_path: Path) -> None:
    """One pairing is missing; there are draws, faults, copies and a void game."""
    results = {
        pairing.key: ((0, 1, None)[number % 3], number % 4 == 1, "1" if number % 5 else "2")
        for number, pairing in enumerate(GAMES[:-2])
    }
    check(fill(tmp_path, results, [GAMES[1].key]), results, {GAMES[1].key})


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
        counts = (line["points"], line["played"], line["forfeits"])
        assert counts == (points[name], played[name], forfeits[name])
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
    page = page_at(folder / "report" / "index.html")
    sections = [[row.cells for row in rows] for rows in page.tables.values()]
    (standings,) = (rows for rows in sections if {"Rank", "Bot", "Elo"} <= set(rows[0]))
    for cells, line in zip(standings[1:], table["standings"], strict=True):
        shown = dict(zip(standings[0], cells, strict=True))
        assert shown["Bot"] == line["name"]
        assert (value(shown["Rank"]), value(shown["Points"])) == (line["rank"], line["points"])
        assert (value(shown["Played"]), value(shown["Unique"])) == (line["played"], line["unique"])
        if line["rating"] is not None:
            assert value(shown["Elo"]) == round(line["rating"])
    crossed = [rows for rows in sections if "1" in rows[0]]
    assert len(crossed) == bool(table["games"])  # a report without games has no cross table
    order = [line["name"] for line in table["standings"]]
    for name, cells in zip(order, crossed[0][1:] if crossed else [], strict=bool(crossed)):
        for other, cell in zip(order, cells[-1 - len(order) : -1], strict=True):
            if other != name and cell:
                assert value(cell) == versus[name, other]
    pages = {path.stem for path in (folder / "report" / "games").glob("*.html")}
    assert pages == set(results)
    for key in void:
        assert "counts for nobody" in (folder / "report" / "games" / f"{key}.html").read_text()
