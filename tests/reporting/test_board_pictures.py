"""Pictures of positions: every game has them, and they show the whole position."""

import random
import re
from functools import cache
from typing import Any
from xml.etree import ElementTree

import pytest

from referee.games.base import Side
from referee.games.catalog import GAMES, AnyGame, parse_game
from referee.games.kalah import Kalah
from referee.games.spec import SpecError
from tests.games.test_games_contract import VARIANTS
from tournaments.reporting.board.board_renderer import RENDERERS, svg_picture, text_picture

SPECS = [
    *(spec for specs in VARIANTS.values() for spec in specs),
    "kalah(12,4)",
    "kalah(30,100)",
    "kalamala",
    "kalamala+cap=20",
]
SVG = "{http://www.w3.org/2000/svg}"
Position = tuple[Any, tuple[Any, Any] | None]
"""A state, and the state and move before it."""


@cache
def positions(spec: str) -> tuple[AnyGame, list[Position]]:
    """The start, the end and some positions between them, of a random game."""
    game = parse_game(spec)
    generator = random.Random(spec)
    game_positions: list[Position] = [(game.initial_state(), None)]
    while moves := game.legal_moves(game_positions[-1][0]):
        state, move = game_positions[-1][0], generator.choice(moves)
        game_positions.append((game.apply(state, move), (state, move)))
    return game, [*game_positions[:4], *game_positions[4:-1:20], game_positions[-1]]


