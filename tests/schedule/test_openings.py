"""Openings: texts, random openings, their announcement, and tournaments that begin with them."""

import json
import random
from pathlib import Path

import pytest

from referee.games.catalog import parse_game
from referee.games.opening import OpeningError, parse_opening
from referee.judge.clock import TimeControl
from referee.judge.results import Reason
from referee.playing import Job, play_game
from tests.support.builders import invoke, write_tournament
from tests.support.judging import CONTROL, Judged
from tournaments.bots.resolve import resolve_bot
from tournaments.config.load import ConfigError, load_tournament
from tournaments.config.openings import random_openings, read_openings
from tournaments.results.store import Store

SPECS = ["manchester", "bga(6,4)+pie", "kalah(3,2)", "kalamala", "kalamala+ko=none"]


@pytest.mark.parametrize("spec", SPECS)
def test_an_opening_of_moves_or_a_position(spec: str) -> None:
    game = parse_game(spec)
    state, words = game.initial_state(), []
    dice = random.Random(5)
    for _ in range(3):
        move = dice.choice([move for move in game.legal_moves(state) if move != game.swap])
        words.append(game.format_move(state, move))
        state = game.apply(state, move)
    steps = parse_opening(game, "  ".join(words))
    assert [step.move for step in steps] == words
    assert steps[-1].state == state
    text = game.board_text(state)
    (step,) = parse_opening(game, text)
    assert (step.move, step.state) == (None, game.parse_state(text))
    assert parse_opening(game, "") == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("manchester", "7,7,7,7,7,7,7,0,7,7,7,7,7,7,7,0;South"),  # the start, but in the middle of a game
        ("manchester", "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;North;reply"),
        ("manchester", "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;South;swapped"),
        (
            "kalamala",
            "......../......../...bw.../..b..w../..w..b../...wb.../......../w.......:34:b;1;"
            "......../......../...bw.../..b..w../..w..b../...wb.../......../........",
        ),
    ],
)
def test_a_position_with_facts_that_bots_do_not_receive_is_refused(spec: str, text: str) -> None:
    game = parse_game(spec)
    game.parse_state(text)
    with pytest.raises(OpeningError, match="bots receive nothing else"):
        parse_opening(game, text)


@pytest.mark.parametrize(
    ("spec", "text", "words"),
    [
        ("manchester", "1 SWAP", "the swap is no part of an opening"),
        ("manchester", "1 9", "move 2: there is no pit 9"),
        ("manchester", "nonsense", "neither a move nor a position"),
        ("manchester", "1,2,3", "neither a move nor a position"),
        ("kalah(1,1)", "1", "the game is over"),
        ("kalamala", "a1 a1", "move 2: a1 is not empty"),
        ("kalamala", "a9", "neither a move nor a position"),
    ],
)
def test_bad_openings_say_why(spec: str, text: str, words: str) -> None:
    with pytest.raises(OpeningError, match=words):
        parse_opening(parse_game(spec), text)


@pytest.mark.parametrize("spec", SPECS)
def test_random_openings_are_different_and_stay_when_there_are_more(spec: str) -> None:
    game = parse_game(spec)
    few, many = random_openings(game, 2, 7, 3), random_openings(game, 2, 7, 6)
    assert many[:3] == few
    assert few == random_openings(game, 2, 7, 3)
    assert few != random_openings(game, 2, 8, 3)
    assert len(set(few)) == 3
    assert all(len(parse_opening(game, text)) == 2 for text in many)


def test_random_openings_of_small_boards() -> None:
    assert set(random_openings(parse_game("kalah(2,3)"), 1, 1, 5)) == {"1", "2"}
    with pytest.raises(OpeningError, match="after 9 random plies"):
        random_openings(parse_game("kalah(1,1)"), 9, 1, 1)


