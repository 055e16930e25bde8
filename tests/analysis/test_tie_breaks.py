"""Tie-breaks: each criterion by hand and by published examples, and properties of all rankings."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.results import Reason
from tests.analysis.games import games_of
from tests.support.builders import make_summary
from tests.support.paths import TEST_DATA
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import Tally
from tournaments.analysis.tie_breaks import CRITERIA, PRESETS, criteria_of, head_to_head
from tournaments.results.game_summary import GameSummary

DATA = TEST_DATA / "rankings"
NAMES = ["ann", "bob", "cid", "dan"]


def ranks(table: Sequence[Standing]) -> dict[str, int]:
    return {line.name: line.rank for line in table}


def values(table: Sequence[Standing], criterion: str) -> dict[str, float | None]:
    return {line.name: line.criteria[criterion] for line in table}


def table_of(games: str, ranking: str | Sequence[str], **more: Any) -> list[Standing]:
    return Tally(NAMES, games_of(games)).table(ranking, **more)


# Head-to-head


@pytest.mark.parametrize(
    ("games", "points", "expected"),
    [
        # Two of equal points: ann beat bob, and so on.
        ("ann>bob bob>cid bob>dan ann>cid dan>ann", [2, 2, 0, 1], [1, 2, 4, 3]),
        # Three with two points each; dan is not among them, whatever it won against them.
        ("ann>bob ann>cid bob>cid bob>dan cid>dan cid>dan dan>ann", [2, 2, 2, 1], [1, 2, 3, 4]),
        # A circle of three stays level.
        ("ann>bob bob>cid cid>ann", [1, 1, 1, 0], [1, 1, 1, 4]),
        # Not all have met: ann beat bob, but cid, level with both, met none of them.
        ("ann>bob bob>dan cid>dan", [1, 1, 1, 0], [1, 1, 1, 4]),
        # They met unequally often.
        ("ann>bob ann>bob bob>cid bob>cid cid>ann cid>dan", [2, 2, 2, 0], [1, 1, 1, 4]),
        # Points separate ann from bob and cid, and these two are then compared with each other alone.
        ("ann=bob bob>cid cid>ann ann>dan dan=bob dan=cid cid=dan", [1.5, 2, 2, 1.5], [3, 1, 2, 4]),
    ],
)
def test_head_to_head(games: str, points: list[float], expected: list[int]) -> None:
    table = table_of(games, ["points", "head-to-head"])
    found = {line.name: (line.points, line.rank) for line in table}
    assert [found[name][0] for name in NAMES] == points
    assert [found[name][1] for name in NAMES] == expected


def test_head_to_head_is_zero_where_not_all_have_met() -> None:
    table = table_of("ann>bob bob>dan cid>dan", ["points", "head-to-head"])
    assert values(table, "head-to-head") == {"ann": 0.0, "bob": 0.0, "cid": 0.0, "dan": None}


# Published examples


def hamilton() -> tuple[dict[str, Any], list[Standing]]:
    data = tomllib.loads((DATA / "hamilton_2018.toml").read_text())
    names = [str(number) for number in range(1, len(data["players"]) + 1)]
    games: dict[tuple[str, str], GameSummary] = {}
    byes: dict[str, float] = {}
    for name, row in zip(names, data["players"], strict=True):
        for game in row.split()[1:]:
            worth = {"+": 1.0, "=": 0.5, "-": 0.0}[game[0]]
            if game[1:] == "BYE":
                byes[name] = worth
                continue
            players = (name, game[2:]) if game[1] == "W" else (game[2:], name)
            winner = {1.0: players.index(name), 0.5: None, 0.0: 1 - players.index(name)}[worth]
            found = make_summary(players[0], players[1], winner)
            assert games.setdefault(players, found) == found, "both rows agree"
    table = Tally(names, games.values()).table(["points", "buchholz", "sonneborn-berger"], byes=byes)
    return data, table


def test_a_published_swiss() -> None:
    data, table = hamilton()
    for line in table:
        assert line.points == float(data["players"][int(line.name) - 1].split()[0]), line.name
    assert [(line.name, line.rank) for line in table[:2]] == [("1", 1), ("2", 2)]
    assert [line.criteria["buchholz"] for line in table[:2]] == data["buchholz"]
    assert [line.criteria["sonneborn-berger"] for line in table[:2]] == data["sonneborn_berger"]
    met = head_to_head([line for line in table if line.points == 5.5])
    assert [met["1"], met["2"]] == data["direct_encounter"]


def test_a_published_double_round_robin() -> None:
    data = tomllib.loads((DATA / "double_round.toml").read_text())
    names = data["players"]
    games = [
        make_summary(names[row], names[column], 0)
        for table in (data["first_round"], data["second_round"])
        for row, line in enumerate(table)
        for column, cell in enumerate(line)
        if cell == "1"
    ]
    assert len(games) == 12
    table = Tally(names, games).table(["points", "sonneborn-berger"])
    assert [(line.name, line.rank) for line in table] == list(zip(names, [1, 2, 3, 4], strict=True))
    assert [line.points for line in table] == data["points"]
    assert [line.criteria["sonneborn-berger"] for line in table] == data["sonneborn_berger"]


# The other criteria


def test_buchholz_takes_a_bye_for_games_against_an_equal() -> None:
    table = table_of("ann>bob bob>ann cid>dan", ["buchholz"], byes={"cid": 2.0})
    assert values(table, "buchholz") == {"ann": 2, "bob": 2, "cid": 2.0 * 3, "dan": 3}


def test_points_of_byes_count_and_are_no_wins() -> None:
    table = table_of("ann>bob", ["points", "wins"], byes={"cid": 1.0})
    assert ranks(table) == {"ann": 1, "cid": 2, "bob": 3, "dan": 3}
    cid = next(line for line in table if line.name == "cid")
    assert (cid.points, cid.wins, cid.games, cid.bye_points) == (1, 0, 0, 1)


def test_fewest_forfeits() -> None:
    games = [make_summary("ann", "bob", 0, reason=Reason.TIMEOUT), make_summary("ann", "cid", 0)]
    table = Tally(NAMES, games).table(["points", "fewest-forfeits"])
    assert ranks(table) == {"ann": 1, "cid": 2, "dan": 2, "bob": 4}


def test_speed_is_the_mean_of_all_moves_and_bots_without_a_move_are_last() -> None:
    games = [
        make_summary("ann", "bob", None, moves=(2, 1), wall_us=(9000, 1000)),
        make_summary("ann", "bob", None, moves=(8, 1), wall_us=(1000, 3000)),
        make_summary("cid", "dan", None, moves=(0, 1), wall_us=(0, 500)),
    ]
    table = Tally(NAMES, games).table(["speed"])
    assert values(table, "speed") == {"ann": -1.0, "bob": -2.0, "cid": None, "dan": -0.5}
    assert [line.name for line in table] == ["dan", "ann", "bob", "cid"]


def test_bots_without_a_rating_are_last() -> None:
    ratings = {"ann": Estimate(-20, -90, 50), "bob": Estimate(20, -50, 90), "dan": Estimate(0.0, -1, 1)}
    table = table_of("ann>bob", ["rating"], ratings=ratings)
    assert ranks(table) == {"bob": 1, "dan": 2, "ann": 3, "cid": 4}
    assert table[0].rating == ratings["bob"]


def test_score_compares_bots_that_played_unequally_often() -> None:
    """A challenger of a gauntlet plays more games, and makes more points by that alone."""
    games = " ".join(["ann>bob"] * 2 + ["bob>ann"] * 3 + ["cid>ann"] * 2)
    assert [line.name for line in table_of(games, "points")] == ["bob", "ann", "cid", "dan"]
    table = table_of(games, "score")
    assert [line.name for line in table] == ["cid", "bob", "ann", "dan"]
    assert values(table, "score") == {"cid": 1.0, "bob": 0.6, "ann": 2 / 7, "dan": None}


@pytest.mark.parametrize(
    ("games", "places", "expected"),
    [
        # The winner of a knockout is first, however few games it needed; bots without a place are last.
        ("ann>bob ann>cid bob>cid", {"cid": 1, "bob": 2, "dan": 3}, {"cid": 1, "bob": 2, "dan": 3, "ann": 4}),
        ("ann>bob", {"dan": 1, "cid": 3, "bob": 3, "ann": 2}, {"dan": 1, "ann": 2, "bob": 3, "cid": 3}),
        # The criteria break the ties of shared places.
        ("cid>bob", {"dan": 1, "cid": 3, "bob": 3, "ann": 2}, {"dan": 1, "ann": 2, "cid": 3, "bob": 4}),
    ],
)
def test_places_come_before_all_criteria(
    games: str, places: Mapping[str, int], expected: dict[str, int]
) -> None:
    assert ranks(table_of(games, ["points"], places=places)) == expected


# Lists and presets


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ("elo", "no ranking 'elo'; there are points, wins-then-speed, swiss, rating, score"),
        (["elo"], "no criterion 'elo'; there are points, wins, head-to-head"),
        (["points", "points"], "each of them once"),
        ([], "needs criteria"),
    ],
)
def test_unknown_rankings(ranking: str | list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        criteria_of(ranking)


def test_a_preset_is_the_same_as_its_list() -> None:
    assert PRESETS["points"] == ("points", "wins")
    assert PRESETS["wins-then-speed"] == ("wins", "speed")
    games = "ann>bob cid=dan bob>cid dan>ann"
    for name, criteria in PRESETS.items():
        table = table_of(games, name)
        assert table == table_of(games, list(criteria))
        assert all(list(line.criteria) == list(criteria) for line in table)


# Properties of all rankings

GAMES = st.lists(
    st.tuples(st.permutations(NAMES), st.none() | st.integers(0, 1), st.sampled_from(Reason)).map(
        lambda drawn: make_summary(
            drawn[0][0], drawn[0][1], drawn[1], reason=drawn[2], moves=(1, 3), wall_us=(1000, 2000)
        )
    ),
    max_size=14,
)
RANKING = st.lists(st.sampled_from(sorted(CRITERIA)), min_size=1, unique=True)
BYES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.5, 1.0, 2.0]))
PLACES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3))


@given(games=GAMES, ranking=RANKING, byes=BYES, places=PLACES, data=st.data())
def test_order_of_games_and_names_is_irrelevant(
    games: list[GameSummary],
    ranking: list[str],
    byes: dict[str, float],
    places: dict[str, int],
    data: st.DataObject,
) -> None:
    names, shuffled = data.draw(st.permutations(NAMES)), data.draw(st.permutations(games))
    one = Tally(NAMES, games).table(ranking, byes=byes, places=places)
    assert one == Tally(names, shuffled).table(ranking, byes=byes, places=places)


@given(games=GAMES, ranking=RANKING, byes=BYES, places=PLACES)
def test_sums_and_ranks(
    games: list[GameSummary], ranking: list[str], byes: dict[str, float], places: dict[str, int]
) -> None:
    table = Tally(NAMES, games).table(ranking, byes=byes, places=places)
    assert sum(line.points for line in table) == len(games) + sum(byes.values())
    assert sum(line.wins for line in table) == sum(line.losses for line in table)
    assert sum(line.games for line in table) == 2 * len(games)
    for line in table:
        assert line.rank == 1 + sum(other.rank < line.rank for other in table)
        assert line.points == sum(versus.points for versus in line.versus.values()) + line.bye_points
        assert line.games == sum(versus.games for versus in line.versus.values())
    # A better place, or with the same place a better first criterion, gives a better rank.
    first = ranking[0]
    for one in table:
        for other in table:
            place, another = places.get(one.name, 5), places.get(other.name, 5)
            if place < another:
                assert one.rank < other.rank
            elif place == another and first != "head-to-head":
                mine, theirs = one.criteria[first], other.criteria[first]
                if mine is not None and (theirs is None or mine > theirs):
                    assert one.rank < other.rank


@given(games=GAMES)
def test_sums_of_sonneborn_berger_and_buchholz(games: list[GameSummary]) -> None:
    """Over all bots each is, game by game, a sum of the points of both bots."""
    table = Tally(NAMES, games).table(["sonneborn-berger", "buchholz"])
    points = {line.name: line.points for line in table}
    by_game = sum(
        game.points[0] * points[game.second] + game.points[1] * points[game.first] for game in games
    )
    assert sum(line.criteria["sonneborn-berger"] or 0 for line in table) == by_game
    met = sum(points[game.first] + points[game.second] for game in games)
    assert sum(line.criteria["buchholz"] or 0 for line in table) == met
