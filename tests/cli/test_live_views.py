"""Views of a running tournament: plain lines, the live screen, and its layout in every size."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions

from referee.judge.results import Reason
from tests.support.builders import lost_by, make_record, make_summary, write_tournament
from tournaments.cli.tournament.live import (
    PLAIN_FAULTS,
    LiveScreen,
    PlainLines,
    View,
    open_view,
    results_of,
)
from tournaments.cli.tournament.progress import Playing, Snapshot
from tournaments.cli.tournament.screen import pace_text, screen, time_text
from tournaments.config.load import load_tournament
from tournaments.reporting.tables import GAP, fitting
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.store import Store
from tournaments.running.runner import Run
from tournaments.schedule.pairing import Pairing


@pytest.fixture
def run(tmp_path: Path) -> Any:
    path = write_tournament(
        tmp_path,
        'name = "Cup"\nrounds = 5\nbots = ["first_legal", "greedy", "random:7"]\n[time]\nmove_s = 2.0\n',
    )
    with Store(tmp_path / "results.db") as store:
        tournament = load_tournament(path)
        store.claim("Cup", TournamentResults.of(tournament).config(), tournament.identity())
        yield Run(tournament, store)


NAMES = ["first_legal", "greedy", "random:7"]


def play(run: Run, view: View, pairing: Pairing, **changes: Any) -> None:
    record = make_record(pairing.key, NAMES[pairing.first], NAMES[pairing.second], **changes)
    view.started(pairing, pairing.key)
    run.store.add(record, pairing.round, pairing.pair)
    game = GameSummary.of(record, pairing.round, pairing.pair)
    run.ended(pairing, game)
    view.ended(pairing, game)


def lines_of(run: Run) -> tuple[PlainLines, list[str]]:
    said: list[str] = []
    return PlainLines(run, said.append), said


def test_plain_lines_show_every_tenth_of_the_games(run: Run) -> None:
    view, said = lines_of(run)
    for pairing in run.due():
        play(run, view, pairing)
    assert said == [f"Cup: {done} of 30 games" for done in range(3, 31, 3)]
    assert results_of(Run(run.tournament, run.store)) == TournamentResults.load(run.store)


def test_plain_lines_show_a_limited_number_of_faults(run: Run) -> None:
    """With the host, if the game was not played here."""
    view, said = lines_of(run)
    pairing = run.due()[0]
    slow: dict[str, Any] = {"result": lost_by(Reason.TIMEOUT, 0, "too\nslow"), "host": "node-7"}
    for speed in (1e6, None):
        game = PackedGame.of(make_record("g1", *NAMES[:2], host_speed=speed, **slow), 1)
        view.ended(pairing, game.summary, game.host)
    assert said == [r"Cup: g1 on node-7: too\nslow", r"Cup: g1: too\nslow"]
    for _ in range(PLAIN_FAULTS):
        view.ended(pairing, game.summary)
    assert said[2:] == [r"Cup: g1: too\nslow"] * (PLAIN_FAULTS - 2) + [
        "Cup: further faults of first_legal are in the report"
    ]
    said.clear()
    for _ in range(100):
        view.unplayed(pairing, "the host broke down")
    assert said == [f"Cup: {pairing.key} could not be played: the host broke down"] * PLAIN_FAULTS


def test_a_reader_that_has_gone_stops_no_tournament(run: Run) -> None:
    tries: list[str] = []

    def broken(line: str) -> None:
        tries.append(line)
        raise BrokenPipeError

    view = PlainLines(run, broken)
    for pairing in run.due():
        play(run, view, pairing)
    assert tries == ["Cup: 3 of 30 games"]


@pytest.mark.parametrize(
    ("shown", "variables", "kind"),
    [
        (False, {"FORCE_COLOR": "1", "TERM": "xterm"}, View),
        (True, {"FORCE_COLOR": "1", "TERM": "xterm"}, LiveScreen),
        (True, {"FORCE_COLOR": "1", "TERM": "dumb"}, PlainLines),
        (True, {"TERM": "xterm"}, PlainLines),
    ],
)
def test_the_view_depends_on_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, shown: bool, variables: dict[str, str], kind: type[View]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with open_view(run, shown=shown) as view:
        assert type(view) is kind


class Clock:
    """Stands still."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_the_live_screen_draws_what_happens_and_leaves_nothing(run: Run) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, height=24, force_terminal=True, color_system=None)
    due = run.due()
    clock = Clock()
    live = LiveScreen(run, console, clock)

    async def newly_drawn() -> str:
        before = len(out.getvalue())
        await live.redraw()
        return out.getvalue()[before:]

    with live.on():
        await live.recompute()
        play(run, live, due[0])
        clock.now += 5
        text = await newly_drawn()
        assert "1 of 30 games  12.0 games/min  0:05 elapsed  2:25 left" in text
        assert await newly_drawn() == ""  # nothing is new
        live.started(due[1], due[1].key)
        play(run, live, due[2], result=lost_by(Reason.TIMEOUT, 0, "it thought too long"))
        live.unplayed(due[3], "no room")
        clock.now += 7
        text = await newly_drawn()
        assert "2 of 30 games" in text
        assert f"{due[1].key}  {NAMES[due[1].first]} v {NAMES[due[1].second]}  for 0:07" in text
        assert f"{due[2].key}: it thought too long" in text
        assert f"{due[3].key} could not be played: no room" in text
        assert " to " not in text  # no interval yet
        await live.recompute()
        assert " to " in await newly_drawn()
        console.size = ConsoleDimensions(60, 20)
        assert "\x1b[2J" in await newly_drawn()  # a terminal has folded the lines that were too long for it
        drawn_so_far = len(out.getvalue())
    assert "\x1b[2K" in out.getvalue()[drawn_so_far:]  # lines are erased at the end
    assert "\x1b[?25h" in out.getvalue()[drawn_so_far:]  # and the cursor is back


