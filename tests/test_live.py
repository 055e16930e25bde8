"""What people see of a running tournament: which view, plain lines, the terminal's live screen."""

import io
from pathlib import Path
from typing import Any

import pytest
import trio
from rich.console import Console, ConsoleDimensions

from referee.judge.results import Reason
from tests.builders import lost_by, make_record, write_tournament
from tournaments.cli.tournament.live import (
    PLAIN_FAULTS,
    LiveScreen,
    PlainLines,
    View,
    open_view,
    results_of,
)
from tournaments.config.load import load_tournament
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


def test_plain_lines_tell_every_tenth(run: Run) -> None:
    view, said = lines_of(run)
    for pairing in run.due():
        play(run, view, pairing)
    assert said == [f"Cup: {done} of 30 games" for done in range(3, 31, 3)]


def test_plain_lines_tell_faults_but_not_without_end(run: Run) -> None:
    view, said = lines_of(run)
    lost = [pairing for pairing in run.due() if 0 in (pairing.first, pairing.second)] * 2
    for pairing in lost:
        seat = (pairing.first, pairing.second).index(0)
        record = make_record(
            pairing.key,
            NAMES[pairing.first],
            NAMES[pairing.second],
            result=lost_by(Reason.TIMEOUT, seat, "too\nslow"),
        )
        view.ended(pairing, GameSummary.of(record, pairing.round))
    assert len(lost) > PLAIN_FAULTS + 1
    assert said[:PLAIN_FAULTS] == [rf"Cup: {pairing.key}: too\nslow" for pairing in lost[:PLAIN_FAULTS]]
    assert said[PLAIN_FAULTS:] == ["Cup: further faults of first_legal are in the report"]


def test_plain_lines_tell_on_which_host_a_fault_was(run: Run) -> None:
    view, said = lines_of(run)
    slow: dict[str, Any] = {"result": lost_by(Reason.TIMEOUT, 0, "too slow"), "host": "node-7"}
    for speed in (1e6, None):
        game = PackedGame.of(make_record("g1", *NAMES[:2], host_speed=speed, **slow), 1)
        view.ended(run.due()[0], game.summary, game.host)
    assert said == ["Cup: g1 on node-7: too slow", "Cup: g1: too slow"]  # the other was played here


def test_plain_lines_tell_what_could_not_be_played(run: Run) -> None:
    view, said = lines_of(run)
    view.unplayed(run.due()[0], "the host broke down")
    assert said == [f"Cup: {run.due()[0].key} could not be played: the host broke down"]
    for _ in range(100):
        view.unplayed(run.due()[0], "the host broke down")
    assert len(said) == PLAIN_FAULTS


def test_nobody_reading_stops_no_tournament(run: Run) -> None:
    tries: list[str] = []

    def broken(line: str) -> None:
        tries.append(line)
        raise BrokenPipeError

    view = PlainLines(run, broken)
    for pairing in run.due():
        play(run, view, pairing)
    assert tries == ["Cup: 3 of 30 games"]


def test_which_view(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[type] = []
    for shown, variables in (
        (False, {"FORCE_COLOR": "1", "TERM": "xterm"}),
        (True, {"FORCE_COLOR": "1", "TERM": "xterm"}),
        (True, {"FORCE_COLOR": "1", "TERM": "dumb"}),
        (True, {"TERM": "xterm"}),
    ):
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with open_view(run, shown=shown) as view:
            found.append(type(view))
    assert found == [View, LiveScreen, PlainLines, PlainLines]


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


def test_the_results_of_a_run_is_that_of_its_store(run: Run, tmp_path: Path) -> None:
    view, _ = lines_of(run)
    for pairing in run.due()[:7]:
        play(run, view, pairing)
    again = Run(run.tournament, run.store)
    assert results_of(again) == TournamentResults.load(run.store)
