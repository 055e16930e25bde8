"""Games as SGF-like texts: they are read back, and their moves lead to the record's last position."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.judge.results import Reason
from tests.project.test_docs import blocks
from tests.reporting.sgf_reader import parse, states
from tests.support.builders import lost_by, make_record
from tests.support.paths import REPOSITORY_ROOT
from tests.support.random_games import random_game
from tournaments.config.openings import random_openings
from tournaments.reporting.sgf import GameText, Ply, write

DOCS = REPOSITORY_ROOT / "docs" / "exports.md"
GAMES = ["manchester", "bga", "kalah(3,2)+pie+empty-capture", "kalamala+cap=40"]

hostile = st.text(st.sampled_from("]\\[();:=F\n\r\t '\"\x00\u2028\ud800ü🎲") | st.characters(codec="utf-8"))
game_texts = st.builds(
    GameText,
    *(hostile, hostile, hostile),
    st.none() | st.integers(0, 1),
    hostile,
    hostile,
    fault=hostile,
    score=st.none() | st.tuples(st.integers(0, 999), st.integers(0, 999)),
    started_at=hostile,
    control=hostile,
    opening=hostile,
    tournament=hostile,
    round=st.none() | st.integers(0, 10_000),
    key=hostile,
    final=hostile,
    aside=hostile,
    plies=st.lists(st.builds(Ply, st.integers(0, 1), hostile, st.integers(0, 10**10))).map(tuple),
)


@given(text=game_texts)
def test_a_text_is_read_back(text: GameText) -> None:
    assert parse(write(text)) == text


@pytest.mark.parametrize("spec", GAMES)
@settings(max_examples=25)
@given(seed=st.integers(0, 1000), opened=st.booleans())
def test_the_moves_lead_to_the_last_position_of_the_record(spec: str, seed: int, opened: bool) -> None:
    game = parse_game(spec)
    record = random_game(spec, seed, random_openings(game, 2, seed, 1)[0] if opened else "")
    text = parse(write(GameText.from_record(record, "Cup", 3)))
    assert [(ply.player, ply.move, ply.charged_us) for ply in text.plies] == [
        (move.player, move.move, move.charged_us) for move in record.moves
    ]
    has_swap = spec == "manchester" or "pie" in spec
    assert opened or ("SWAP" in {ply.move for ply in text.plies}) == has_swap
    positions = list(states(text))
    assert len(positions) == 1 + len(record.moves)
    assert game.board_text(positions[-1]) == record.final_state == text.final
    assert text.score == record.result.score


def test_of_a_record() -> None:
    record = make_record(
        result=lost_by(Reason.ILLEGAL, 1, "two sent 'MOVE;9]\n': no such move", "bad-number")
    )
    text = GameText.from_record(record, "Cup [1]", 2, "void r001-1v2: power cut")
    assert text == GameText(
        game="kalah(1,1)",
        first="one",
        second="two",
        winner=0,
        reason="illegal-move",
        sentence="two sent 'MOVE;9]\\n': no such move",
        fault="bad-number",
        score=None,
        started_at=record.started_at,
        control=str(record.control),
        tournament="Cup [1]",
        round=2,
        key=record.key,
        final=record.final_state,
        aside="void r001-1v2: power cut",
        plies=(Ply(0, "1", 1500), Ply(1, "1", 2500)),
    )
    assert write(text).endswith(";F[1]T[1.500]\n;S[1]T[2.500]\nC[two sent 'MOVE;9\\]\\\\n': no such move])\n")
    # Without a move the root has the last sentence.
    record = make_record(moves=[], result=lost_by(Reason.START, 0, "one never started", "not-started"))
    assert "C[one never started]" in write(GameText.from_record(record))
    assert parse(write(GameText.from_record(record))) == GameText.from_record(record)


def test_the_example_of_the_docs() -> None:
    example, *_ = blocks(DOCS.read_text(encoding="utf-8"), "text")
    text = parse(example)
    assert write(text) == example
    *_, last = states(text)
    assert parse_game(text.game).board_text(last) == text.final


def test_every_property_is_documented() -> None:
    full = GameText(
        "g", "a", "b", 0, "r", "s", "f", (1, 2), "d", "t", "o", "e", 1, "k", "p", "x", (Ply(0, "m", 1),)
    )
    names = set(re.findall(r"([A-Z]+)\[", write(full)))
    documented = set(re.findall(r"^\| `([A-Z]+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert documented == names | {"S"}