async def test_a_terminal_that_has_gone_stops_no_tournament(run: Run) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(5, "Input/output error")

    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    live = LiveScreen(run, console, Clock())
    with live.on():
        console.file = Gone()
        with trio.fail_after(60):
            await live.keep_up()
        play(run, live, run.due()[0])
        with pytest.raises(OSError, match="Input/output"):
            await live.redraw()


# The screen, pure


HEAD = ["rank", "name", "points", "played", "unique", "wins", "draws", "losses", "forfeits", "rating"]
HEAD += ["95 % interval"]
CONCLUSION = (
    "The test goes on: it is not known yet which of the two is stronger (LLR 1.25, bounds -2.94 and 2.94)"
)


def snapshot(bots: int = 6, playing: int = 2, faults: int = 0, **changes: Any) -> Snapshot:
    rows = []
    for place in range(1, bots + 1):
        counts = [str(100 - place), "120", "99", "60", "3", "57", "2"]
        rows.append([str(place), f"bot-{place:02d}", *counts, str(500 - 30 * place), "-1200 to 1300"])
    view = Snapshot(
        name="Cup",
        about="kalah(6,4)",
        done=30,
        total=300,
        round=3,
        per_second=12.34,
        elapsed_s=41,
        left_s=3700,
        table=(HEAD, rows),
        playing=[Playing(f"r003-{n}v9", f"one-{n}", f"two-{n}", 7 * n) for n in range(playing)],
        places=playing,
        faults=[f"r00{n}-1v2: bot-01 lost: {'it said something odd ' * 20}" for n in range(faults)],
        conclusion="",
    )
    return replace(view, **changes)


def drawn(view: Snapshot, width: int, height: int, most_playing: int = 4) -> list[str]:
    """The lines of a screen of this size, which has to hold them."""
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system=None)
    console.print(screen(view, width, height, most_playing))
    lines = out.getvalue().removesuffix("\n").split("\n") if out.getvalue() else []
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    return [line.rstrip() for line in lines]


def test_a_small_tournament_on_a_small_terminal() -> None:
    lines = drawn(snapshot(faults=1), 80, 23)
    assert lines[0] == "Cup  kalah(6,4)  round 3"
    assert lines[1].endswith("30 of 300 games  12.3 games/s  0:41 elapsed  1:01:40 left")
    assert lines[2] == ""
    assert lines[3] == "rank  name    points  played  unique  wins  forfeits  rating  95 % interval"
    assert lines[4] == "   1  bot-01      99     120      99    60         2     470  -1200 to 1300"
    assert lines[9].split()[:2] == ["6", "bot-06"]
    assert lines[10] == ""
    assert lines[11].startswith("r000-1v2: bot-01 lost: it said")
    assert lines[11].endswith("…")
    assert lines[12:] == ["r003-0v9  one-0 v two-0  for 0:00", "r003-1v9  one-1 v two-1  for 0:07"]


def test_games_under_way_and_long_names() -> None:
    rows = snapshot(bots=2).table[1]
    rows[0][1], rows[1][1] = "x" * 60, "名" * 20
    lines = drawn(snapshot(playing=10, table=(HEAD, rows)), 80, 30)
    shown = [line for line in lines if "to 1300" in line]
    assert len(shown) == 2
    assert "x" * 25 + "…" in shown[0]
    assert cell_len(shown[0]) == cell_len(shown[1])
    assert lines[-4:] == [
        *(f"r003-{n}v9  one-{n} v two-{n}  for {time_text(7 * n)}" for n in range(3)),
        "and 7 more games",
    ]
    playing = [Playing("r003-1v9", "one", "two", 7, "node17"), Playing("r003-2v9", "three", "four", 0)]
    lines = drawn(replace(snapshot(), playing=playing), 80, 23)
    assert "r003-1v9  one v two  for 0:07 on node17" in lines
    assert "r003-2v9  three v four  for 0:00" in lines


