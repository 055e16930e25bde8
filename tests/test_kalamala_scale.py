"""Long games of Kalamala through the judge: what is remembered stays small, and verdicts have words."""

import random

from referee.games.kalamala import KalamalaState
from referee.judge.results import Reason
from tests.judging import Judged


def long_game(seed: int, turns: int) -> tuple[Judged, list[KalamalaState]]:
    """Play that puts off placements and removals as long as the dice let it, and all its states."""
    dice = random.Random(seed)
    judged = Judged(game="kalamala")
    match = judged.match
    states: list[KalamalaState] = [match.state]
    while match.result is None and len(states) <= turns:
        legal = list(match.game.legal_moves(match.state))
        quiet = [text for text in legal if "-" in text and "x" not in text]
        wish = quiet if quiet and dice.random() < 0.96 else legal
        judged.play(f"MOVE;{dice.choice(wish)}")
        states.append(match.state)
    return judged, states


def test_a_game_of_300_turns_is_refereed_and_its_history_does_not_only_grow() -> None:
    judged, states = long_game(seed=1, turns=320)
    assert len(states) == 321
    assert judged.match.result is None
    assert len(judged.match.moves) == 320
    lasting = 0
    for before, after, record in zip(states, states[1:], judged.match.moves, strict=False):
        assert after.ply == before.ply + 1
        if "-" not in record.move or "x" in record.move:
            lasting += 1
            assert len(after.past) == 1
        else:
            assert len(after.past) == len(before.past) + 1
        assert (after.white, after.black) in after.past
    assert lasting >= 5
    assert max(len(state.past) for state in states) < 200


def test_what_the_bots_are_told() -> None:
    judged, states = long_game(seed=2, turns=30)
    game = judged.match.game
    assert [said[0] for said in judged.said] == ["START;White", "START;Black"]
    for player in (0, 1):
        changes = judged.said[player][1:]
        for ply, (line, state, record) in enumerate(
            zip(changes, states[1:], judged.match.moves, strict=True), start=1
        ):
            following = "YOU" if ply % 2 == player else "OPP"
            assert line == f"CHANGE;{record.move};{game.board_text(state)};{following}"


def test_a_game_that_reaches_its_cap_is_a_verdict_of_its_own() -> None:
    judged = Judged(game="kalamala+cap=2")
    judged.play("MOVE;a1", "MOVE;h8")
    assert judged.result.reason is Reason.TURN_CAP
    assert judged.result.winner is None
    assert judged.result.score == (8, 8)
    assert "draw: the stones left decide after turn 2; 8 to 8" in judged.result.detail
    assert [said[-2][-4:] for said in judged.said] == [";END", ";END"]
    assert [said[-1] for said in judged.said] == ["END", "END"]


def test_a_turn_that_repeats_is_an_illegal_move_with_its_own_word() -> None:
    judged = Judged(game="kalamala")
    judged.play("MOVE;e3-f3", "MOVE;d3-c3", "MOVE;f3-e3", "MOVE;c3-d3")
    assert judged.result.reason is Reason.ILLEGAL
    assert judged.result.fault == "repetition"
    assert judged.result.winner == 0


def test_a_turn_out_of_form_and_a_swap_are_faults_of_form() -> None:
    for line, word in [("MOVE;d4-", "bad-turn"), ("MOVE;E3-F3", "bad-turn"), ("SWAP", "swap-not-offered")]:
        judged = Judged(game="kalamala")
        judged.play(line)
        assert judged.result.reason is Reason.PROTOCOL
        assert judged.result.fault == word
        assert judged.result.winner == 1
