"""Tables in every form, with ordinary and with hostile names."""

import csv
import io
import json
import re
from typing import Any

import pytest

from referee.judge.results import Reason
from referee.judge.verdict_text import visible
from tests.reporting.reports import Page
from tests.support.builders import make_summary
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import Tally
from tournaments.reporting import tables
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary

GAMES = [
    make_summary("ann", "bob", 0, moves=(4, 4), wall_us=(10_000, 4000), key="r001-1v2"),
    make_summary("bob", "ann", None, moves=(4, 4), wall_us=(4000, 10_000), key="r001-2v1"),
    make_summary("cid", "ann", 1, reason=Reason.TIMEOUT, moves=(0, 0), key="r001-3v1", wall_us=(0, 0)),
]
NAMES = ["ann", "bob", "cid"]
EVIL = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "<script>alert(1)</script>",
    '"><b>',
    "a,b",
    'say "x"',
    "a\nb",
]


def summary(
    games: list[GameSummary] | None = None, names: list[str] = NAMES, ranking: str = "points"
) -> TournamentResults:
    found = GAMES if games is None else games
    return TournamentResults("Cup", "kalah(6,4)", "2 s per move", names, ranking, kept=found)


def read_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# Text


RATINGS = {"ann": Estimate(217.6, -137.9, 811.4), "bob": Estimate(-36.4, -553.3, 449.2)}
"""Of tests that are not about ratings."""


def table_of(ranking: str | list[str] = "points", **more: Any) -> list[Standing]:
    return Tally(NAMES, GAMES).table(ranking, ratings=RATINGS, **more)


def test_text_by_hand() -> None:
    about = summary().about
    assert tables.to_text("Cup", about, table_of(withdrawn=["bob"]), "points").split("\n") == [
        "Cup: kalah(6,4), 2 s per move, 3 of 6 games, sandbox off",
        "",
        "#  rank  name             points  played  unique  wins  draws  losses  forfeits  score %  "
        "rating  95 % interval      1      2    3",
        "1     1  ann                 2.5       3       3     2      1       0         0     83.3  "
        "   218    -138 to 811      -  1.5/2  1/1",
        "2     2  bob (withdrawn)     0.5       2       2     0      1       1         0     25.0  "
        "   -36    -553 to 449  0.5/2      -",
        "3     3  cid                   0       1       1     0      0       1         1      0.0  "
        "                         0/1           -",
    ]


def test_text_shows_times_only_where_they_count() -> None:
    before = summary([]).render("text")
    assert "0 of 6 games" in before
    assert "mean move ms" not in before
    timed = summary(ranking="wins-then-speed").render("text")
    assert "mean move ms" in timed
    assert "2.5" in timed.split("\n")[3]


@pytest.mark.parametrize(
    ("points", "text"),
    [(0.0, "0"), (0.5, "0.5"), (3.0, "3"), (100_000.5, "100000.5"), (1_234_567.0, "1234567")],
)
def test_points_are_exact(points: float, text: str) -> None:
    """A tournament may have 20 million games of one bot."""
    assert tables.number(points) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, ""), (0.0, "0.0"), (4.5 / 8, "56.3"), (23 / 80, "28.8"), (2 / 3, "66.7"), (0.9994, "99.9")],
)
def test_scores_are_rounded_half_up(share: float | None, text: str) -> None:
    assert tables.percent(share) == text


@pytest.mark.parametrize("form", tables.FORMATS)
def test_every_format_shows_every_bot(form: str) -> None:
    text = summary().render(form)
    assert all(name in text for name in NAMES)
    if form != "html":  # which lists faults in the order of games
        assert text == summary(GAMES[::-1]).render(form)
    with pytest.raises(ValueError, match="no format 'pdf'; there are text, csv, json, html"):
        summary().render("pdf")


# CSV


