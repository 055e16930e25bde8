"""The text of a game: what is written is read again, and its moves lead where the record says."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from referee.judge.results import GameRecord, MatchResult, MoveRecord, Reason
from tests.builders import lost_by, make_record
from tests.sgf_reader import GameTextError, parse, states
from tests.test_docs import blocks
from tournaments.config.openings import random_openings
from tournaments.reporting.sgf import GameText, Ply, write

DOCS = Path(__file__).parent.parent / "docs" / "exports.md"
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
def test_what_is_written_is_read_again(text: GameText) -> None:
    assert parse(write(text)) == text


@given(text=game_texts, data=st.data())
def test_white_space_between_properties_means_nothing(text: GameText, data: st.DataObject) -> None:
    begin, rest = write(text)[:2], write(text)[2:]
    space = data.draw(st.text(" \t\r\n"))
    assert parse(space + begin[0] + space + begin[1] + space + rest + space) == text


def played(game: AnyGame, opening: str, seed: int) -> GameRecord:
    """A record of a game of random moves."""
    chance = random.Random(seed)
    steps = parse_opening(game, opening)
    state: Any = steps[-1].state if steps else game.initial_state()
    moves = []
    while (outcome := game.outcome(state)) is None:
        move = chance.choice(game.legal_moves(state))
        time_us = chance.randrange(10_000_000)
        moves.append(MoveRecord(int(game.to_move(state)), game.format_move(state, move), time_us, time_us))
        state = game.apply(state, move)
    winner = None if outcome.winner is None else int(outcome.winner)
    verdict = MatchResult(winner, Reason(outcome.reason), "it was played to its end", outcome.score)
    return make_record(
        game=game.name, opening=opening, moves=moves, final_state=game.board_text(state), result=verdict
    )


@pytest.mark.parametrize("spec", GAMES)
@given(seed=st.integers(0, 1000), opened=st.booleans())
def test_the_moves_lead_to_the_records_last_position(spec: str, seed: int, opened: bool) -> None:
    game = parse_game(spec)
    opening = random_openings(game, 2, seed, 1)[0] if opened else ""
    record = played(game, opening, seed)
    text = parse(write(GameText.from_record(record, "Cup", 3)))
    assert [(ply.player, ply.move, ply.charged_us) for ply in text.plies] == [
        (move.player, move.move, move.charged_us) for move in record.moves
    ]
    positions = list(states(text))
    assert len(positions) == 1 + len(record.moves)
    assert game.board_text(positions[-1]) == record.final_state == text.final
    assert text.score == record.result.score


def test_every_kind_of_move_comes_back() -> None:
    """Of every game; the swap is among them where the game has one."""
    swaps = set()
    for spec in GAMES:
        game = parse_game(spec)
        seen = set()
        for seed in range(20):
            record = played(game, "", seed)
            seen |= {move.move for move in record.moves}
            assert [ply.move for ply in parse(write(GameText.from_record(record))).plies] == [
                move.move for move in record.moves
            ]
        assert len(seen) >= 3
        swaps |= {spec} if "SWAP" in seen else set()
    assert swaps == {"manchester", "kalah(3,2)+pie+empty-capture"}


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


def test_a_game_without_a_move_says_its_end_in_the_root() -> None:
    record = make_record(moves=[], result=lost_by(Reason.START, 0, "one never started", "not-started"))
    text = GameText.from_record(record)
    assert "C[one never started]" in write(text)
    assert parse(write(text)) == text


ROOT = "(;KA[1]RU[g]PF[a]PS[b]RE[draw]RN[score]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1: there must be a ("),
        ("hello", "line 1: there must be a ("),
        ("()", "line 1: there must be a ;"),
        (ROOT, "line 1: there must be a )"),
        (ROOT + ") x", "line 1: there must be nothing after the game"),
        (ROOT + "\nC[no end\n\\]", "line 3: a value has no end: its ] is missing"),
        (ROOT + "\nC[no end\\", "line 2: a value has no end: its ] is missing"),
        (ROOT + "EV)", "line 1: there must be a ["),
        (ROOT + "EV[x]EV[y])", "line 1: EV is there twice in one node"),
        ("(;RU[g])", "this is no game of ours: its root has no KA[1]"),
        ("(;KA[2])", "the root says KA[2], and this program reads KA[1]"),
        ("(;KA[1]RU[g]PF[a])", "the root has no PS"),
        (ROOT.replace("draw", "x") + ")", "RE[x]: must be one of first, second, draw"),
        (ROOT + "SC[3])", "SC: '' is no whole number"),
        (ROOT + f"RO[{'9' * 5000}])", f"RO: '{'9' * 5000}' is no whole number"),
        (ROOT + "RO[²])", "RO: '²' is no whole number"),
        (ROOT + ";T[1.000])", "move 1: needs either F or S"),
        (ROOT + ";F[1]S[2]T[1.000])", "move 1: needs either F or S"),
        (ROOT + ";F[1]T[1.000];S[1])", "move 2: T must be milliseconds with three decimals"),
        (ROOT + ";F[1]T[1.0])", "move 1: T must be milliseconds with three decimals"),
        (ROOT + ";F[1]T[-1.000])", "move 1: T: '-1' is no whole number"),
    ],
)
def test_what_is_no_game(text: str, complaint: str) -> None:
    with pytest.raises(GameTextError) as raised:
        parse(text)
    assert str(raised.value) == complaint


@given(text=st.text(st.sampled_from("(;)[]\\ FSTKARE1\n")))
def test_any_text_without_a_game_is_a_clear_error(text: str) -> None:
    with pytest.raises(GameTextError):  # none of these has all that a game needs
        parse(text)


def test_unknown_properties_are_passed_over() -> None:
    text = parse(ROOT + "XYZ[1];F[1]T[0.001]N[x]C[over])")
    assert (text.plies, text.sentence) == ((Ply(0, "1", 1),), "over")


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