def parse(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return [found.text or "" for found in root.iter(f"{SVG}text")]


def test_every_game_has_a_renderer() -> None:
    for name in GAMES:
        try:
            game = parse_game(name)
        except SpecError:  # needs a board
            game = parse_game(f"{name}(4,3)")
        assert type(game) in RENDERERS, (
            f"draw {name}: a line in RENDERERS of tournaments/reporting/board/board_renderer.py"
        )


def assert_inside(root: ElementTree.Element) -> None:
    """Nothing is drawn beyond the picture's edge."""
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for found in list(root.iter())[1:]:
        x, y = (float(found.get(name) or found.get(f"c{name}") or 0) for name in "xy")
        radius = float(found.get("r") or 0)
        across, down = float(found.get("width") or 0), float(found.get("height") or 0)
        assert 0 <= x - radius <= x + radius + across <= width
        assert 0 <= y - radius <= y + radius + down <= height


def assert_shows(game: AnyGame, state: Any, lines: list[str], root: ElementTree.Element) -> None:
    """A text and an SVG picture show all seeds, or all stones."""
    if isinstance(game, Kalah):
        numbers = [[int(number) for number in re.findall(r"\d+", line)] for line in lines[1:-1]]
        p, board = game.pits, list(state.board)
        assert numbers[0] == list(range(p, 0, -1))
        assert numbers[2] == board[:p][::-1]
        assert numbers[3:5] == [[board[p], board[-1]], board[p + 1 : -1]]
        assert numbers[6] == list(range(1, p + 1))
        pits = range(1, p + 1)
        assert sorted(int(text) for text in texts(root) if text.isdigit()) == sorted([*board, *pits, *pits])
    else:
        stones, reserves, _ = game.board_text(state).split(":")
        assert "/".join(re.sub("[^wb.]", "", line) for line in lines[3:-3]) == stones
        assert [line[0] for line in lines[3:-3]] == list("87654321")
        circles = [found.get("class") for found in root.iter(f"{SVG}circle")]
        for side, line, colour in zip(Side, (lines[-1], lines[0]), ("white", "black"), strict=True):
            left = stones.count("wb"[side]) + int(reserves[side])
            assert f"{reserves[side]} unplaced, {left} left" in line
            assert circles.count(colour) == left
        assert {*"abcdefgh", *"12345678"} <= set(texts(root))


@pytest.mark.parametrize("spec", SPECS)
def test_pictures_show_everything_and_stand_alone(spec: str) -> None:
    game, found = positions(spec)
    for state, last in found:
        text = text_picture(game, state)
        assert text.isascii()
        assert len({len(line) for line in text.split("\n")}) == 1
        assert text.count("to move") == (game.outcome(state) is None)
        svg = svg_picture(game, state, last=last)
        root = parse(svg)
        assert root[0].tag == f"{SVG}title"
        assert game.name in (root[0].text or "")
        assert "prefers-color-scheme:dark" in svg
        for forbidden in ("<script", "href", "url(", "@import", "@font-face", " id=", " on"):
            assert forbidden not in svg
        assert svg.count("http") == 1  # the name space
        for seat in game.seats(state):
            assert text.count(seat) == 1
            assert sum(caption.startswith(seat) for caption in texts(root)) == 1
        assert_inside(root)
        assert_shows(game, state, text.split("\n"), root)


@pytest.mark.parametrize("spec", ["manchester", "kalamala"])
@pytest.mark.parametrize(
    "title", ["<b>&\"'</b>", "]]>", "</title><script>alert(1)</script>", "\u00e4 \u2192 x"]
)
def test_titles_are_escaped(spec: str, title: str) -> None:
    game = parse_game(spec)
    root = parse(svg_picture(game, game.initial_state(), title=title))
    assert root[0].text == title
    assert not list(root.iter(f"{SVG}script"))


# --- Kalah ----------------------------------------------------------------------------------------


def test_kalah_svg_runs_counter_clockwise() -> None:
    game = parse_game("kalah(3,5)")
    root = parse(svg_picture(game, game.parse_state("1,2,3,4,5,6,0,9;South")))
    places = {
        int(found.text or ""): (float(found.get("x", "")), float(found.get("y", "")))
        for found in root.iter(f"{SVG}text")
        if found.get("class") in ("number", "zero")
    }
    # North's pits from the right to the left, its store, South's from the left to the right.
    assert (
        places[1][0] > places[2][0] > places[3][0] > places[4][0] < places[5][0] < places[6][0] < places[9][0]
    )
    assert places[1][1] == places[2][1] == places[3][1] < places[4][1] < places[5][1] == places[6][1]


def test_kalah_last_move_is_marked() -> None:
    game = parse_game("manchester")
    start = game.initial_state()
    state = game.apply(start, 7)
    svg = svg_picture(game, state, last=(start, 7))
    assert svg.count('"mark"') == 8  # the pit, the store, six of North's pits
    assert svg.count("stroke-dasharray") == 1
    assert '"mark"' not in svg_picture(game, state)
    swapped = game.apply(state, 0)
    assert '"mark"' not in svg_picture(game, swapped, last=(state, 0))


# --- captions -----------------------------------------------------------------------------------


def test_captions_follow_the_swap_and_the_turn() -> None:
    game = parse_game("manchester(3,3)")
    state = game.apply(game.initial_state(), 1)
    lines = text_picture(game, state).split("\n")
    assert lines[0].rstrip() == "North (second player): to move, or swap"
    assert lines[-1].rstrip() == "South (first player)"
    lines = text_picture(game, game.apply(state, 0)).split("\n")
    assert lines[0].rstrip() == "North (first player): to move"
    assert lines[-1].rstrip() == "South (second player)"


@pytest.mark.parametrize(
    ("board", "north", "south"),
    [("0,0,3,0,0,1", "won 3:1", "lost 1:3"), ("0,0,2,0,0,2", "draw 2:2", "draw 2:2")],
)
def test_captions_of_a_finished_game(board: str, north: str, south: str) -> None:
    game = parse_game("kalah(2,1)")
    state = game.parse_state(board)
    lines = text_picture(game, state).split("\n")
    assert lines[0].rstrip() == f"North (second player): {north}"
    assert lines[-1].rstrip() == f"South (first player): {south}"
    leads = 'class="pointer"' in svg_picture(game, state)
    assert leads == ("won" in north)


# --- Kalamala -------------------------------------------------------------------------------------


def test_kalamala_svg_has_a1_at_the_lower_left() -> None:
    game = parse_game("kalamala")
    root = parse(svg_picture(game, game.parse_state(f"{'/'.join(['.' * 8] * 7)}/w......b:00:w")))
    places = {found.get("class"): found.attrib for found in root.iter(f"{SVG}circle")}
    letters = {found.text: found.attrib for found in root.iter(f"{SVG}text")}
    assert places["white"]["cx"] == letters["a"]["x"]
    assert places["black"]["cx"] == letters["h"]["x"]
    assert float(places["white"]["cy"]) > float(letters["2"]["y"])


@pytest.mark.parametrize(
    ("position", "move", "marks", "left"),
    [
        ("......../......../......../......../..wwwwbb/......../......../........:00:w", "g4h4-xx", 2, 2),
        ("......../......../......../......../..wwwwbb/......../......../........:00:w", "d4-b4", 2, 1),
        ("......../......../......../......../......../.b....../......../........:10:w", "h8", 1, 0),
    ],
)
def test_kalamala_last_turn_is_marked(position: str, move: str, marks: int, left: int) -> None:
    game = parse_game("kalamala")
    before = game.parse_state(position)
    svg = svg_picture(game, game.apply(before, move), last=(before, move))
    assert svg.count('"mark"') == marks
    assert svg.count("stroke-dasharray") == left