def test_csv_by_hand() -> None:
    assert tables.to_csv(table_of(), "points").split("\n") == [
        "rank,name,points,played,unique,wins,draws,losses,forfeits,rating,rating_low,rating_high,"
        "vs ann,vs bob,vs cid,score_percent",
        "1,ann,2.5,3,3,2,1,0,0,218,-138,811,,1.5,1,83.3",
        "2,bob,0.5,2,2,0,1,1,0,-36,-553,449,0.5,,,25.0",
        "3,cid,0,1,1,0,0,1,1,,,,0,,,0.0",
        "",
    ]


def test_csv_of_criteria_and_byes() -> None:
    """Criteria that have no column get one, and a bye has a column and counts in the score."""
    ranking = ["points", "buchholz", "head-to-head", "speed"]
    rows = read_csv(tables.to_csv(table_of(ranking, byes={"cid": 1.0}), ranking))
    assert rows[0][9:14] == ["byes", "buchholz", "head_to_head", "mean_move_ms", "rating"]
    assert [row[1:3] + row[9:13] for row in rows[1:]] == [
        ["ann", "2.5", "0", "2", "", "2.5"],
        ["cid", "1", "1", "3.5", "", ""],
        ["bob", "0.5", "0", "5", "", "1.0"],
    ]
    assert [row[-1] for row in rows[1:]] == ["83.3", "50.0", "25.0"]


def test_csv_before_the_first_game() -> None:
    assert read_csv(summary([]).render("csv"))[1] == ["1", "ann", *["0"] * 7, *[""] * 7]
    assert [line["score_percent"] for line in summary([]).to_json()["standings"]] == [None] * 3


@pytest.mark.parametrize("name", EVIL)
def test_names_are_data_in_every_form(name: str) -> None:
    """They are no formulas, break no row, and bring no markup."""
    games = [make_summary(name, "bob", 0, detail=f"{name} won"), make_summary("bob", name, 0, key="x")]
    for text in (summary(games, [name, "bob"]).render("csv"), tables.games_csv(games)):
        rows = read_csv(text)
        assert len(rows) == 3
        assert len({len(row) for row in rows}) == 1
        cells = [cell for row in rows for cell in row]
        words = [cell for cell in cells if not re.fullmatch(r"-?[0-9.]+", cell)]
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in words)
        assert any(cell.lstrip("'") == visible(name) for cell in cells)
    value = json.loads(summary(games[:1], [name, "bob"]).render("json"))
    assert value["standings"][0]["name"] == name
    lost = make_summary(name, "bob", 1, reason=Reason.ILLEGAL, detail=f"{name} lost", key="k")
    page = Page(TournamentResults(name, name, name, [name, "bob"], "points", kept=[lost]).render("html"))
    plain = Page(summary([lost._replace(first="n", detail="")], ["n", "bob"]).render("html"))
    assert (page.tags, page.open) == (plain.tags, [])
    assert [one for one, _ in page.attributes] == [one for one, _ in plain.attributes]
    assert name.replace("\r", "\n").strip() in [cell.replace("\r", "\n") for cell in page.cells]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("\u0645\u06cc\u200c\u062e\u0648", None),
        ("\u0915\u094d\u200d\u0937", None),
        ("Ann\u00a0Lee\u3000Wu", None),
        ("a\r\nb\tc\x7f\x85", r"a\r\nb\tc\x7f\x85"),
        ("a\u2028b\u2029", r"a\u2028b\u2029"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\ud800", r"\ud800"),
    ],
)
def test_cells_keep_the_characters_of_names(text: str, cell: str | None) -> None:
    assert read_csv(tables.Grid("Marks", [text], [[text]], 0).to_csv()) == [[cell or text]] * 2


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("it sent ';=1+1;'", "it sent ';'=1+1;'"),
        ('x; "=1+1', "x;' \"=1+1"),
        (";@SUM(A1);+A1;-A1", ";'@SUM(A1);'+A1;'-A1"),
        ("it sent 'MOVE;-1+1'", "it sent 'MOVE;'-1+1'"),
        ("MOVE;-1", None),
        ("1;-1;+2.5; -3 ;0", None),
        ("Ann; Bob;x=1;2-1;'=1", None),
    ],
)
def test_no_part_of_a_text_is_a_formula(text: str, cell: str | None) -> None:
    """Excel splits a text at each ``;`` where that separates columns."""
    assert tables.inert(text) == (cell or text)


