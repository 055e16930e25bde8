"""Games of a practice ladder: keys, openings, and what is still to be played after any end."""

from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from tests.builders import make_summary
from tournaments.server.practice.practice_games import PracticeGame, PracticeHistory, opening_of


def test_a_pair_is_two_games_from_the_same_start_with_seats_exchanged() -> None:
    game = PracticeGame(123, 1, "a", "b", "1 3")
    assert (game.key, game.pair) == ("p0000123-1", "p0000123")
    back = game.back()
    assert back == PracticeGame(123, 2, "b", "a", "1 3")
    assert back.back() is None


def test_openings_are_legal_and_differ() -> None:
    openings = [opening_of("manchester", number) for number in range(1, 50)]
    assert len(set(openings)) > 45
    assert all(parse_opening(parse_game("manchester"), text) for text in openings)
    assert opening_of("manchester", 7) == openings[6], "a number's opening stays the same"


def test_a_game_that_is_over_at_once_has_no_openings() -> None:
    assert opening_of("kalah(1,1)", 1) == ""


@given(st.lists(st.sampled_from([0, 1, 2]), max_size=12))
def test_what_is_missing_is_found_again(legs: list[int]) -> None:
    """Whatever games are kept: return games that are missing are to be played, then new pairs."""
    games = [
        make_summary(*(("a", "b") if leg == 1 else ("b", "a")), 0, key=f"p{number:07d}-{leg}")
        for number, played in enumerate(legs, 1)
        for leg in range(1, played + 1)
    ]
    history = PracticeHistory.from_games(games)
    missing = [number for number, played in enumerate(legs, 1) if played == 1]
    assert [game.key for game in history.return_games] == [f"p{number:07d}-2" for number in missing]
    assert all((game.first, game.second) == ("b", "a") for game in history.return_games)
    assert (
        history.next_number == max((number for number, played in enumerate(legs, 1) if played), default=0) + 1
    )
    assert history.tally.pairs("a", "b") == len(games) / 2


def test_games_of_another_kind_count_and_begin_nothing() -> None:
    history = PracticeHistory.from_games([make_summary("a", "b", 0, key="r001-1v2")])
    assert (history.return_games, history.next_number, history.tally.played("a")) == ([], 1, 1)
