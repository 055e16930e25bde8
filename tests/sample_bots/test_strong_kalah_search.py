"""The Kalah search: proven values, values at a fixed depth, and the same results in plain Python."""

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import EndRule, Kalah, KalahState, Phase
from sample_bots.options import PURE_VARIABLE
from sample_bots.strong.compiled import array_of
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah.cell_board import UNIT, evaluate, weights_of
from sample_bots.strong.kalah.engine import KalahEngine
from sample_bots.strong.kalah.searcher import KalahSearcher, LimitMonitor, Settings
from tests.sample_bots.test_strong_kalah_rules import seen_by_mover
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tiers import slow

SMALL_TABLE = 14
PLAINEST = Settings(extra_cost=2, quiet_plies=0, late_moves=0, table_ends=False)
"""Every move costs a ply, nothing is searched beyond the depth, and no value comes from the table."""


def kalah(spec: str) -> Kalah:
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    return game


def random_state(game: Kalah, dice: random.Random, least: int = 2, most: int = 25) -> KalahState:
    """A state of a random game that is not over, in the middle."""
    while True:
        state = game.initial_state()
        for _ in range(dice.randint(least, most)):
            if state.phase is Phase.OVER:
                break
            state = game.apply(state, dice.choice([move for move in game.legal_moves(state) if move]))
        if state.phase is not Phase.OVER:
            return state._replace(phase=Phase.PLAY)


# Irving, Donkers and Uiterwijk, Solving Kalah, ICGA Journal 2000, table 9 (4 pits) and table 10 (the sign),
# all with empty-capture; the margins without it are those of several independent solvers.
MARGINS = {
    **{f"kalah(4,{seeds})+empty-capture": margin for seeds, margin in ((1, 2), (2, 6), (3, 8))},
    "kalah(4,3)": 6,
    "kalah(4,2)": 6,
    "kalah(2,2)": -2,
}
SIGNS = {
    f"kalah({pits},{seeds})+empty-capture": sign
    for pits, signs in {1: "0-+-+0", 2: "+---++", 3: "0++++-", 5: "00", 6: "+"}.items()
    for seeds, sign in enumerate(signs, 1)
}


@pytest.mark.parametrize(("spec", "expected"), [*MARGINS.items(), *SIGNS.items()])
def test_published_values(spec: str, expected: int | str) -> None:
    game = kalah(spec)
    found = KalahEngine(game, 16).search(game.initial_state(), SearchLimits())
    sign = "+" if found.value > 0 else "-" if found.value < 0 else "0"
    assert expected in (found.value, sign)
    assert found.proven


def margin_of(game: Kalah, state: KalahState, seat: int) -> int:
    ahead = state.board[-1] - state.board[game.pits]
    return ahead if seat == 0 else -ahead


def plain_minimax(game: Kalah, state: KalahState, depth: int) -> int:
    """The value for the mover, in units, by the rule book alone; ``depth`` is in plies."""
    if depth == 0:
        cells = seen_by_mover(game, state)
        p = game.pits
        sides, weights = (sum(cells[:p]), sum(cells[p:])), weights_of(game)
        guess = evaluate(array_of(cells, "int16"), 0, p, *sides, weights)
        return UNIT * margin_of(game, state, state.seat) + int(guess)
    best = -(10**9)
    for pit in game.legal_moves(state):
        after = game.apply(state, pit)
        if after.phase is Phase.OVER:
            value = UNIT * margin_of(game, after, state.seat)
        elif after.seat == state.seat:
            value = plain_minimax(game, after, depth - 1)
        else:
            value = -plain_minimax(game, after, depth - 1)
        best = max(best, value)
    return best