def test_games_csv_by_hand() -> None:
    assert tables.games_csv(GAMES).split("\n") == [
        "key,round,first,second,winner,reason,fault,score_first,score_second,"
        "moves_first,moves_second,mean_move_ms_first,mean_move_ms_second,sandbox,detail,"
        "pair,opening,swapped,fingerprint",
        "r001-1v2,1,ann,bob,ann,score,,3,1,4,4,2.500,1.000,off,what happened,,,,",
        "r001-2v1,1,bob,ann,,score,,3,1,4,4,1.000,2.500,off,what happened,,,,",
        "r001-3v1,1,cid,ann,ann,timeout,fault,,,0,0,,,off,what happened,,,,",
        "",
    ]


def test_games_csv_has_what_statistics_need() -> None:
    game = GAMES[0]._replace(pair="r001-1+2", opening="=1 2", fingerprint="00ff", swapped=1)
    draws = [make_summary("draw", "bob", 0), make_summary("draw", "bob", None)]
    row, won, drawn = csv.DictReader(io.StringIO(tables.games_csv([game, *draws])))
    assert [row[name] for name in ("pair", "opening", "swapped", "fingerprint")] == [
        *("r001-1+2", "'=1 2", "bob", "00ff")
    ]
    assert won != drawn


# JSON


"""Keys that scripts have relied on since the first version."""


def test_json_by_hand() -> None:
    value = json.loads(summary().render("json"))
    standing = value.pop("standings")
    assert value == {
        "tournament": "Cup",
        "game": "kalah(6,4)",
        "time_control": "2 s per move",
        "games": 3,
        "games_total": 6,
        "sandbox": "off",
        "ranking": "points",
        "format": {"kind": "round-robin"},
        "rounds": 1,
        "seed": 0,
        "conclusion": "",
        "anchor": None,
        "criteria": ["points", "wins"],
        "games_done": 3,
        "games_set_aside": 0,
        "ratings_caveat": "",
    }
    first = standing[0]
    ratings = [first.pop(name) for name in ("rating", "rating_low", "rating_high")]
    assert ratings[1] < ratings[0] < ratings[2]
    assert first == {
        "unique": 3,
        "bye_points": 0,
        "criteria": {"points": 2.5, "wins": 2},
        "withdrawn": False,
        "rank": 1,
        "name": "ann",
        "points": 2.5,
        "played": 3,
        "wins": 2,
        "draws": 1,
        "losses": 0,
        "forfeits": 0,
        "versus": {
            "bob": {"points": 1.5, "wins": 1, "draws": 1, "losses": 0, "games": 2},
            "cid": {"points": 1.0, "wins": 1, "draws": 0, "losses": 0, "games": 1},
        },
        "score_percent": 83.33,
    }
    assert standing[1]["versus"]["cid"] == {"points": 0.0, "wins": 0, "draws": 0, "losses": 0, "games": 0}
    timed = summary([], ranking="wins-then-speed").to_json()
    assert timed["standings"][0]["mean_move_ms"] is None


# HTML
def test_html_holds_everything() -> None:
    text = summary().render("html")
    page = Page(text)
    assert page.tags.count("table") == 3
    for cell in ("ann", "1.5/2", "timeout", "r001-3v1", "what happened", "forfeits"):
        assert cell in page.cells
    assert page.values("href", "src") == ["games/r001-3v1/wire.txt"]
    assert "ann against bob: +1 =1 -0" in page.values("title")
    # The cells of bots that did not meet are empty.
    assert re.findall(r'<td title="[^"]*">([^<]*)</td>', text) == ["1.5/2", "1/1", "0.5/2", "", "0/1", ""]
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "http" not in text
    assert "@import" not in text
    without_faults = summary(GAMES[:2]).render("html")
    assert "No game was lost by a fault." in without_faults
    assert Page(without_faults).tags.count("table") == 2