def test_durations_and_paces() -> None:
    times = {0: "0:00", 59: "0:59", 3599: "59:59", 3600: "1:00:00", 360_061: "100:01:01"}
    assert {seconds: time_text(seconds) for seconds in times} == times
    paces = {281.4: "281 games/s", 1.0: "1.0 games/s", 0.5: "30.0 games/min", 0.01: "36.0 games/h"}
    assert {pace: pace_text(pace) for pace in (*paces, 1e-5)} == paces | {1e-5: "0.0 games/h"}


def test_before_the_first_game_nothing_is_estimated() -> None:
    view = snapshot(playing=0, done=0, round=0, per_second=None, left_s=None, elapsed_s=0)
    lines = drawn(view, 80, 23)
    assert lines[0] == "Cup  kalah(6,4)"
    assert lines[1].endswith("0 of 300 games  0:00 elapsed")


def test_forty_bots_in_a_window_of_forty_lines() -> None:
    """The best of them; faults, and what is played, still have their lines."""
    lines = drawn(snapshot(bots=40, playing=4, faults=9, conclusion=CONCLUSION), 120, 40)
    assert len(lines) == 40
    bots = [line.split()[1] for line in lines if "to 1300" in line]
    assert bots == [f"bot-{place:02d}" for place in range(1, len(bots) + 1)]
    assert len(bots) >= 20
    assert f"and {40 - len(bots)} more" in lines
    assert [line[:8] for line in lines if "lost" in line] == ["r006-1v2", "r007-1v2", "r008-1v2"]
    assert sum(" v " in line for line in lines) == 4
    assert lines[-1] == CONCLUSION


def test_a_wide_screen_has_the_rest_beside_the_table() -> None:
    lines = drawn(snapshot(bots=40, playing=4, faults=9), 200, 49)
    table = [line for line in lines if "to 1300" in line]
    assert len(table) == 40
    assert "r003-0v9  one-0 v two-0  for 0:00" in lines[3]
    assert sum("lost" in line for line in lines) == 9
    assert {line.index("r00") for line in lines if "r00" in line} == {lines[3].index("r003")}


@pytest.mark.parametrize("width", [1, 10, 20, 40, 79, 80, 100, 160, 200, 300])
@pytest.mark.parametrize("height", [0, 1, 2, 3, 6, 7, 8, 10, 20, 24, 40, 50])
def test_it_fits_into_any_screen(width: int, height: int) -> None:
    """``drawn`` asserts it; whatever the size, the numbers come before the rest."""
    view = snapshot(bots=40, playing=9, faults=9, conclusion=CONCLUSION)
    for shown in (view, replace(view, faults=[], playing=[], places=0), snapshot(bots=2)):
        lines = drawn(shown, width, height)
        assert bool(lines) == (height > 0)
        if height and width >= 80:
            assert any("30 of 300 games" in line for line in lines)
        if height >= 8 and width >= 40:
            assert any("bot-01 " in line for line in lines)


def test_what_is_below_does_not_jump_when_a_game_ends() -> None:
    busy, idle = snapshot(playing=4, faults=2), snapshot(playing=1, faults=2, places=4)
    assert len(drawn(busy, 80, 24)) == 17
    assert drawn(idle, 80, 24)[:14] == drawn(busy, 80, 24)[:14]


# Columns


def test_a_narrow_table_goes_without_what_follows_from_others() -> None:
    head = [*HEAD[:9], "buchholz", *HEAD[9:]]
    cells = (head, [["1", "bot", *["10"] * 7, "7.5", "100", "50 to 150"]])
    widest = sum(map(len, head)) + GAP * (len(head) - 1)
    assert fitting(cells, widest) == cells
    left_out: list[str] = []
    for width in range(widest, 0, -1):
        fit = fitting(cells, width)
        assert sum(map(len, fit[0])) + GAP * (len(fit[0]) - 1) <= width or fit[0] == [
            "rank",
            "name",
            "points",
        ]
        assert fit[1] == [[cells[1][0][head.index(name)] for name in fit[0]]]
        left_out += [name for name in head if name not in (*fit[0], *left_out)]
    assert left_out == [
        *("draws", "losses", "unique", "wins", "forfeits", "played", "buchholz", "95 % interval", "rating")
    ]


def test_the_final_table_fits_the_terminal() -> None:
    games = [make_summary("one", "two", 0, key=f"r{n:03d}-1v2") for n in range(3)]
    summary = TournamentResults("Cup", "kalah(6,4)", "2 s", ["one", "two"], "points", kept=games)
    whole = summary.render("text")
    assert summary.render("text", 200) == whole
    head = whole.split("\n")[2]
    without_cross = summary.render("text", len(head) - 1)
    assert "cross table is too wide for this terminal" in without_cross
    assert "draws" in without_cross
    narrow = summary.render("text", 50)
    assert "draws" not in narrow
    assert "all columns" in narrow
    assert all(len(line) <= 50 for line in narrow.split("\n")[2:4])
