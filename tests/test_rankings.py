"""Rankings: each criterion by hand and by published examples, ranks, presets, and what holds of all lists."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.results import Reason
from tests.builders import make_summary
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import Tally
from tournaments.analysis.tie_breaks import CRITERIA, PRESETS, criteria_of, head_to_head
from tournaments.results.game_summary import GameSummary

DATA = Path(__file__).parent / "data" / "rankings"
NAMES = ["ann", "bob", "cid", "dan"]


def ranks(table: Sequence[Standing]) -> dict[str, int]:
    return {line.name: line.rank for line in table}


def values(table: Sequence[Standing], criterion: str) -> dict[str, float | None]:
    return {line.name: line.criteria[criterion] for line in table}


def table_of(games: str, ranking: Sequence[str], **more: Mapping[str, float]) -> list[Standing]:
    """Games as in ``ann>bob cid=dan``: who beat whom, who drew."""
    found: list[GameSummary] = []
    for text in games.split():
        drawn = "=" in text
        first, second = text.split("=" if drawn else ">")
        found.append(make_summary(first, second, None if drawn else 0))
    return Tally(NAMES, found).table(ranking, **more)  # type: ignore[arg-type]


# Head-to-head


def test_head_to_head_of_two() -> None:
    table = table_of("ann>bob bob>cid cid>dan bob>dan dan>cid ann=cid cid>ann", ["points", "head-to-head"])
    assert [line.points for line in table] == [2.5, 2, 1.5, 1]
    table = table_of("ann>bob bob>cid bob>dan ann>cid dan>ann", ["points", "head-to-head"])
    assert ranks(table) == {"ann": 1, "bob": 2, "dan": 3, "cid": 4}
    assert values(table, "head-to-head")["ann"] == 1


def test_head_to_head_counts_only_games_between_those_that_are_level() -> None:
    """Three with two points each; dan is not among them, whatever he won against them."""
    games = "ann>bob ann>cid bob>cid bob>dan cid>dan cid>dan dan>ann"
    table = table_of(games, ["points", "head-to-head"])
    assert {line.name: line.points for line in table} == {"ann": 2, "bob": 2, "cid": 2, "dan": 1}
    assert ranks(table) == {"ann": 1, "bob": 2, "cid": 3, "dan": 4}
    assert [values(table, "head-to-head")[name] for name in ("ann", "bob", "cid")] == [2, 1, 0]


def test_a_circle_of_three_stays_level() -> None:
    table = table_of("ann>bob bob>cid cid>ann", ["points", "head-to-head"])
    assert ranks(table) == {"ann": 1, "bob": 1, "cid": 1, "dan": 4}


def test_head_to_head_decides_nothing_where_not_all_met() -> None:
    """ann beat bob, but cid, level with both, met none of them."""
    table = table_of("ann>bob bob>dan cid>dan", ["points", "head-to-head"])
    assert {line.name: line.points for line in table} == {"ann": 1, "bob": 1, "cid": 1, "dan": 0}
    assert ranks(table) == {"ann": 1, "bob": 1, "cid": 1, "dan": 4}


def test_head_to_head_decides_nothing_where_they_met_unequally_often() -> None:
    games = [make_summary("ann", "bob", 0) for _ in range(2)]
    games += [make_summary("bob", "cid", 0), make_summary("cid", "ann", 0)]
    tally = Tally(["ann", "bob", "cid"], games)
    assert set(head_to_head(tally.table(["points"])).values()) == {0}


def test_head_to_head_is_asked_anew_among_those_it_leaves_level() -> None:
    """After wins have parted three into one and two, these two are compared with each other alone."""
    games = "ann=bob bob>cid cid>ann ann>dan dan=bob dan=cid cid=dan"
    level = {line.name: line for line in table_of(games, ["points"])}
    assert (level["ann"].points, level["bob"].points, level["cid"].points) == (1.5, 2, 2)
    table = table_of(games, ["points", "head-to-head"])
    assert ranks(table)["bob"] < ranks(table)["cid"] < ranks(table)["ann"]


# Published examples


def hamilton() -> tuple[dict[str, object], list[Standing]]:
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
            assert games.setdefault(players, found) == found, "both rows tell the same"
    table = Tally(names, games.values()).table(["points", "buchholz", "sonneborn-berger"], byes=byes)
    return data, table


def test_a_published_swiss() -> None:
    data, table = hamilton()
    rows = data["players"]
    assert isinstance(rows, list)
    for line in table:
        assert line.points == float(rows[int(line.name) - 1].split()[0]), line.name
    assert [line.name for line in table[:2]] == ["1", "2"]
    assert [line.rank for line in table[:3]][:2] == [1, 2]
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
    assert [line.name for line in table] == names
    assert [line.rank for line in table] == [1, 2, 3, 4]
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


def test_speed_is_the_mean_of_all_moves_and_none_is_last() -> None:
    games = [
        make_summary("ann", "bob", None, moves=(2, 1), wall_us=(9000, 1000)),
        make_summary("ann", "bob", None, moves=(8, 1), wall_us=(1000, 3000)),
        make_summary("cid", "dan", None, moves=(0, 1), wall_us=(0, 500)),
    ]
    table = Tally(NAMES, games).table(["speed"])
    assert values(table, "speed") == {"ann": -1.0, "bob": -2.0, "cid": None, "dan": -0.5}
    assert [line.name for line in table] == ["dan", "ann", "bob", "cid"]


def test_ratings_order_a_table_and_none_is_last() -> None:
    ratings = {"ann": Estimate(-20, -90, 50), "bob": Estimate(20, -50, 90), "dan": Estimate(0.0, -1, 1)}
    table = table_of("ann>bob", ["rating"], ratings=ratings)  # type: ignore[arg-type]
    assert [line.name for line in table] == ["bob", "dan", "ann", "cid"]
    assert [line.rank for line in table] == [1, 2, 3, 4]
    assert table[0].rating == Estimate(20, -50, 90)


def test_score_compares_bots_that_played_unequally_often() -> None:
    """A challenger of a gauntlet plays more games, and makes more points by that alone."""
    games = [make_summary("ann", "bob", int(number > 1)) for number in range(5)]
    games += [make_summary("cid", "ann", 0), make_summary("cid", "ann", 0)]
    by_points = Tally(NAMES, games).table("points")
    assert [line.name for line in by_points] == ["bob", "ann", "cid", "dan"]
    table = Tally(NAMES, games).table("score")
    assert [line.name for line in table] == ["cid", "bob", "ann", "dan"]
    assert values(table, "score") == {"cid": 1.0, "bob": 0.6, "ann": 2 / 7, "dan": None}


def test_equal_numbers_of_games_are_ordered_by_score_as_by_points() -> None:
    games = "ann>bob bob=cid cid>dan dan=ann ann=cid bob>dan"
    assert ranks(table_of(games, "score")) == ranks(table_of(games, "points"))


def test_places_come_before_all_criteria() -> None:
    """As of a knockout: its winner is first, however few games it needed; who has no place is last."""
    table = table_of("ann>bob ann>cid bob>cid", ["points"], places={"cid": 1, "bob": 2, "dan": 3})
    assert ranks(table) == {"cid": 1, "bob": 2, "dan": 3, "ann": 4}
    table = table_of("ann>bob", ["points"], places={"dan": 1, "cid": 3, "bob": 3, "ann": 2})
    assert ranks(table) == {"dan": 1, "ann": 2, "bob": 3, "cid": 3}
    table = table_of("cid>bob", ["points"], places={"dan": 1, "cid": 3, "bob": 3, "ann": 2})
    assert ranks(table) == {"dan": 1, "ann": 2, "cid": 3, "bob": 4}  # shared places are told apart


# Lists and presets


def test_presets_are_made_of_criteria() -> None:
    for name, criteria in PRESETS.items():
        assert criteria_of(name) == criteria
        assert set(criteria) <= set(CRITERIA)
    assert PRESETS["points"] == ("points", "wins")
    assert PRESETS["wins-then-speed"] == ("wins", "speed")


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ("elo", "no ranking 'elo'; there are points, wins-then-speed, swiss, rating, score"),
        (["elo"], "no criterion 'elo'; there are points, wins, head-to-head"),
        (["points", "points"], "each of them once"),
        ([], "needs criteria"),
    ],
)
def test_rankings_that_there_are_not(ranking: str | list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        criteria_of(ranking)


def test_a_list_is_the_same_as_its_preset() -> None:
    games = "ann>bob cid=dan bob>cid dan>ann"
    for name, criteria in PRESETS.items():
        assert table_of(games, name) == table_of(games, list(criteria))


def test_every_line_has_every_criterion_that_was_asked() -> None:
    table = table_of("ann>bob cid=dan", [*CRITERIA])
    for line in table:
        assert list(line.criteria) == list(CRITERIA)


# What holds of all lists

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
def test_ranks_and_books(
    games: list[GameSummary], ranking: list[str], byes: dict[str, float], places: dict[str, int]
) -> None:
    table = Tally(NAMES, games).table(ranking, byes=byes, places=places)
    assert sum(line.points for line in table) == len(games) + sum(byes.values())
    for line in table:
        assert line.rank == 1 + sum(other.rank < line.rank for other in table)
    # Whoever has the better place, or of one place the better first criterion, has the better rank.
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
def test_sonneborn_berger_sums_to_points_won_from_points_of_those_who_lost_them(
    games: list[GameSummary],
) -> None:
    """Summed over all bots it is, game by game, what each got times what the other has in all."""
    table = Tally(NAMES, games).table(["sonneborn-berger", "buchholz"])
    points = {line.name: line.points for line in table}
    by_game = sum(
        game.points[0] * points[game.second] + game.points[1] * points[game.first] for game in games
    )
    assert sum(line.criteria["sonneborn-berger"] or 0 for line in table) == by_game
    met = sum(points[game.first] + points[game.second] for game in games)
    assert sum(line.criteria["buchholz"] or 0 for line in table) == met
