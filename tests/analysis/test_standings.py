"""Standings by hand: points, ranks, forfeits, and the summaries from which tables are made."""

from collections.abc import Sequence
from math import inf

import pytest

from referee.judge.record_rows import MoveRecord
from referee.judge.results import MatchResult, Reason
from tests.analysis.games import games_of
from tests.support.builders import make_record, make_summary
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import Tally
from tournaments.analysis.tie_breaks import PRESETS
from tournaments.results.game_summary import GameSummary, fingerprint, line_of

NAMES = ["ann", "bob", "cid"]


def standings(names: Sequence[str], games: Sequence[GameSummary], ranking: str) -> list[Standing]:
    return Tally(names, games).table(ranking)


def lines(table: Sequence[Standing]) -> list[tuple[int, str, float, int, int, int, int]]:
    """Return rank, name, points, wins, draws, losses and forfeits of each bot."""
    return [(s.rank, s.name, s.points, s.wins, s.draws, s.losses, s.forfeits) for s in table]


@pytest.mark.parametrize("ranking", PRESETS)
def test_before_the_first_game(ranking: str) -> None:
    table = standings(["cid", "ann"], [], ranking)
    assert lines(table) == [(1, "ann", 0, 0, 0, 0, 0), (1, "cid", 0, 0, 0, 0, 0)]
    assert [(line.mean_move_ms, line.games) for line in table] == [(None, 0), (None, 0)]


@pytest.mark.parametrize(("low", "high", "has"), [(1, 9, True), (-inf, 9, False), (1, inf, False)])
def test_an_interval_has_two_finite_ends(low: float, high: float, has: bool) -> None:
    assert Estimate(5.0, low, high).has_interval is has


def test_points_by_hand() -> None:
    games = games_of("ann>bob ann=cid cid>ann cid=bob")
    games.append(make_summary("bob", "ann", 1))
    games.append(make_summary("bob", "cid", 0, reason=Reason.TIMEOUT))
    table = standings(NAMES, games, "points")
    assert lines(table) == [
        (1, "ann", 2.5, 2, 1, 1, 0),
        (2, "cid", 2.0, 1, 2, 1, 1),
        (3, "bob", 1.5, 1, 1, 2, 0),
    ]
    ann = table[0]
    assert (ann.versus["bob"].points, ann.versus["bob"].games) == (2, 2)
    assert (ann.versus["cid"].wins, ann.versus["cid"].draws, ann.versus["cid"].losses) == (0, 1, 1)
    assert "ann" not in ann.versus


@pytest.mark.parametrize(
    ("games", "expected"),
    [
        # Two draws are worth a win and a loss, but come behind them.
        ("bob>cid cid>bob ann=dan dan=ann", [(1, "bob"), (1, "cid"), (3, "ann"), (3, "dan")]),
        # A shared rank leaves a gap.
        ("bob>ann cid>ann dan=eve", [(1, "bob"), (1, "cid"), (3, "dan"), (3, "eve"), (5, "ann")]),
    ],
)
def test_shared_ranks(games: str, expected: list[tuple[int, str]]) -> None:
    table = standings([name for _, name in expected], games_of(games), "points")
    assert [(line.rank, line.name) for line in table] == expected


def test_wins_then_speed_by_hand() -> None:
    """The course's rule: draws count for nothing, equal wins are ranked by the mean time of a move."""
    games = [
        make_summary("ann", "bob", 0, moves=(2, 2), wall_us=(9000, 4000)),
        make_summary("bob", "ann", 0, moves=(8, 8), wall_us=(36_000, 1000)),
        make_summary("cid", "ann", None, moves=(1, 0), wall_us=(5, 0)),
        make_summary("dan", "bob", None, moves=(0, 0), wall_us=(0, 0)),
        make_summary("eve", "bob", None, moves=(0, 0), wall_us=(0, 0)),
    ]
    table = standings([*NAMES, "dan", "eve"], games, "wins-then-speed")
    # ann: 10 ms in 10 moves; bob: 40 ms in 10 moves; the mean is over all moves, not over games.
    assert [(line.rank, line.name, line.mean_move_ms) for line in table] == [
        (1, "ann", 1.0),
        (2, "bob", 4.0),
        (3, "cid", 0.005),
        (4, "dan", None),
        (4, "eve", None),
    ]


@pytest.mark.parametrize("reason", Reason)
def test_only_faults_are_forfeits(reason: Reason) -> None:
    """The end by a house rule, the cap of turns, is none."""
    winner, loser = standings(["ann", "bob"], [make_summary("ann", "bob", 1, reason=reason)], "points")
    assert (winner.name, winner.wins, winner.forfeits) == ("bob", 1, 0)
    assert (loser.losses, loser.forfeits) == (1, reason not in (Reason.SCORE, Reason.TURN_CAP))


def test_summary_of_a_record() -> None:
    record = make_record(
        "r003-1v2",
        moves=[MoveRecord(0, "1", 10, 10), MoveRecord(0, "2", 20, 20), MoveRecord(1, "3", 400, 400)],
        result=MatchResult(1, Reason.EXIT, "it ended", None, "killed"),
    )
    assert GameSummary.of(record, 3) == GameSummary(
        key="r003-1v2",
        round=3,
        first="one",
        second="two",
        winner=1,
        reason=Reason.EXIT,
        fault="killed",
        detail="it ended",
        score=None,
        moves=(2, 1),
        wall_us=(30, 400),
        charged_us=(30, 400),
        sandbox="",
        fingerprint=fingerprint(record),
        line=line_of(record.game, record.opening, ["1", "2", "3"]),
        deficit_permille=0,
    )
