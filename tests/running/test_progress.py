"""Progress of a running tournament: counts, pace, games in progress, the latest faults."""

import pytest

from referee.judge.results import Reason
from tests.support.builders import make_summary
from tournaments.cli.tournament.progress import (
    REMEMBERED_FAULTS,
    WINDOW_GAMES,
    WINDOW_S,
    Pace,
    Playing,
    Progress,
    Snapshot,
    compute,
)
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.running.runner import RunReport


def by_name(view: Snapshot) -> dict[str, dict[str, str]]:
    head, rows = view.table
    return {row[1]: dict(zip(head, row, strict=True)) for row in rows}


def test_the_pace_is_that_of_the_latest_games() -> None:
    pace = Pace(100.0)
    assert pace.per_second(100.0) is None
    for number in range(1, 401):  # 4 a second for 100 seconds
        pace.ended(100 + number / 4)
    assert pace.per_second(200.0) == pytest.approx(4.0)
    for number in range(1, 61):  # then 1 a second
        pace.ended(200.0 + number)
    assert pace.per_second(260.0) == pytest.approx(1.0)
    assert pace.per_second(260.0 + WINDOW_S) < 1.0  # type: ignore[operator]  # a pause
    slow = Pace(0.0)
    for number in range(1, 101):
        slow.ended(60.0 * number)
    assert slow.per_second(6000.0) == pytest.approx(1 / 60)
    assert slow.per_second(6000.0 + 60 * WINDOW_GAMES) == pytest.approx(1 / 120)


def test_progress_counts_each_game_and_computes_ratings_on_request() -> None:
    summary = TournamentResults("Cup", "kalah(6,4)", "2 s", ["one", "two"], "points")
    report = RunReport(total=10, before=0)
    progress = Progress(summary, report, 50.0)
    first = progress.snapshot(50.0)
    assert (first.done, first.total, first.round, first.per_second, first.left_s) == (0, 10, 0, None, None)
    progress.started("r001-1v2", 1, "one", "two", 50.0)
    progress.started("r001-2v1", 1, "two", "one", 51.5)
    assert progress.snapshot(53.0).playing == (
        Playing("r001-1v2", "one", "two", 3),
        Playing("r001-2v1", "two", "one", 1),
    )
    report.played = 1
    progress.ended(make_summary("one", "two", 0, key="r001-1v2"), 54.0)
    view = progress.snapshot(54.0)
    assert [game.key for game in view.playing] == ["r001-2v1"]
    assert (view.done, view.per_second, view.elapsed_s, view.left_s, view.places) == (1, 0.25, 4, 36, 2)
    assert (by_name(view)["one"]["points"], by_name(view)["one"]["rating"]) == ("1", "")
    computed = progress.results()
    compute(computed)
    progress.take(computed)
    assert int(by_name(progress.snapshot(54.0))["one"]["rating"]) > 0
    assert len(progress.results().games) == 1


def test_the_total_changes_and_a_game_is_retried() -> None:
    summary = TournamentResults("Cup", "kalah(6,4)", "2 s", ["one", "two"], "points")
    report = RunReport(total=10, before=4)
    progress = Progress(summary, report, 0.0)
    progress.started("r007-1v2", 7, "one", "two", 0.0)
    progress.started("r007-1v2", 7, "one", "two", 8.0, "node\x1b[2J17")
    assert progress.snapshot(9.0).playing == (Playing("r007-1v2", "one", "two", 1, r"node\x1b[2J17"),)
    report.total = 16
    progress.unplayed("r007-1v2", "the sandbox\x1b[2J broke")
    view = progress.snapshot(9.0)
    assert (view.done, view.total, view.round, view.playing) == (4, 16, 7, ())
    assert view.faults == (r"r007-1v2 could not be played: the sandbox\x1b[2J broke",)


def test_the_latest_faults_are_remembered_and_printable() -> None:
    progress = Progress(TournamentResults("C", "kalah", "", ["one", "two"], "points"), RunReport(9, 0), 0.0)
    for number in range(2 * REMEMBERED_FAULTS):
        fault = make_summary("one", "two", 1, reason=Reason.TIMEOUT, key=f"g{number}", detail="a\nb\x1b[31m")
        progress.ended(fault, 1.0)
    faults = progress.snapshot(1.0).faults
    assert len(faults) == REMEMBERED_FAULTS
    assert faults[-1] == r"g19: a\nb\x1b[31m"
    progress.ended(fault, 1.0, "node\x1b-7")
    assert progress.snapshot(1.0).faults[-1] == r"g19 on node\x1b-7: a\nb\x1b[31m"
