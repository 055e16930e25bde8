"""Tables by hand, for both rankings."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.results import MatchResult, MoveRecord, Reason
from tests.builders import make_record, make_summary
from tournaments.analysis.standing import Standing
from tournaments.analysis.standings import standings
from tournaments.analysis.tie_breaks import PRESETS
from tournaments.results.game_summary import GameSummary, fingerprint, line_of

RANKINGS = tuple(PRESETS)

NAMES = ["ann", "bob", "cid"]


def lines(table: Sequence[Standing]) -> list[tuple[int, str, float, int, int, int, int]]:
    """rank, name, points, wins, draws, losses, forfeits."""
    return [(s.rank, s.name, s.points, s.wins, s.draws, s.losses, s.forfeits) for s in table]


@pytest.mark.parametrize("ranking", RANKINGS)
def test_no_games_yet(ranking: str) -> None:
    table = standings(["cid", "ann"], [], ranking)
    assert lines(table) == [(1, "ann", 0, 0, 0, 0, 0), (1, "cid", 0, 0, 0, 0, 0)]
    assert [line.mean_move_ms for line in table] == [None, None]
    assert [line.games for line in table] == [0, 0]


def test_points_by_hand() -> None:
    games = [
        make_summary("ann", "bob", 0),  # ann beats bob from each side
        make_summary("bob", "ann", 1),
        make_summary("ann", "cid", None),
        make_summary("cid", "ann", 0),  # cid beats ann as first
        make_summary("bob", "cid", 0, reason=Reason.TIMEOUT),  # cid forfeits
        make_summary("cid", "bob", None),
    ]
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


def test_points_then_wins() -> None:
    """Two draws are worth a win and a loss, but come behind them."""
    games = [
        make_summary("bob", "cid", 0),
        make_summary("cid", "bob", 0),
        make_summary("ann", "dan", None),
        make_summary("dan", "ann", None),
    ]
    table = standings([*NAMES, "dan"], games, "points")
    assert [(line.rank, line.name) for line in table] == [(1, "bob"), (1, "cid"), (3, "ann"), (3, "dan")]


def test_wins_then_speed_by_hand() -> None:
    """The course's rule: draws count for nothing, equal wins are ranked by the mean time of a move."""
    games = [
        make_summary("ann", "bob", 0, moves=(2, 2), wall_us=(9000, 4000)),
        make_summary("bob", "ann", 0, moves=(8, 8), wall_us=(36_000, 1000)),
        make_summary("cid", "ann", None, moves=(1, 0), wall_us=(5, 0)),
        make_summary("cid", "bob", None, moves=(0, 0), wall_us=(0, 0)),
    ]
    table = standings(NAMES, games, "wins-then-speed")
    # ann: 10 ms in 10 moves; bob: 40 ms in 10 moves; the mean is over all moves, not over games.
    assert [(line.rank, line.name, line.mean_move_ms) for line in table] == [
        (1, "ann", 1.0),
        (2, "bob", 4.0),
        (3, "cid", 0.005),
    ]
    assert [line.name for line in standings(NAMES, games, "points")] == ["ann", "bob", "cid"]


def test_speed_of_a_bot_that_never_moved_is_the_slowest() -> None:
    games = [
        make_summary("ann", "bob", None, moves=(0, 3), wall_us=(0, 3_000_000)),
        make_summary("cid", "bob", None, moves=(0, 3), wall_us=(0, 3_000_000)),
    ]
    table = standings(NAMES, games, "wins-then-speed")
    assert [(line.rank, line.name) for line in table] == [(1, "bob"), (2, "ann"), (2, "cid")]


def test_shared_ranks_leave_a_gap() -> None:
    names = ["a", "b", "c", "d", "e"]
    games = [make_summary("b", "a", 0), make_summary("c", "a", 0), make_summary("d", "e", None)]
    table = standings(names, games, "points")
    assert [(line.rank, line.name) for line in table] == [(1, "b"), (1, "c"), (3, "d"), (3, "e"), (5, "a")]


@pytest.mark.parametrize("reason", Reason)
def test_only_faults_are_forfeits(reason: Reason) -> None:
    table = {
        line.name: line for line in standings(NAMES, [make_summary("ann", "bob", 1, reason=reason)], "points")
    }
    assert table["ann"].forfeits == (reason not in (Reason.SCORE, Reason.TURN_CAP))
    assert table["ann"].losses == 1
    assert table["bob"].forfeits == 0
    assert table["bob"].wins == 1


def test_unknown_ranking() -> None:
    with pytest.raises(
        ValueError, match="no ranking 'elo'; there are points, wins-then-speed, swiss, rating, score"
    ):
        standings(NAMES, [], "elo")


GAMES = st.lists(
    st.tuples(
        st.permutations(NAMES),
        st.none() | st.integers(0, 1),
        st.sampled_from(Reason),
        st.tuples(st.integers(0, 40), st.integers(0, 40)),
    ).map(
        lambda drawn: make_summary(
            drawn[0][0], drawn[0][1], drawn[1], reason=drawn[2], moves=drawn[3], wall_us=drawn[3]
        )
    ),
    max_size=12,
)


@pytest.mark.parametrize("ranking", RANKINGS)
@given(games=GAMES, data=st.data())
def test_order_of_games_and_names_is_irrelevant(
    ranking: str, games: list[GameSummary], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(games))
    names = data.draw(st.permutations(NAMES))
    assert standings(NAMES, games, ranking) == standings(names, shuffled, ranking)


@pytest.mark.parametrize("ranking", RANKINGS)
@given(games=GAMES)
def test_books_balance(ranking: str, games: list[GameSummary]) -> None:
    table = standings(NAMES, games, ranking)
    assert sum(line.points for line in table) == len(games)
    assert sum(line.wins for line in table) == sum(line.losses for line in table)
    assert sum(line.games for line in table) == 2 * len(games)
    ranks = [line.rank for line in table]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1
    for line in table:
        assert line.rank == 1 + sum(other.rank < line.rank for other in table)
        assert line.points == sum(versus.points for versus in line.versus.values())
        assert line.games == sum(versus.games for versus in line.versus.values())


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
    )


def test_a_game_that_a_house_rule_ended_is_no_forfeit() -> None:
    capped = make_summary("ann", "bob", 0, reason=Reason.TURN_CAP)
    lost = standings(["ann", "bob"], [capped], "points")[1]
    assert (lost.name, lost.losses, lost.forfeits) == ("bob", 1, 0)
