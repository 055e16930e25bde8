"""A game as it leaves the process that refereed it."""

import pickle

import pytest

from referee.errors import RefereeError
from tests.builders import make_record
from tournaments.results.game_summary import GameSummary, PackedGame


def test_it_has_the_whole_record_also_in_another_process() -> None:
    record = make_record("r003-2v1", host_speed=5e5)
    game: PackedGame = pickle.loads(pickle.dumps(PackedGame.of(record)))
    assert game.record == record
    assert game.host == record.host


def test_its_tournament_says_in_which_round_it_is() -> None:
    record = make_record("r003-2v1")
    game = PackedGame.of(record)
    assert game.summary == GameSummary.of(record, 0)
    assert game.in_round(3, "r003-1+2") == PackedGame.of(record, 3, "r003-1+2")
    assert game.in_round(3, "r003-1+2").summary == GameSummary.of(record, 3, "r003-1+2")


def test_a_damaged_one_is_said_to_be_so() -> None:
    game = PackedGame.of(make_record("g1"))
    damaged = PackedGame(game.summary, game.packed[:-9])
    with pytest.raises(RefereeError):
        _ = damaged.record
