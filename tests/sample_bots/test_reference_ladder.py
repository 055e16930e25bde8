"""The reference ladder: its levels, whole games of the heuristic players, and the features they look at."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from protocol.announced import AnnouncedTime
from referee.games.catalog import GAMES, AnyGame, parse_game
from sample_bots.catalog import LOWEST_SEARCH
from sample_bots.compare import play, points, random_opening
from sample_bots.conversation import Choose
from sample_bots.ladder import heuristic_players
from sample_bots.ladder.levels import LADDERS, FixedDepthPlayer, ladder_player, level_of
from sample_bots.minimax import minimax_mover
from sample_bots.options import HIGHEST_LEVEL, LOWEST_LEVEL
from sample_bots.random_bot import random_mover
from sample_bots.strong.engine import SearchLimits

VARIANTS = [
    "bga(5,2)+pie+empty-capture",
    "kalah(1,1)",
    "kalah(3,9)+pie+majority-end",
    "manchester(4,2)+end=on-turn",
    "kalamala+cap=20",
    "kalamala+ko=none+cap=20",
]
HIGHEST_WITHOUT_ENGINE = {"manchester": 7, "kalamala": 4}
"""The highest level that is no engine's search."""
EXAMPLES = {"manchester": "manchester", "bga": "bga", "kalah": "kalah(4,3)", "kalamala": "kalamala"}
"""A spec of each registered game."""


def seeded(game: AnyGame, level: int) -> Callable[[int], Choose]:
    """Seed -> a player of a level below the searches."""

    def make(seed: int) -> Choose:
        choose, on_time = ladder_player(game, level, seed, AnnouncedTime())
        assert (on_time is None) == (level_of(game, level).heuristic is not None)
        return choose

    return make


def test_every_game_has_a_ladder() -> None:
    assert set(EXAMPLES) == set(GAMES)
    assert {type(parse_game(spec)) for spec in EXAMPLES.values()} == set(LADDERS)
    for levels in LADDERS.values():
        assert len(levels) == HIGHEST_LEVEL - LOWEST_LEVEL + 1
        assert [level.searches for level in levels] == sorted(level.searches for level in levels)
        assert len({level.about for level in levels}) == len(levels)
        searches = [level.nodes for level in levels if level.searches]
        assert searches == [*sorted(nodes for nodes in searches if nodes is not None), None]


def test_searches_begin_above_the_other_levels() -> None:
    """The catalog has to know from which level on the kernels may be needed."""
    firsts = [
        next(number for number, level in enumerate(levels, LOWEST_LEVEL) if level.searches)
        for levels in LADDERS.values()
    ]
    assert min(firsts) == LOWEST_SEARCH
    for name, highest in HIGHEST_WITHOUT_ENGINE.items():
        game = parse_game(name)
        assert not level_of(game, highest).searches
        assert level_of(game, highest + 1).searches
        assert level_of(game, LOWEST_LEVEL).about == "plays any legal move"
        assert len(LADDERS[type(game)]) == HIGHEST_LEVEL


@pytest.mark.parametrize("spec", VARIANTS)
def test_players_without_engines_play_whole_games(spec: str) -> None:
    """Every random choice is legal, since ``apply`` refuses other moves."""
    game = parse_game(spec)
    for level in range(LOWEST_LEVEL, HIGHEST_LEVEL):
        if not level_of(game, level).searches:
            make = seeded(game, level)
            play(game, (make(1), random_mover(5)), random_opening(game, random.Random(0)))
            play(game, (random_mover(5), make(2)), random_opening(game, random.Random(1)))


@pytest.mark.parametrize(("name", "highest"), HIGHEST_WITHOUT_ENGINE.items())
def test_a_seed_determines_all_random_choices(name: str, highest: int) -> None:
    game = parse_game(name)
    state = random_opening(game, random.Random(3))
    for level in range(LOWEST_LEVEL, highest + 1):
        moves = [[seeded(game, level)(seed)(game, state) for seed in range(4)] for _ in range(2)]
        assert moves[0] == moves[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "level"), [("manchester", level) for level in range(2, 7)] + [("kalamala", 2)]
)
def test_levels_are_in_order(name: str, level: int) -> None:
    """``make ladder`` measures the promised 65 % of 200 games; here only that nothing is upside down."""
    game = parse_game(name)
    assert points(game, seeded(game, level), seeded(game, level - 1), 20) > 24


KALAH = parse_game("kalah(6,4)")


@pytest.mark.parametrize(
    ("player", "north", "south", "moves"),
    [
        # Pit 4 holds 3 seeds, which end in the store; pit 1 holds 6, which do so, too, but lie far from it.
        (heuristic_players.eager, [4, 4, 4, 4, 4, 4], [6, 4, 0, 3, 4, 3], {4}),
        (heuristic_players.eager, [4, 4, 4, 4, 4, 4], [6, 1, 1, 1, 1, 2], {1, 2, 3, 4, 5, 6}),
        # Pit 1 (2 seeds) ends in the empty pit 3 and captures the 9 opposite; pit 6 gives another turn.
        (heuristic_players.collector, [0, 0, 0, 9, 0, 1], [2, 4, 0, 1, 1, 1], {1}),
        # Pit 6 gives another turn, in which pit 1 still captures.
        (heuristic_players.planner, [0, 0, 0, 9, 0, 1], [2, 4, 0, 1, 1, 1], {6}),
    ],
)
def test_features_at_kalah(
    player: Callable[[random.Random], Choose], north: list[int], south: list[int], moves: set[int]
) -> None:
    """South's moves, whatever is drawn by lot; the seeds of each side, pits 1 to 6."""
    won = sum(KALAH.initial_state().board) - sum(north) - sum(south)
    board = [*north, won // 2, *south, won - won // 2]
    state = KALAH.parse_state(",".join(map(str, board)))
    assert {player(random.Random(seed))(KALAH, state) for seed in range(40)} == moves


KALAMALA = parse_game("kalamala")


def test_the_pusher_pushes() -> None:
    state = KALAMALA.parse_state(
        "......../......../......../......../w....wwb/......../......../........:11:w"
    )
    assert {heuristic_players.pusher(random.Random(seed))(KALAMALA, state) for seed in range(20)} == {"h4-x"}


def test_readers_keep_their_time() -> None:
    """On a large board, where reading so far would take seconds; a fake clock counts positions."""
    game = parse_game("manchester(30,10)")
    clock = count()
    reader = FixedDepthPlayer(game, 6, lambda: next(clock) / 1000)
    found = reader.search(game.initial_state(), SearchLimits(seconds=5.0))
    assert 1 <= found.depth < 6
    assert next(clock) <= 5000 + 5
    assert found.move in game.legal_moves(game.initial_state())
    hurried = reader.search(game.initial_state(), SearchLimits(seconds=0.0))
    assert (hurried.depth, hurried.move) == (0, 1)


def test_readers_find_what_minimax_finds() -> None:
    game = parse_game("manchester")
    for seed in range(5):
        state = random_opening(game, random.Random(seed))
        assert FixedDepthPlayer(game, 4).search(state, SearchLimits()).move == minimax_mover(4)(game, state)