def test_a_file_of_openings(tmp_path: Path) -> None:
    path = tmp_path / "openings.txt"
    path.write_text("# two\n\n1  2 # moves\n7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;North\n")
    game = parse_game("manchester")
    assert read_openings(game, path) == ("1 2", "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;North")
    path.write_text("1 9\n1\n2 SWAP\n")
    with pytest.raises(OpeningError, match=r"line 1: .*pit 9.*; .*line 3: .*swap"):
        read_openings(game, path)
    path.write_text("# none\n")
    with pytest.raises(OpeningError, match="holds no opening"):
        read_openings(game, path)
    with pytest.raises(OpeningError, match="cannot be read"):
        read_openings(game, tmp_path / "nowhere")


def test_only_the_first_bad_lines_of_a_file_are_named(tmp_path: Path) -> None:
    file = tmp_path / "games.pgn"
    file.write_text("x\n" * 1000)
    with pytest.raises(OpeningError, match=r"pgn line 5: .*; and 995 more$") as raised:
        read_openings(parse_game("manchester"), file)
    assert "line 6" not in str(raised.value)


# How the judge announces them.


def announced(text: str, **more: object) -> Judged:
    return Judged(CONTROL, opening=text, **more)  # type: ignore[arg-type]


def test_both_bots_receive_each_move_and_the_last_gives_the_turn() -> None:
    judged = announced("1 2")
    board = "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1"
    after = "7,0,8,8,8,8,8,1,1,8,8,8,8,8,8,1"
    assert judged.said[0] == ["START;South", f"CHANGE;1;{board};OPP", f"CHANGE;2;{after};YOU"]
    assert judged.said[1] == ["START;North", f"CHANGE;1;{board};OPP", f"CHANGE;2;{after};OPP"]
    assert judged.match.on_turn == 0
    assert judged.match.moves == []
    judged.play("MOVE;1")
    assert [(move.player, move.move) for move in judged.match.moves] == [(0, "1")]
    odd = announced("1")
    assert odd.match.on_turn == 1
    odd.play("SWAP")
    assert odd.said[0][-1].startswith("CHANGE;SWAP;")


def test_a_position_is_announced_as_an_opening() -> None:
    board = "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1"
    judged = announced(f"{board};North")
    assert judged.said[0][1:] == [f"CHANGE;OPENING;{board};OPP"]
    assert judged.said[1][1:] == [f"CHANGE;OPENING;{board};YOU"]
    judged.play("SWAP")  # a position in the middle of a game: no swap is offered
    assert judged.result.fault == "swap-not-offered"


def test_the_clock_runs_from_the_announcement() -> None:
    judged = announced("1 2", asleep=(0,))
    judged.tell_taken(0, 5.0)
    assert judged.match.on_turn == 0
    assert judged.match.deadline == 5.0 + 0.5 + 1.0 + 0.25


def test_time_lines_come_before_each_line_that_gives_a_turn() -> None:
    judged = Judged(TimeControl(game_s=8.0, setup_s=0.0, margin_s=0.0), timed=(True, False))
    assert judged.said[0] == ["TIME;8000;8000", "START;South"]
    judged.line(0, "MOVE;2", at=1.5)
    judged.line(1, "MOVE;2", at=3.5)
    assert judged.said[0][-2:] == ["TIME;6500;6000", judged.said[0][-1]]
    assert judged.said[0][-1].endswith(";YOU")
    assert not any(line.startswith("TIME") for line in judged.said[1])
    per_move = Judged(timed=(True, True))
    per_move.play("MOVE;2")
    assert per_move.said[1][-2] == "TIME;1000;1000"
    opened = announced("1 2", timed=(True, True))
    assert opened.said[0][0] == "START;South"
    assert opened.said[0][-2] == "TIME;1000;1000"


