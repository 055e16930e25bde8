"""The Kalah engine: legal moves in every phase of every variant, limits, swaps, stored first turns."""

import random
from itertools import product

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import SWAP, Kalah, KalahState, Phase
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah.engine import KalahEngine
from sample_bots.strong.kalah.first_turns import stored_values
from tests.support.tiers import slow

SMALL_TABLE = 14


def kalah(spec: str) -> Kalah:
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    return game


VARIANTS = [
    f"kalah{board}+pie={pie}+first-move-repeats={repeats}"
    f"+end={end}+majority-end={majority}+empty-capture={empty}"
    for number, (pie, repeats, end, majority, empty) in enumerate(
        product(("no", "yes"), ("no", "yes"), ("either", "on-turn"), ("no", "yes"), ("no", "yes"))
    )
    for board in [("(4,2)", "(6,4)", "(2,7)", "(3,3)")[(number + number // 4) % 4]]
] + [
    *("manchester", "bga", "kalah(1,1)+pie", "kalah(1,100)+pie"),
    *slow("kalah(30,1)+pie", "kalah(30,100)", "manchester(30,100)"),
]


@pytest.mark.parametrize("spec", VARIANTS)
def test_legal_in_every_phase(spec: str) -> None:
    """A game with some random moves and any small budget; every expected line can be played."""
    game = kalah(spec)
    dice = random.Random(spec)
    engine = KalahEngine(game, SMALL_TABLE)
    state = game.initial_state()
    for _ in range(30):
        if state.phase is Phase.OVER:
            break
        found = engine.search(state, SearchLimits(nodes=dice.choice((0, 1, 7, 300))))
        assert found.line[0] == found.move
        assert found.move in game.legal_moves(state)
        follow = state
        for move in found.line:
            follow = game.apply(follow, move)  # raises if it cannot be played
        move = found.move if dice.random() < 0.7 else dice.choice(game.legal_moves(state))
        state = game.apply(state, move)


def test_nodes_bound_the_search_and_make_it_repeatable() -> None:
    game = kalah("manchester")
    state = game.parse_state("5,1,0,9,9,9,8,3,0,9,8,8,8,8,8,5;South")
    first, second = (KalahEngine(game, SMALL_TABLE) for _ in range(2))
    found = first.search(state, SearchLimits(nodes=5_000))
    assert found.nodes == 5_000
    assert second.search(state, SearchLimits(nodes=5_000)) == found
    assert first.search(state, SearchLimits(nodes=5_000)).depth >= found.depth  # it has kept its table
    first.clear()
    assert first.search(state, SearchLimits(nodes=5_000)) == found


def test_depth_bounds_the_search() -> None:
    game = kalah("manchester")
    state = game.parse_state("5,1,0,9,9,9,8,3,0,9,8,8,8,8,8,5;South")
    found = [KalahEngine(game, SMALL_TABLE).search(state, SearchLimits(depth=depth)) for depth in range(1, 6)]
    assert [one.depth for one in found] == [1, 2, 3, 4, 5]
    assert [one.nodes for one in found] == sorted(one.nodes for one in found)


class Clock:
    """A clock that advances by a tenth of a second at each reading."""

    def __init__(self) -> None:
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return self.readings / 10


@pytest.mark.parametrize("phase", ["opening", "reply", "play"])
def test_time_stops_the_search(phase: str) -> None:
    """Without a bound in nodes it would go on for days."""
    game = kalah("manchester")
    state = game.initial_state()
    while state.phase != phase:
        state = game.apply(state, 3)
    clock = Clock()
    found = KalahEngine(game, SMALL_TABLE, now=clock, use_stored=False).search(
        state, SearchLimits(seconds=3.0)
    )
    assert found.move in game.legal_moves(state)
    assert 30 <= clock.readings <= 36
    assert found.nodes > 0


def test_no_time_at_all_still_gives_a_move() -> None:
    game = kalah("manchester")
    state = game.initial_state()
    engine = KalahEngine(game, SMALL_TABLE, use_stored=False)
    for _ in range(12):
        found = engine.search(state, SearchLimits(seconds=0.0))
        assert found.move in game.legal_moves(state)
        assert found.depth <= 1
        assert found.nodes <= 1_000
        state = game.apply(state, found.move)


@pytest.mark.parametrize(
    ("position", "move", "proven"),
    [
        ("9,9,9,9,9,9,9,9,0,0,0,4,0,0,0,22;South", 4, False),
        ("0,1,0,0,0,0,1,30,0,0,1,0,0,1,1,63;South", None, True),
    ],
)
def test_an_only_move_or_a_proven_value_ends_the_search(
    position: str, move: int | None, proven: bool
) -> None:
    game = kalah("manchester")
    found = KalahEngine(game, SMALL_TABLE).search(game.parse_state(position), SearchLimits(seconds=60.0))
    assert found.move == move or move is None
    assert found.proven or not proven
    assert 0 < found.nodes <= 5_000
    over = kalah("kalah(1,1)")
    with pytest.raises(ValueError, match="the game is over"):
        KalahEngine(over, SMALL_TABLE).search(over.apply(over.initial_state(), 1), SearchLimits(nodes=1))


def replies(game: Kalah) -> list[KalahState]:
    """The states in which a swap is offered."""
    states, found = [game.initial_state()], []
    for state in states:
        for move in game.legal_moves(state):
            after = game.apply(state, move)
            if after.phase is Phase.REPEATING:
                states.append(after)
            elif after.phase is Phase.REPLY:
                found.append(after)
    return found


@pytest.mark.parametrize("spec", ["manchester(4,3)", "kalah(3,4)+pie", "kalah(3,3)+pie+end=on-turn"])
def test_a_swap_is_worth_minus_what_staying_is(spec: str) -> None:
    game = kalah(spec)
    decisions = set()
    for state in replies(game):
        stay = KalahEngine(game, 16).search(state._replace(phase=Phase.PLAY), SearchLimits())
        found = KalahEngine(game, 16, use_stored=False).search(state, SearchLimits())
        assert stay.proven
        assert found.proven
        assert found.value == abs(stay.value)
        assert (found.move == SWAP) == (stay.value < 0)
        decisions.add(found.move == SWAP)
    assert True in decisions


def test_stored_first_turns_decide() -> None:
    game = kalah("manchester")
    kept = stored_values(game)
    assert set(kept) == {state.board for state in replies(game)}
    engine = KalahEngine(game, SMALL_TABLE)
    for state in replies(game):
        found = engine.search(state, SearchLimits(nodes=100))
        assert (found.move == SWAP) == (kept[state.board].value > 0)
    opening = engine.search(game.initial_state(), SearchLimits(nodes=100))
    nearest = min(abs(one.value) for one in kept.values())
    chosen = next(one for one in kept.values() if one.turn == (opening.move,))
    assert abs(chosen.value) == nearest
    assert opening.nodes == 0
