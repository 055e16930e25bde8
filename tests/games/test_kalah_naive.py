"""Kalah's rule book against the naive implementation: random games and single random positions."""

import random
from typing import Any, Literal

from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from referee.games.base import Game, Side
from referee.games.catalog import parse_game
from tests.games.naive_kalah import SWAP, NaiveKalah, Player, Rules, Seat

SIDES: dict[Player, Side] = {"Sally": Side.FIRST, "Noddy": Side.SECOND}


def spec_of(rules: Rules) -> str:
    """The variant as a spec text that says every option."""
    words = {True: "yes", False: "no"}
    return (
        f"kalah({rules.pits},{rules.seeds})+pie={words[rules.pie]}"
        f"+first-move-repeats={words[rules.first_move_repeats]}+end={rules.end}"
        f"+majority-end={words[rules.majority_end]}+empty-capture={words[rules.empty_capture]}"
    )


def all_rules(pits: st.SearchStrategy[int], seeds: st.SearchStrategy[int]) -> st.SearchStrategy[Rules]:
    ends = st.sampled_from(["either", "on-turn"])
    yes_no = st.booleans()
    return st.builds(Rules, pits, seeds, yes_no, yes_no, ends, yes_no, yes_no)


def board_of(naive: NaiveKalah) -> str:
    """The protocol's board text: North's pits and store, then South's."""
    places: list[tuple[Seat, int | Literal["store"]]] = []
    for seat in ("North", "South"):
        places += [(seat, pit) for pit in naive.pit_numbers()]
        places.append((seat, "store"))
    return ",".join(str(naive.board[place]) for place in places)


def assert_same(game: Game[Any, Any], state: Any, naive: NaiveKalah) -> None:
    """Every question that both can answer has the same answer."""
    assert game.board_text(state) == board_of(naive)
    assert game.seats(state) == (naive.seat_of["Sally"], naive.seat_of["Noddy"])
    # Also in a finished game, "who would have been": the order of the last messages depends on it.
    assert game.to_move(state) is SIDES[naive.player_on_turn]
    assert game.seats(state)[game.to_move(state)] == naive.seat_on_turn()
    texts = [game.format_move(state, move) for move in game.legal_moves(state)]
    assert sorted(texts) == sorted(str(move) for move in naive.legal_moves())
    outcome = game.outcome(state)
    assert (outcome is not None) == naive.over
    if outcome is not None:
        winner = naive.winner()
        assert outcome.winner is (None if winner is None else SIDES[winner])
        assert outcome.score == (naive.score("Sally"), naive.score("Noddy"))


def play_side_by_side(rules: Rules, dice: random.Random, swap_chance: float) -> None:
    game, naive = parse_game(spec_of(rules)), NaiveKalah(rules)
    state = game.initial_state()
    played: list[str] = []
    assert_same(game, state, naive)
    while not naive.over:
        moves = naive.legal_moves()
        if SWAP in moves and dice.random() < swap_chance:
            move: int | str = SWAP
        else:
            move = dice.choice(moves)
        played.append(str(move))
        naive.play(move)
        state = game.apply(state, game.parse_move(state, str(move)))
        try:
            assert_same(game, state, naive)
        except AssertionError:
            note(f"{game.name} after {' '.join(played)}")
            raise


@settings(max_examples=400)
@given(all_rules(st.integers(1, 8), st.integers(1, 9)), st.integers(0, 2**32))
@example(Rules(7, 7, pie=True, first_move_repeats=False), 1)  # the preset manchester
@example(Rules(6, 4, end="on-turn", majority_end=True), 1)  # the preset bga
def test_random_games(rules: Rules, seed: int) -> None:
    play_side_by_side(rules, random.Random(seed), swap_chance=0.4)


@settings(max_examples=100)
@given(all_rules(st.integers(1, 3), st.integers(5, 40)), st.integers(0, 2**32))
def test_random_games_with_many_laps(rules: Rules, seed: int) -> None:
    # Small boards full of seeds: most sowings go round more than once.
    play_side_by_side(rules, random.Random(seed), swap_chance=0.4)


@st.composite
def middle_games(draw: st.DrawFn) -> NaiveKalah:
    """A random position in the middle of a game, with few seeds in the pits: captures and ends are near."""
    rules = draw(all_rules(st.integers(1, 6), st.integers(1, 6)))
    naive = NaiveKalah(rules)
    left = 2 * rules.pits * rules.seeds
    for place in naive.board:
        if place[1] != "store":
            # 0 and 1 are what captures need; up to 2p+3 seeds reach a little further than a lap.
            wish = draw(st.sampled_from([0, 0, 1, 1, 2, 3, 2 * rules.pits + 1, 2 * rules.pits + 3]))
            naive.board[place] = min(wish, left)
            left -= naive.board[place]
    souths = draw(st.integers(0, left))
    naive.board["South", "store"], naive.board["North", "store"] = souths, left - souths
    naive.sowings = 2
    naive.noddy_has_decided = True
    naive.player_on_turn = draw(st.sampled_from(["Sally", "Noddy"]))
    if rules.pie and draw(st.booleans()):
        naive.seat_of = {"Sally": "North", "Noddy": "South"}
    return naive


@settings(max_examples=300)
@given(middle_games(), st.data())
def test_one_move_in_a_random_position(naive: NaiveKalah, data: st.DataObject) -> None:
    game = parse_game(spec_of(naive.rules))
    swapped = ";swapped" if naive.seat_of["Sally"] == "North" else ""
    text = f"{board_of(naive)};{naive.seat_on_turn()}{swapped}"
    state = game.parse_state(text)
    # A position that is over already is read as one that ended just now.
    naive.look_for_the_end()
    assert_same(game, state, naive)
    if not naive.over:
        move = data.draw(st.sampled_from(naive.legal_moves()))
        naive.play(move)
        assert_same(game, game.apply(state, game.parse_move(state, str(move))), naive)


@settings(max_examples=75)
@given(all_rules(st.integers(1, 5), st.integers(1, 5)), st.integers(0, 2**32))
def test_majority_end_never_changes_the_winner(rules: Rules, seed: int) -> None:
    # K6, "it never changes the winner": the same moves, one game stopped early.  A swap after that does
    # not count: where the opener's first turn makes the majority, it is not offered any more.
    dice = random.Random(seed)
    plain = parse_game(spec_of(rules).replace("majority-end=yes", "majority-end=no"))
    early = parse_game(spec_of(rules).replace("majority-end=no", "majority-end=yes"))
    plain_state, early_state = plain.initial_state(), early.initial_state()
    while plain.outcome(plain_state) is None:
        moves = list(plain.legal_moves(plain_state))
        if early.outcome(early_state) is None:
            move = dice.choice(moves)
            early_state = early.apply(early_state, move)
        else:
            move = dice.choice([move for move in moves if move != plain.swap])
        plain_state = plain.apply(plain_state, move)
    whole, short = plain.outcome(plain_state), early.outcome(early_state)
    assert whole is not None
    assert short is not None
    assert whole.winner is short.winner