# Real bots.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bots", "spec", "opening"),
    [
        (("first_legal", "random:3"), "manchester", "1 2"),
        (("minimax:1", "greedy"), "bga(6,4)", "1 2 3"),
        (("greedy", "first_legal"), "manchester", "0,8,8,8,8,8,8,1,0,8,8,8,8,8,8,1;North"),
        (("random:3", "minimax:1"), "manchester", "0,8,8,8,8,8,8,1,0,8,8,8,8,8,8,1"),
        (("first_legal", "minimax:1"), "kalamala+cap=20", "a1 h8 a2"),
        (
            ("random:3", "greedy"),
            "kalamala+cap=20",
            "......../......../...bw.../..b..w../..w..b../...wb.../......../w.......:34:b",
        ),
    ],
)
async def test_the_sample_bots_take_openings(
    bots: tuple[str, str], spec: str, opening: str, tmp_path: Path
) -> None:
    players = resolve_bot(bots[0], tmp_path), resolve_bot(bots[1], tmp_path)
    job = Job("o", parse_game(spec).name, players, TimeControl(move_s=20), opening=opening)
    record = await play_game(job)
    assert record.result.reason in (Reason.SCORE, Reason.TURN_CAP)
    assert record.opening == opening
    assert record.stderr == ("", "")


def test_a_tournament_plays_each_opening_from_both_sides(tmp_path: Path) -> None:
    (tmp_path / "openings.txt").write_text("1 2\n2\n")
    text = 'game = "kalah(3,2)"\nopenings = "openings.txt"\nbots = ["first_legal", "greedy"]'
    path = write_tournament(tmp_path, text)
    done = invoke("tournament", "run", path, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    with Store(tmp_path / "out" / "results.db", read_only=True) as store:
        records = [store.record(game.key) for game in store.games()]
    bots = ("first_legal", "greedy")
    assert sorted((record.opening, *(player.name for player in record.players)) for record in records) == [
        ("1 2", *bots),
        ("1 2", *bots[::-1]),
        ("2", *bots),
        ("2", *bots[::-1]),
    ]


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        ("", 3),
        ("rounds = 4\n", 4),
        ('format = { kind = "gauntlet", challengers = ["greedy"] }\n', 1),
        ('format = { kind = "placement", challengers = ["greedy"] }\n', 1),
        ('format = { kind = "groups", groups = 1 }\n', 1),
        ('format = "ladder"\n', 2),
    ],
)
def test_a_file_of_openings_sets_the_rounds_of_a_round_robin_alone(
    tmp_path: Path, text: str, rounds: int
) -> None:
    """A stored tournament of another format must not grow when its file is run again."""
    (tmp_path / "openings.txt").write_text("1\n2\n3\n")
    path = write_tournament(tmp_path, f'{text}openings = "openings.txt"\nbots = ["first_legal", "greedy"]')
    cup = load_tournament(path)
    assert (len(cup.openings), cup.rounds) == (3, rounds)


def test_openings_with_a_bot_that_cannot_take_them_are_refused_before_the_first_game(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "bot.py").write_text("")
    text = 'openings = { random = { plies = 2, seed = 1 } }\nrounds = 2\nbots = ["greedy", "plain"]'
    with pytest.raises(ConfigError, match=r"bots\[2\]: plain cannot take openings"):
        load_tournament(write_tournament(tmp_path, text))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"nowhere.txt"', "openings: .*nowhere.txt cannot be read"),
        (r'"a\u0000b"', "openings: .* cannot be read: its name holds a NUL character"),
        ("{ }", "takes either file or random"),
        ('{ file = "x", random = { plies = 1, seed = 1 } }', "takes either file or random"),
        ("{ random = { plies = 0, seed = 1 } }", "openings.random.plies"),
        ("{ random = { plies = 1 } }", "openings.random.seed: is missing"),
        ("3", "openings"),
    ],
)
def test_bad_openings_in_the_file(tmp_path: Path, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_tournament(write_tournament(tmp_path, f'openings = {value}\nbots = ["greedy", "first_legal"]'))


def test_play_begins_with_an_opening() -> None:
    done = invoke("play", "greedy", "first_legal", "--opening", "1 2", "--json")
    game = json.loads(done.stdout)
    assert game["opening"] == "1 2"
    assert game["reason"] == "score"
    assert game["players"][0]["capabilities"] == ["openings"]
    done = invoke("play", "greedy", "cat", "--opening", "1 2")
    assert done.exit_code == 2
    assert "cat cannot take an opening" in done.stderr
    done = invoke("play", "greedy", "greedy", "--opening", "1 9")
    assert (done.exit_code, "there is no pit 9" in done.stderr) == (2, True)
