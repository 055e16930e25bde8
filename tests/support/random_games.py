"""Records of random games, judged without processes: whole, with a swap, or ended by a fault."""

import random
from functools import cache
from typing import Any

from referee.judge.match import Match
from referee.judge.results import GameRecord
from tests.support.builders import make_player, make_record
from tests.support.judging import Judged


def record_of(match: Match[Any, Any], opening: str = "") -> GameRecord:
    """Return the record of a match without processes."""
    assert match.result is not None
    first, second = map(make_player, match.names)
    return make_record(
        game=match.game.name,
        players=(first, second),
        moves=match.moves,
        wire=match.wire,
        facts=match.facts,
        final_state=match.game.board_text(match.state),
        result=match.result,
        opening=opening,
        sandbox="off",
        judge=match.judge,
    )


@cache
def random_game(
    game: str, seed: int = 1, opening: str = "", illegal_after: int | None = None, avoid: str = " "
) -> GameRecord:
    """Return a random game with a swap if one is offered.

    After ``illegal_after`` moves an illegal one is sent.  Moves with the letters ``avoid`` are played only
    where there is no other.
    """
    judged = Judged(game=game, opening=opening)
    dice = random.Random(seed)
    match = judged.match
    while match.result is None:
        judged.at += dice.random() / 8
        moves = match.game.legal_moves(match.state)
        if len(match.moves) == illegal_after:
            judged.play("MOVE;99")
        elif match.game.swap is not None and match.game.swap in moves:
            judged.play("SWAP")
        else:
            texts = [match.game.format_move(match.state, move) for move in moves]
            judged.play(f"MOVE;{dice.choice([text for text in texts if avoid not in text] or texts)}")
    return record_of(match, opening)


def game_of_length(game: str, least: int) -> GameRecord:
    """Return a random game with at least this many moves."""
    return next(found for seed in range(1000) if len((found := random_game(game, seed)).moves) >= least)
