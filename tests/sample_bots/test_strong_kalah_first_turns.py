"""The table of swap decisions, and the command that makes it."""

import json

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import Kalah, KalahState, Phase
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah.engine import KalahEngine
from sample_bots.strong.kalah.first_turns import MOST_TURNS, first_turns, stored_values, variant_key
from sample_bots.strong.kalah.make_first_turns import USUAL, main, search_first_turns, text_of


def kalah(spec: str) -> Kalah:
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    return game


@pytest.mark.parametrize("spec", USUAL)
def test_every_first_turn_of_the_usual_boards_is_there(spec: str) -> None:
    game = kalah(spec)
    kept = stored_values(game)
    turns = {turn.state.board: turn for turn in first_turns(game, game.initial_state())}
    assert set(kept) == set(turns)
    for board, one in kept.items():
        state: KalahState = game.initial_state()
        for pit in one.turn:
            state = game.apply(state, pit)
        assert (state.board, state.phase) == (board, Phase.REPLY)
        assert abs(one.value) <= game.total_seeds
        assert one.depth > 0


@pytest.mark.parametrize("spec", ["manchester(4,3)", "manchester(4,4)"])
def test_proven_values_are_found_again(spec: str) -> None:
    game = kalah(spec)
    engine = KalahEngine(game, 16)
    proven = {board: one for board, one in stored_values(game).items() if one.proven}
    assert proven
    for board, one in proven.items():
        found = engine.search(KalahState(board, 1, Phase.PLAY, False), SearchLimits())
        assert (found.value, found.proven) == (-one.value, True)


def test_what_does_not_change_the_winner_shares_an_entry() -> None:
    assert variant_key(kalah("manchester+majority-end")) == variant_key(kalah("manchester"))
    assert stored_values(kalah("manchester+pie=no")) == {}
    assert stored_values(kalah("manchester(9,9)")) == {}
    for option in ("end=on-turn", "empty-capture", "first-move-repeats"):
        assert variant_key(kalah(f"manchester+{option}")) != variant_key(kalah("manchester"))


def test_the_command_judges_every_turn() -> None:
    game = kalah("manchester(3,3)")
    turns = search_first_turns(game, 50_000, 14)
    assert [one["turn"] for one in turns] == [[1], [2], [3]]
    engine = KalahEngine(game, 14)
    for one in turns:
        state = game.apply(game.initial_state(), one["turn"][0])
        assert one["proven"]
        assert list(state.board) == one["board"]
        assert one["value"] == -engine.search(state._replace(phase=Phase.PLAY), SearchLimits()).value
    contents = {"how": {"a": "b"}, "variants": {"a": turns}}
    assert json.loads(text_of(contents)) == contents


@pytest.mark.parametrize(("spec", "said"), [("kalah(3,3)", "only Kalah with +pie"), ("kalahh", "kalahh")])
def test_the_command_refuses_games_without_swaps(
    spec: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([spec]) == 2
    assert said in capsys.readouterr().err


def test_first_turns_are_bounded() -> None:
    game = kalah("manchester(30,1)+first-move-repeats")
    turns = first_turns(game, game.initial_state())
    assert 1 < len(turns) <= MOST_TURNS
