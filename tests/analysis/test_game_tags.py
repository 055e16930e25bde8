"""Tags of games, each just inside and just outside of its definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.kalah import Kalah
from referee.judge.clock import TimeControl, game_limit_in
from referee.judge.results import Reason
from tests.support.builders import make_summary
from tests.support.random_games import random_game
from tournaments.analysis.game_tags import (
    COMEBACK_PERMILLE,
    LONGEST_AMONG,
    RATED_GAMES,
    UPSET_ELO,
    Tag,
    Tagger,
)
from tournaments.analysis.standing import Estimate, Standing
from tournaments.reporting.site.replay import replay_data
from tournaments.results.game_summary import GameSummary, deficit_of

S = 1_000_000


def line(name: str, elo: float, unique: int = RATED_GAMES) -> Standing:
    return Standing(name, unique=unique, rating=Estimate(elo, elo, elo))


@pytest.mark.parametrize(
    ("lead", "unique", "winner", "expected"),
    [
        (UPSET_ELO, RATED_GAMES, 1, (Tag.UPSET,)),
        (UPSET_ELO - 1, RATED_GAMES, 1, ()),
        (UPSET_ELO, RATED_GAMES - 1, 1, ()),
        (UPSET_ELO, RATED_GAMES, 0, ()),
        (UPSET_ELO, RATED_GAMES, None, ()),
    ],
)
def test_a_win_against_a_far_stronger_bot_is_an_upset(
    lead: float, unique: int, winner: int | None, expected: tuple[Tag, ...]
) -> None:
    tagger = Tagger.of([line("strong", lead), line("weak", 0.0, unique)], [])
    assert tagger.tags(make_summary("strong", "weak", winner)) == expected


def test_a_bot_without_a_rating_is_in_no_upset() -> None:
    tagger = Tagger.of([line("strong", 1000.0), Standing("weak", unique=RATED_GAMES)], [])
    assert tagger.tags(make_summary("strong", "weak", 1)) == ()
    assert tagger.tags(make_summary("strong", "nobody", 1)) == ()


@pytest.mark.parametrize(
    ("winner", "reason", "deficit", "expected"),
    [
        (0, Reason.SCORE, COMEBACK_PERMILLE, (Tag.COMEBACK,)),
        (1, Reason.SCORE, COMEBACK_PERMILLE, (Tag.COMEBACK,)),
        (0, Reason.SCORE, COMEBACK_PERMILLE - 1, ()),
        (0, Reason.SCORE, None, ()),
        (0, Reason.EXIT, COMEBACK_PERMILLE, (Tag.BY_FAULT,)),
        (0, Reason.TURN_CAP, COMEBACK_PERMILLE, ()),
    ],
)
def test_a_win_by_score_after_a_large_deficit_is_a_comeback(
    winner: int, reason: Reason, deficit: int | None, expected: tuple[Tag, ...]
) -> None:
    game = make_summary("a", "b", winner, reason=reason)._replace(deficit_permille=deficit)
    assert Tagger().tags(game) == expected


KALAH, PIE, SWAPPED = "kalah(3,2)", "manchester(3,2)", ["2", "SWAP", "1", "3"]


@pytest.mark.parametrize(
    ("game", "opening", "moves", "winner", "expected"),
    [
        (KALAH, "", ["2", "1", "1", "3"], 1, 2000 // 12),  # the first bot has 2 of 12 seeds at the end
        (KALAH, "", ["2", "1", "1", "3"], 0, 0),
        (KALAH, "", ["2", "1", "1", "3"], None, None),
        (KALAH, "", ["2"], 1, 1000 // 12),
        (KALAH, "2 1", [], 1, 1000 // 12),  # the position after the opening counts
        (KALAH, "2 1", ["1", "3"], 1, 2000 // 12),
        (KALAH, "", [], 1, 0),
        (PIE, "", SWAPPED, 1, 1000 // 12),  # behind by 1 before it takes the first bot's seat
        (PIE, "", SWAPPED, 0, 2000 // 12),
        ("kalamala", "", [], 0, None),
        # Moves of damaged records.
        (KALAH, "", ["2", "x"], 1, 1000 // 12),
        (KALAH, "9", ["2"], 1, None),
        ("chess", "", ["e4"], 1, None),
    ],
)
def test_a_deficit_is_the_winners_largest_in_the_stores(
    game: str, opening: str, moves: list[str], winner: int | None, expected: int | None
) -> None:
    assert deficit_of(game, opening, moves, winner) == expected


@pytest.mark.parametrize("game", ["manchester", "kalah(4,3)"])
def test_a_deficit_agrees_with_the_numbers_of_the_replay(game: str) -> None:
    for seed in range(5):
        record = random_game(game, seed)
        winner, tallies = record.result.winner, [ply["tallies"] for ply in replay_data(record)["plies"]]
        if winner is not None:
            rules = parse_game(game)
            assert isinstance(rules, Kalah)
            lead = max(0, *(each[1 - winner] - each[winner] for each in tallies))
            assert GameSummary.of(record, 1).deficit_permille == 1000 * lead // rules.total_seeds


def test_the_longest_games_are_those_with_most_moves_that_were_played_to_their_end() -> None:
    games = [make_summary("a", "b", 0, key=f"{moves}", moves=(moves, moves)) for moves in range(1, 201)]
    crash = make_summary("a", "b", 0, key="crash", moves=(999, 999), reason=Reason.EXIT)
    tagger = Tagger.of([], [*games, crash])
    assert [game.key for game in games if Tag.LONGEST in tagger.tags(game)] == ["199", "200"]
    assert tagger.tags(crash) == (Tag.BY_FAULT,)


def test_of_few_games_or_of_games_of_one_length_none_is_the_longest() -> None:
    few = [make_summary("a", "b", 0, moves=(moves, moves)) for moves in range(1, LONGEST_AMONG)]
    alike = [make_summary("a", "b", 0)] * 100
    for games in (few, alike):
        tagger = Tagger.of([], games)
        assert not any(tagger.tags(game) for game in games)
    assert Tagger.of([], [*few, few[0]]).tags(few[-1]) == (Tag.LONGEST,)


@pytest.mark.parametrize(
    ("control", "charged_s", "expected"),
    [
        (TimeControl(game_s=10.0), 9.0, True),
        (TimeControl(game_s=10.0), 8.9, False),
        (TimeControl(game_s=10.0, increment_s=1.0, move_s=5.0), 28.9, False),  # 20 moves: 30 s in all
        (TimeControl(game_s=10.0, increment_s=1.0), 29.0, True),
        (TimeControl(move_s=1.0), 19.9, False),
    ],
)
def test_a_bot_with_a_tenth_of_its_time_left_is_in_time_trouble(
    control: TimeControl, charged_s: float, expected: bool
) -> None:
    game = make_summary("a", "b", None, moves=(20, 20), wall_us=(0, int(charged_s * S)))
    assert (Tag.TIME_TROUBLE in Tagger.of([], [], str(control)).tags(game)) is expected


def test_a_loss_on_time_is_time_trouble_and_a_fault() -> None:
    game = make_summary("a", "b", 0, reason=Reason.TIMEOUT)
    assert Tagger().tags(game) == (Tag.BY_FAULT, Tag.TIME_TROUBLE)
    assert Tagger().tags(game._replace(reason=Reason.EXIT)) == (Tag.BY_FAULT,)


@given(
    st.floats(0.001, 1e7) | st.none(),
    st.floats(0.001, 1e7) | st.none(),
    st.floats(0, 1e5),
)
def test_the_words_of_a_time_control_give_its_limit_per_game(
    game_s: float | None, move_s: float | None, increment_s: float
) -> None:
    if game_s is None:
        found = game_limit_in(str(TimeControl(move_s=move_s or 1.0)))
        assert found is None
    else:
        found = game_limit_in(str(TimeControl(move_s=move_s, game_s=game_s, increment_s=increment_s)))
        assert found == pytest.approx((game_s, increment_s), rel=1e-4)
