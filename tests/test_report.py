"""The report: what its pages say, and that they agree with the results."""

import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import kalarena, write_tournament
from tests.reports import (
    Outcome,
    Page,
    broken_links,
    loaded,
    pages_in,
    records_of,
    summary_of,
    write_store,
)
from tournaments.cli.tournament.report import command
from tournaments.reporting.site import words
from tournaments.reporting.site.addresses import unique_files
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.site import ASSETS
from tournaments.reporting.site.times import game_times
from tournaments.reporting.site.view import HEAT_STEPS, View, heat
from tournaments.reporting.tables import percent
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry

NAMES = ("ada", "bob", "cleo")
HOSTILE = ("<script>alert(1)</script>", "\"'&amp;]]>", "bot", "Bot", "BOT.", "‮evil\u0007", "x" * 200, "con")
OUTCOMES = st.sampled_from([(0, None), (1, None), (None, None), (0, "timeout"), (1, "crlf")])


def report(*arguments: str | os.PathLike[str]) -> Result:
    """Run the command; an error that it did not handle is raised."""
    result = CliRunner().invoke(command, [os.fspath(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def made(directory: Path, *arguments: str) -> Path:
    """A report that must be made."""
    result = report(directory, *arguments)
    assert result.exit_code == 0, result.output
    folder = directory / ("report-anonymous" if "--anonymous" in arguments else "report")
    assert result.stdout.startswith(str(folder / "index.html"))
    return folder


def some(number: int) -> Outcome:
    """Wins, draws and faults."""
    return [(0, None), (1, None), (None, None), (0, "crlf"), (1, "timeout")][number % 5]


def mixed(tmp_path: Path, **options: object) -> Path:
    return write_store(tmp_path / "cup", NAMES, some, rounds=2, **options)  # type: ignore[arg-type]


def files_of(site: Path) -> dict[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_a_tournament_that_was_played(tmp_path: Path) -> None:
    write_tournament(tmp_path, 'game = "kalah(2,2)"\nbots = ["first_legal", "greedy", "random"]\n')
    done = kalarena(tmp_path, "tournament", "run", "cup.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    site = made(tmp_path / "out")
    pages = pages_in(site)
    assert len(pages) == 2 + 3 + 6
    assert broken_links(pages) == []
    index = pages[site / "index.html"]
    assert [row.cells[1] for row in index.rows("standings")] == [
        line.name for line in loaded(tmp_path / "out").table
    ]
    assert "6 games that count" in index.text


@given(st.data())
def test_pages_agree_with_the_results(data: st.DataObject) -> None:
    names = [f"bot {number}" for number in range(data.draw(st.integers(2, 5)))]
    summary = summary_of(names, rounds=data.draw(st.integers(1, 2)))
    records = records_of(summary, lambda _: data.draw(OUTCOMES))
    played = data.draw(st.integers(0, len(records)))
    summary.kept = [GameSummary.of(record, number) for number, record in records[:played]]
    pages = Pages(View(summary, times={record.key: game_times(record) for _, record in records[:played]}))
    index = Page(pages.index())

    standings = index.rows("standings")
    assert [row.cells[1] for row in standings] == [line.name for line in summary.table]
    for row, line in zip(standings, summary.table, strict=True):
        counts = (line.games, line.unique, line.wins, line.draws, line.losses, line.forfeits or "")
        assert row.cells[2:10] == [words.points(line.points), *map(str, counts), percent(line.score)]

    if played:
        check_cross_table(index, summary)
    check_games(Page(pages.games()), summary)
    check_faults(index, summary)
    for line in summary.table:
        bot = Page(pages.bot(line))
        met = [row.cells[:6] for row in bot.rows("opponents")]
        assert met == [
            [
                *(name, words.points(one.points), str(one.wins), str(one.draws), str(one.losses)),
                percent(one.points / one.games),
            ]
            for name, one in ((other.name, line.versus.get(other.name)) for other in summary.table)
            if one is not None and one.games
        ]
        assert len(bot.rows("games")) == line.games
        assert len(bot.rows("faults")) == line.forfeits


def check_cross_table(index: Page, summary: TournamentResults) -> None:
    rows = index.rows("cross")
    for row, line in zip(rows, summary.table, strict=True):
        cells = [line.versus.get(other.name) for other in summary.table]
        assert row.cells[2:-1] == [words.points(v.points) if v and v.games else "" for v in cells]
        assert row.cells[-1] == words.points(line.points)


def check_games(page: Page, summary: TournamentResults) -> None:
    rows = [(row.cells[0], *row.cells[1:4]) for row in page.rows("games")]
    assert sorted(rows) == sorted(
        (game.key, game.first, game.second, words.result(game)) for game in summary.kept
    )


def check_faults(index: Page, summary: TournamentResults) -> None:
    told = sum(int(row.cells[2]) for row in index.rows("faults"))
    assert told == sum(line.forfeits for line in summary.table)


def test_links_lead_somewhere_whatever_bots_are_called(tmp_path: Path) -> None:
    directory = write_store(tmp_path / "cup", HOSTILE, some)
    site = made(directory)
    pages = pages_in(site)
    assert broken_links(pages) == []
    assert len(list((site / "bots").iterdir())) == len(HOSTILE)
    assert len({path.name.casefold() for path in (site / "bots").iterdir()}) == len(HOSTILE)
    for path, page in pages.items():
        ours = {"index.html": 1, "games.html": 1}.get(path.name, 0)
        assert page.scripts == (3 if path.parent.name == "games" else ours), path
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


def test_the_same_store_makes_the_same_report(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    first = files_of(made(directory))
    assert files_of(made(directory)) == first


def test_several_processes_make_the_same_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = mixed(tmp_path)
    alone = files_of(made(directory))
    monkeypatch.setattr("tournaments.reporting.site.site.GAMES_PER_PROCESS", 1)
    monkeypatch.setattr("tournaments.reporting.site.site.core_count", lambda: 2)
    assert files_of(made(directory)) == alone


def test_rulings(tmp_path: Path) -> None:
    void = Entry(Action.VOID, "r001-1v2", "the host <slept>", 1, "2026-02-03T04:05:06+00:00")
    gone = Entry(Action.WITHDRAW, "cleo", "it <cheated>", 2, "2026-02-04T04:05:06+00:00", {"annul": True})
    directory = mixed(tmp_path, journal=[void, gone])
    site = made(directory)
    index = Page((site / "index.html").read_text(encoding="utf-8"))
    assert [row.cells for row in index.rows("rulings")] == [
        ["2026-02-03 04:05 UTC", "gamer001-1v2", "void", "the host <slept>"],
        ["2026-02-04 04:05 UTC", "cleo", "withdrawn; its games count for nobody", "it <cheated>"],
    ]
    summary = loaded(directory)
    assert {row.cells[0] for row in index.rows("aside")} == set(summary.rulings.set_aside)
    assert "games/r001-1v2.html" in index.rows("rulings")[0].links
    game = Page((site / "games" / "r001-1v2.html").read_text(encoding="utf-8")).text
    assert "void. the host <slept>" in game
    assert "counts for nobody" in game
    assert broken_links(pages_in(site)) == []


def test_game_pages_are_a_chain(tmp_path: Path) -> None:
    site = made(mixed(tmp_path))
    pages = Pages(View(loaded(tmp_path / "cup"))).game_pages()
    assert pages[0].previous is None
    assert pages[-1].following is None
    for one, other in pairwise(pages):
        assert one.following is not None
        assert other.previous is not None
        assert site / "games" / one.following.href.rpartition("/")[2] == site / other.file


def test_swaps_are_told_of_games_that_have_them() -> None:
    summary = summary_of(NAMES, rounds=2)
    games = [GameSummary.of(record, number) for number, record in records_of(summary, some)]
    summary.kept = games
    assert View(summary).swaps is None
    assert "The swap" not in Page(Pages(View(summary)).index()).text

    summary = summary_of(NAMES, rounds=2)
    summary.kept = [
        replace(game, swapped=1 if number < 4 else None, line=str(number))
        for number, game in enumerate(games)
    ]
    view = View(summary)
    assert view.swaps is not None
    assert view.swaps.overall.swaps == pytest.approx(4)
    assert sum(swaps.swaps for swaps in view.swaps.bots.values()) == pytest.approx(4)


def test_a_tournament_without_games(tmp_path: Path) -> None:
    summary = summary_of(NAMES)
    page = Page(Pages(View(summary)).index())
    assert f"No game of {summary.total} was played yet." in page.text
    assert len(page.rows("standings")) == len(NAMES)


def test_an_unfinished_tournament_says_so() -> None:
    summary = summary_of(NAMES)
    summary.kept = [GameSummary.of(record, number) for number, record in records_of(summary)[:2]]
    assert "2 of 6 games: this tournament is not over" in Page(Pages(View(summary)).index()).text


@pytest.mark.parametrize(("points", "games", "step"), [(0, 4, 0), (2, 4, 4), (4, 4, HEAT_STEPS), (0.5, 1, 4)])
def test_heat(points: float, games: int, step: int) -> None:
    assert heat(points, games) == step


def luminance(colour: str) -> float:
    """WCAG 2.1, relative luminance."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2.1, contrast ratio."""
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


@settings(max_examples=25)
@given(st.floats(0, 500).map(lambda value: round(value * 2) / 2))
def test_points_are_written_as_people_do(points: float) -> None:
    text = words.points(points)
    assert float(text.replace("½", ".5")) == points
