"""The report: its pages, and their agreement with the results."""

import re
from dataclasses import replace
from html import escape
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.reports import (
    Page,
    broken_links,
    files_of,
    loaded,
    made,
    mixed,
    page_at,
    pages_in,
    records_of,
    some,
    summary_of,
    write_store,
)
from tests.support.builders import invoke, write_tournament
from tournaments.reporting.site import words
from tournaments.reporting.site.addresses import unique_files
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.site import ASSETS
from tournaments.reporting.site.times import game_times
from tournaments.reporting.site.view import HEAT_STEPS, View, heat
from tournaments.reporting.tables import percent
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry

NAMES = ("ada", "bob", "cleo")
HOSTILE = ("<script>alert(1)</script>", "\"'&amp;]]>", "bot", "Bot", "BOT.", "‮evil\u0007", "x" * 200, "con")
OUTCOMES = st.sampled_from([(0, None), (1, None), (None, None), (0, "timeout"), (1, "crlf")])


def test_a_tournament_that_was_played(tmp_path: Path) -> None:
    file = write_tournament(tmp_path, 'game = "kalah(2,2)"\nbots = ["first_legal", "greedy", "random"]\n')
    assert invoke("tournament", "run", file, "--out", tmp_path / "out").exit_code == 0
    site = made(tmp_path / "out")
    pages = pages_in(site)
    assert len(pages) == 2 + 3 + 6
    assert broken_links(pages) == []
    index = pages[site / "index.html"]
    assert [row.cells[1] for row in index.rows("standings")] == [
        line.name for line in loaded(tmp_path / "out").table
    ]
    assert "6 games that count" in index.text
    starts = [row.cells[-1] for row in index.rows("times")]
    assert len(starts) == 3
    assert all(start[0].isdigit() for start in starts)  # each bot has read its START


@settings(max_examples=30)
@given(st.data())
def test_lists_agree_with_the_results(data: st.DataObject) -> None:
    """tests/results/test_agreement.py compares the tables of the first page."""
    names = [f"bot {number}" for number in range(data.draw(st.integers(2, 4)))]
    summary = summary_of(names, rounds=data.draw(st.integers(1, 2)))
    records = records_of(summary, lambda _: data.draw(OUTCOMES))
    played = data.draw(st.integers(0, len(records)))
    summary.kept = [GameSummary.of(record, number) for number, record in records[:played]]
    pages = Pages(View(summary, times={record.key: game_times(record) for _, record in records[:played]}))
    index = Page(pages.index())
    table = summary.table

    rows = [(*row.cells[:3], row.cells[3]) for row in Page(pages.games()).rows("games")]
    assert sorted(rows) == sorted(
        (game.key, game.first, game.second, words.result(game)) for game in summary.kept
    )
    faults = sum(int(row.cells[2]) for row in index.rows("faults"))
    assert faults == sum(line.forfeits for line in table)
    for line in table:
        bot = Page(pages.bot(line))
        assert [row.cells[:4] for row in bot.rows("opponents")] == [
            [
                name,
                f"{one.wins} won, {one.draws} drawn, {one.losses} lost",
                f"Points{words.points(one.points)}",
                f"Score %{percent(one.points / one.games)}",
            ]
            for name, one in ((other.name, line.versus.get(other.name)) for other in table)
            if one is not None and one.games
        ]
        assert (len(bot.rows("games")), len(bot.rows("faults"))) == (line.games, line.forfeits)


def test_links_work_for_all_names_of_bots(tmp_path: Path) -> None:
    site = made(write_store(tmp_path / "cup", HOSTILE, some))
    pages = pages_in(site)
    assert broken_links(pages) == []
    assert len({path.name.casefold() for path in (site / "bots").iterdir()}) == len(HOSTILE)
    for path, page in pages.items():
        assert page.tags.count("script") == (3 if path.parent.name == "games" else 1), path
    assert HOSTILE[0] in pages[site / "index.html"].text
    assert "\u202e" not in pages[site / "index.html"].text


def test_file_names_depend_on_no_order() -> None:
    wanted = {"Bot": "Bot", "bot": "bot", "e\u0301": "e\u0301", "\u00e9": "\u00e9", "..": "..", "CON": "CON"}
    files = unique_files(wanted)
    assert files == unique_files(dict(reversed(wanted.items())))
    assert len({name.casefold() for name in files.values()}) == len(wanted)
    assert not any(name.startswith(".") for name in files.values())
    assert files["CON"] == "_CON"
    assert max(len(name.encode()) for name in unique_files({"a": "é" * 300}).values()) <= 100


