"""Near-copies: games that agree until they are half over count once, whatever is played after that."""

import random
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import KalahState
from tests.games.test_games_contract import VARIANTS
from tests.support.builders import make_summary
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.ratings import rate
from tournaments.results.game_summary import GameSummary, line_of
from tournaments.results.rulings import result_of
from tournaments.schedule.formats.sprt_statistics import Hypotheses, PairEvidence

GAME = "manchester(7,7)"
RULES: Any = parse_game(GAME)
ROUNDS = 5

Policy = Callable[[KalahState, Sequence[int], random.Random], int]
"""(position, legal moves without the swap, random generator) -> move."""


def stores(state: KalahState) -> tuple[int, int]:
    """Return the store of the seat that is to move, and the other store."""
    north, south = state.board[RULES.pits], state.board[-1]
    return (south, north) if RULES.seats(state)[RULES.to_move(state)] == "South" else (north, south)


def greedy(state: KalahState, moves: Sequence[int], _: random.Random) -> int:
    return max(moves, key=lambda move: stores(RULES.apply(state, move)))


def varied(when: Callable[[int, int], bool]) -> Policy:
    """Return a policy that is greedy until ``when`` holds for its own and the other store, then random."""

    def policy(state: KalahState, moves: Sequence[int], chance: random.Random) -> int:
        return chance.choice(moves) if when(*stores(state)) else greedy(state, moves, chance)

    return policy


HALF = RULES.total_seeds // 2
COPIES: dict[str, Policy] = {
    "plain": greedy,
    "varied when it has won": varied(lambda own, _: own > HALF),
    "varied when it has lost": varied(lambda _, other: other > HALF),
}
OPPONENTS: dict[str, Policy] = {
    "first": lambda _, moves, __: moves[0],
    "last": lambda _, moves, __: moves[-1],
    "middle": lambda _, moves, __: moves[len(moves) // 2],
    "second": lambda _, moves, __: moves[min(1, len(moves) - 1)],
    "fullest": lambda state, moves, __: max(moves, key=lambda move: state.board[move - 1]),
}
BOTS = COPIES | OPPONENTS
NAMES = tuple(BOTS)


def played(first: str, second: str, round_number: int) -> GameSummary:
    """Play a game of two policies; each game has its own seed."""
    chance = random.Random(f"{first} {second} {round_number}")
    state, moves = RULES.initial_state(), []
    while (outcome := RULES.outcome(state)) is None:
        policy = BOTS[(first, second)[RULES.to_move(state)]]
        move = policy(state, [one for one in RULES.legal_moves(state) if one != RULES.swap], chance)
        moves.append(RULES.format_move(state, move))
        state = RULES.apply(state, move)
    summary = make_summary(first, second, None if outcome.winner is None else int(outcome.winner))
    return summary._replace(
        key=f"r{round_number:03d}-{first}-{second}",
        pair=f"r{round_number:03d}-{'+'.join(sorted((first, second)))}",
        fingerprint=" ".join(moves),
        line=line_of(GAME, "", moves),
    )


def test_bots_that_differ_after_a_game_is_decided_have_one_rating() -> None:
    games = [
        played(first, second, number) for number in range(ROUNDS) for first, second in permutations(NAMES, 2)
    ]
    different = {game.fingerprint for game in games if "varied when it has won" in (game.first, game.second)}
    assert len(different) > 3 * ROUNDS  # else this test would show nothing
    ratings = rate(evidence_of(NAMES, games))
    found = {name: (ratings.rating[index], ratings.low[index]) for index, name in enumerate(NAMES)}
    for name in COPIES:
        assert found[name] == pytest.approx(found["plain"], abs=5)


def test_a_sequential_test_counts_near_copies_once() -> None:
    evidence = PairEvidence(Hypotheses(0.0, 50.0, 0.05, 0.05))
    for number in range(ROUNDS):
        there = played("varied when it has won", "first", number)
        back = played("first", "varied when it has won", number)
        evidence.add(0, result_of(there), result_of(back))
    assert (evidence.pairs, evidence.unique) == (ROUNDS, 1)
    assert sum(evidence.counts) == pytest.approx(1)


def moves_of(spec: str, seed: int) -> tuple[list[str], int]:
    """Return a random game's moves, and how many are played when the game is half over."""
    rules: Any = parse_game(spec)
    chance, state, moves, half = random.Random(seed), rules.initial_state(), [], None
    while rules.outcome(state) is None:
        move = chance.choice(rules.legal_moves(state))
        moves.append(
            "SWAP" if rules.swap is not None and move == rules.swap else rules.format_move(state, move)
        )
        state = rules.apply(state, move)
        if half is None and rules.is_half_over(state):
            half = len(moves)
    return moves, len(moves) if half is None else half


@pytest.mark.parametrize("spec", ["manchester(7,7)", "bga", "kalah(3,2)", "kalamala"])
def test_a_line_depends_on_the_first_half_of_a_game(spec: str) -> None:
    for seed in range(5):
        moves, half = moves_of(spec, seed)
        line = line_of(spec, "", moves)
        assert line_of(spec, "", [*moves[:half], "other", "moves"]) == line
        if half > 1:
            assert line_of(spec, "", [*moves[: half - 1], "other", "moves"]) != line
        assert line_of(spec, moves[0] if moves[0] != "SWAP" else "1", moves[1:]) != line


def test_lines_with_impossible_moves_depend_on_all_moves() -> None:
    """Such moves are in damaged records, and in records of later versions."""
    assert line_of("manchester", "", ["1", "x"]) != line_of("manchester", "", ["1", "y"])
    assert line_of("chess", "", ["e4"]) != line_of("chess", "", ["d4"])
    assert line_of("manchester", "no opening", ["1"]) != line_of("manchester", "no opening", ["2"])


@pytest.mark.parametrize("spec", [spec for specs in VARIANTS.values() for spec in specs])
def test_the_second_half_never_ends(spec: str) -> None:
    rules: Any = parse_game(spec)
    for seed in range(3):
        chance, state, was_half_over = random.Random(seed), rules.initial_state(), False
        assert not rules.is_half_over(state)
        while rules.outcome(state) is None:
            state = rules.apply(state, chance.choice(rules.legal_moves(state)))
            assert rules.is_half_over(state) or not was_half_over
            was_half_over = rules.is_half_over(state)