@pytest.mark.parametrize(
    "spec",
    [
        *("kalah(3,3)", "kalah(3,3)+end=on-turn", "kalah(4,2)+empty-capture", "kalah(2,9)"),
        *("kalah(5,2)+end=on-turn+empty-capture", *slow("manchester", "kalah(30,2)")),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_fixed_depth_is_plain_minimax(spec: str, packed: bool) -> None:
    game = kalah(spec)
    dice = random.Random(spec)
    plies = 2 if game.pits > 9 else 4
    for _ in range(15):
        state = random_state(game, dice)
        searcher = KalahSearcher(game, SMALL_TABLE, replace(PLAINEST, packed=packed))
        for depth in range(1, plies + 1):
            iteration = searcher.search(state, depth, LimitMonitor(SearchLimits(), time.monotonic))
            assert iteration.value == plain_minimax(game, state, depth)


def check_exact(game: Kalah, engine: KalahEngine, state: KalahState, known: dict[KalahState, int]) -> None:
    """The search proves the value of the rule book's whole game tree, and its move has this value."""
    found = engine.search(state, SearchLimits())
    exact = exact_value(game, state, known)
    assert (found.value, found.proven) == (exact, True)
    after = game.apply(state, found.move)
    sign = 1 if game.to_move(after) is game.to_move(state) else -1
    outcome = game.outcome(after)
    if outcome is not None:
        mover = game.to_move(state)
        assert outcome.score[mover] - outcome.score[mover.other] == exact
    else:
        assert sign * exact_value(game, after, known) == exact


@pytest.mark.slow
@pytest.mark.parametrize("end", EndRule)
@pytest.mark.parametrize(
    "spec", ["kalah(3,2)", "kalah(3,2)+empty-capture", "kalah(2,4)", "kalah(5,1)+empty-capture"]
)
@pytest.mark.parametrize("packed", [True, False])
def test_proven_values_are_exact(spec: str, end: EndRule, packed: bool) -> None:
    game = kalah(f"{spec}+end={end}")
    dice = random.Random(spec)
    known: dict[KalahState, int] = {}
    engine = KalahEngine(game, SMALL_TABLE, Settings(packed=packed))
    for _ in range(25):
        check_exact(game, engine, random_state(game, dice, 0, 8), known)


@pytest.mark.parametrize("pie", ["no", "yes"])
@pytest.mark.parametrize("repeats", ["no", "yes"])
@pytest.mark.parametrize("board", ["(3,2)", "(2,3)", "(4,1)"])
def test_first_decisions_are_exact(board: str, pie: str, repeats: str) -> None:
    """The opener's turn and the second player's decision."""
    game = kalah(f"kalah{board}+pie={pie}+first-move-repeats={repeats}")
    engine = KalahEngine(game, SMALL_TABLE, use_stored=False)
    known: dict[KalahState, int] = {}
    states = [game.initial_state()]
    for state in states:  # grows meanwhile: every state of the first two decisions
        for move in game.legal_moves(state):
            after = game.apply(state, move)
            if after.phase in (Phase.REPEATING, Phase.REPLY):
                states.append(after)
        check_exact(game, engine, state, known)


def exact_value(game: Kalah, state: KalahState, known: dict[KalahState, int]) -> int:
    """The margin for the player to move with best play, by the rule book alone."""
    if state in known:
        return known[state]
    mover = game.to_move(state)
    margins = []
    for move in game.legal_moves(state):
        after = game.apply(state, move)
        outcome = game.outcome(after)
        if outcome is not None:
            margins.append(outcome.score[mover] - outcome.score[mover.other])
        else:
            margins.append(exact_value(game, after, known) * (1 if game.to_move(after) is mover else -1))
    known[state] = max(margins)
    return known[state]


@pytest.mark.parametrize(
    "spec",
    ["manchester", "bga(6,6)+pie+empty-capture", "kalah(7,18)", "kalah(1,100)", "kalah(4,9)+end=on-turn"],
)
def test_boards_in_words_and_in_cells_are_searched_alike(spec: str) -> None:
    """With a table so large that hardly any entry is replaced: which are depends on the keys."""
    game = kalah(spec)
    dice = random.Random(spec)
    for _ in range(5):
        state = random_state(game, dice, 0)
        found = [
            KalahEngine(game, 20, Settings(packed=packed)).search(state, SearchLimits(nodes=20_000))
            for packed in (True, False)
        ]
        assert found[0] == found[1]


PROGRAM = """
import json, sys
from referee.games.catalog import parse_game
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah.engine import KalahEngine
from sample_bots.strong.compiled import execution_mode
results = [execution_mode()]
for spec, text, nodes in json.load(sys.stdin):
    game = parse_game(spec)
    engine = KalahEngine(game, 10)
    state = game.parse_state(text)
    for _ in range(2):
        found = engine.search(state, SearchLimits(nodes=nodes))
        results.append([found.move, found.value, found.depth, found.nodes, found.proven, list(found.line)])
print(json.dumps(results))
"""


@pytest.mark.slow
def test_plain_python_finds_the_same() -> None:
    """With a table so small that entries are replaced; twice, with what is left of it."""
    dice = random.Random(5)
    asked = []
    for spec in ("manchester", "kalah(4,3)", "kalah(9,30)+end=on-turn+empty-capture"):
        game = kalah(spec)
        states = [game.initial_state(), random_state(game, dice)]
        asked += [(spec, game.format_state(state), 2_000) for state in states]
    answers = []
    for pure in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps(asked),
            env={**os.environ, PURE_VARIABLE: pure},
            cwd=REPOSITORY_ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append(json.loads(done.stdout))
    assert answers[1][0].startswith("in plain Python")
    assert answers[0][1:] == answers[1][1:]
    assert len(answers[0]) == 1 + 2 * len(asked)