@pytest.mark.slow
def test_the_same_store_makes_the_same_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one process, again, and with two."""
    directory = mixed(tmp_path)
    alone = files_of(made(directory))
    assert files_of(made(directory)) == alone
    monkeypatch.setattr("tournaments.reporting.site.site.GAMES_PER_PROCESS", 1)
    monkeypatch.setattr("tournaments.reporting.site.site.core_count", lambda: 2)
    assert files_of(made(directory)) == alone


def test_rulings(tmp_path: Path) -> None:
    void = Entry(Action.VOID, "r001-1v2", "the host <slept>", 1, "2026-02-03T04:05:06+00:00")
    gone = Entry(Action.WITHDRAW, "cleo", "it <cheated>", 2, "2026-02-04T04:05:06+00:00", {"annul": True})
    directory = mixed(tmp_path, journal=[void, gone])
    site = made(directory)
    index = page_at(site / "index.html")
    assert [row.cells for row in index.rows("rulings")] == [
        ["2026-02-03 04:05 UTC", "gamer001-1v2", "void", "the host <slept>"],
        ["2026-02-04 04:05 UTC", "cleo", "withdrawn; its games count for nobody", "it <cheated>"],
    ]
    assert {row.cells[0] for row in index.rows("aside")} == set(loaded(directory).rulings.set_aside)
    assert "games/r001-1v2.html" in index.rows("rulings")[0].links
    game = page_at(site / "games" / "r001-1v2.html").text
    assert "void. Reason: the host <slept>" in game
    assert "counts for nobody" in game
    assert broken_links(pages_in(site)) == []


def test_game_pages_are_a_chain(tmp_path: Path) -> None:
    pages = Pages(View(loaded(mixed(tmp_path)))).game_pages()
    assert (pages[0].previous, pages[-1].following) == (None, None)
    for one, other in pairwise(pages):
        assert one.following is not None
        assert other.previous is not None
        assert one.following.href.rpartition("/")[2] == Path(other.file).name
        assert other.previous.href.rpartition("/")[2] == Path(one.file).name


def test_swaps_are_shown_of_games_that_have_them() -> None:
    summary = summary_of(NAMES, rounds=2)
    games = [GameSummary.of(record, number) for number, record in records_of(summary, some)]
    summary.kept = games
    assert "The swap" not in Page(Pages(View(summary)).index()).text
    summary = summary_of(NAMES, rounds=2)
    summary.kept = [
        game._replace(swapped=1 if number < 4 else None, line=str(number))
        for number, game in enumerate(games)
    ]
    swaps = View(summary).swaps
    assert swaps is not None
    assert (swaps.overall.swaps, sum(one.swaps for one in swaps.bots.values())) == pytest.approx((4, 4))
    assert "The swap" in Page(Pages(View(summary)).index()).text


@pytest.mark.parametrize(
    ("games", "sentence"),
    [(0, "No game of 6 was played yet."), (2, "2 of 6 games: this tournament is not over")],
)
def test_an_unfinished_tournament(games: int, sentence: str) -> None:
    summary = summary_of(NAMES)
    summary.kept = [GameSummary.of(record, number) for number, record in records_of(summary)[:games]]
    page = Page(Pages(View(summary)).index())
    assert sentence in page.text
    assert len(page.rows("standings")) == len(NAMES)


def test_one_game_is_not_plural() -> None:
    summary = summary_of(NAMES)
    summary.kept = [GameSummary.of(record, number) for number, record in records_of(summary)[:1]]
    pages = Pages(View(summary))
    texts = [Page(text).text for text in (pages.index(), pages.games(), *map(pages.bot, pages.view.table))]
    assert "1 game that counts" in texts[0]
    assert "1 game" in texts[1]
    assert not [text for text in texts if re.search(r"\b1 (games|moves)\b", text)]


def test_the_tables_of_groups() -> None:
    """During the groups and afterwards; other formats have none."""
    names = ("ada", "bob", "<b>cleo</b>", "dan")
    summary = summary_of(names)
    assert "The groups" not in Page(Pages(View(summary)).index()).text
    plan = replace(summary.plan, format={"kind": "groups", "groups": 2, "advance": 1})
    summary = replace(summary, plan=plan)
    games = [GameSummary.of(record, number) for number, record in records_of(summary)]
    for kept, going in ((games[:1], 0), (games, 2)):
        page = Pages(View(replace(summary, kept=kept))).index()
        groups = page.partition('<section id="groups">')[2].partition("</section>")[0]
        assert groups.count("<h3>Group ") == 2
        assert groups.count("in the final") == going
        assert "<b>" not in groups
        assert all(groups.count(f"{escape(name)}<") == 1 for name in names)


@pytest.mark.parametrize(("points", "games", "step"), [(0, 4, 0), (2, 4, 4), (4, 4, HEAT_STEPS), (0.5, 1, 4)])
def test_heat(points: float, games: int, step: int) -> None:
    assert heat(points, games) == step


def luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2.1)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio (WCAG 2.1)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_on_every_cell(dark: bool) -> None:
    style = (ASSETS / "report.css").read_text(encoding="utf-8")
    colours = re.findall(r"--([\w-]+): (#[0-9a-f]{6})", style)
    named = dict(colours[len(colours) // 2 :] if dark else colours[: len(colours) // 2])
    assert set(named) == {name for name, _ in colours}
    for step in range(HEAT_STEPS + 1):
        assert contrast(named["ink"], named[f"h{step}"]) >= 4.5, step
    for name in ("ink", "soft", "link", "fault", "c0", "c1", "c2", "c3", "c4"):
        assert contrast(named[name], named["ground"]) >= 4.5, name


@pytest.mark.parametrize("points", [0, 0.5, 1, 1.5, 499.5])
def test_points_are_written_with_halves(points: float) -> None:
    assert float(words.points(points).replace("½", ".5")) == points


@pytest.mark.parametrize(
    ("format_table", "text"),
    [
        ({"kind": "round-robin"}, "round-robin; 2 rounds"),
        ({"kind": "groups", "groups": 3}, "groups; groups: 3; 2 rounds in each group"),
        ({"kind": "knockout", "third_place": True}, "knockout; a match for the third place: yes"),
        ({"kind": "sprt", "batch": 16}, "sprt; games in a batch: 16"),
    ],
)
def test_rounds_are_named_for_formats_that_have_a_number_of_them(
    format_table: dict[str, object], text: str
) -> None:
    assert words.format_words(format_table, 2) == text
