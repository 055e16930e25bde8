"""Games in PGN: read by python-chess and by programs for ratings."""

import io
import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import chess.pgn
import numpy as np
import pytest
from click.testing import Result

from referee.judge.clock import TimeControl
from referee.judge.record_rows import MoveRecord
from referee.judge.results import GameRecord, MatchResult, Reason
from tests.project.test_docs import TEXTS, blocks
from tests.reporting.reports import write_store
from tests.support.builders import KALARENA, RUN_LIMIT_S, invoke, lost_by, make_record
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.bradley_terry import BradleyTerry
from tournaments.analysis.ratings.ratings import results_of
from tournaments.reporting.pgn import pgn_of, time_control
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

ELO = 400 / np.log(10)
NAMES = ["ann", "bob", "cid", "dan"]
ODD_NAMES = ['say "x"', "back\\slash", "[White]", "a\nb\t", "Größe 测试 🙂", "}", "%", ";", "-1"]


TAG = r'\[[A-Z][A-Za-z0-9_]* "(?:[^"\\\n]|\\["\\])*"\]\n'
ENTRY = rf"(?:(?:{TAG})+\n(?:\{{[^}}]*\}}\n)*(?:1-0|0-1|1/2-1/2)\n\n)"
"""An entry by the standard's grammar, where all moves are in comments."""


def games_of(text: str) -> Iterator[chess.pgn.Game]:
    """Yield the games that python-chess reads; an error in one of them fails the test."""
    assert re.fullmatch(f"{ENTRY}*", text)
    file = io.StringIO(text)
    while (game := chess.pgn.read_game(file)) is not None:
        assert game.errors == []
        yield game


def headers_of(text: str) -> list[dict[str, str]]:
    """Return the tags of each game, without the escapes that python-chess leaves in them."""
    return [
        {name: re.sub(r"\\(.)", r"\1", value) for name, value in game.headers.items()}
        for game in games_of(text)
    ]


def test_the_tags_of_a_game_by_hand() -> None:
    record = make_record(moves=[MoveRecord(0, "1", 1, 1), MoveRecord(1, "SWAP", 1, 1)], opening="1 2")
    assert pgn_of(record, "Cup", 3).split("\n") == [
        '[Event "Cup"]',
        '[Site "?"]',
        '[Date "2026.01.02"]',
        '[Round "3"]',
        '[White "one"]',
        '[Black "two"]',
        '[Result "1-0"]',
        '[FinalScore "2-0"]',
        '[GameId "r001-1v2"]',
        '[GameVariant "kalah(1,1)"]',
        '[Opening "1 2"]',
        '[PlyCount "2"]',
        '[Reason "score"]',
        '[Termination "normal"]',
        '[TimeControl "1/2"]',
        '[TimeLimit "2 s per move (margin 0.05 s, start 30 s)"]',
        '[UTCDate "2026.01.02"]',
        '[UTCTime "03:04:05"]',
        "",
        "{1 SWAP}",
        "{one (South) won: 2 to 0}",
        "1-0",
        "",
        "",
    ]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_read_back(name: str) -> None:
    shown = name.replace("\n", "\\n").replace("\t", "\\t")
    text = pgn_of(make_record(first=name, second="two"), name, 1)
    (found,) = headers_of(text * 2)[1:]
    assert (found["White"], found["Black"], found["Event"]) == (shown, "two", shown)
    assert [line[0] for line in text.split("\n") if line[:1] in ("%", ";")] == []


def test_a_verdict_cannot_pretend_to_be_a_tag() -> None:
    words = "it sent " + 'x} [Result "0-1"]\n% [White "eve"] 0-1 ' * 20
    record = make_record(result=lost_by(Reason.PROTOCOL, 1, words))
    text = pgn_of(record, "Cup", 1)
    assert len(re.findall(r"\[Result", text)) == len(re.findall(r"^\s*\[White ", text, re.MULTILINE)) == 1
    assert max(map(len, text.partition("\n\n")[2].split("\n"))) < 80
    (found,) = headers_of(text)
    assert (found["White"], found["Result"], found["Termination"]) == ("one", "1-0", "rules infraction")


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_word_of_the_standard(reason: Reason) -> None:
    (found,) = headers_of(pgn_of(make_record(result=lost_by(reason, 0)), "Cup", 1))
    words = ("normal", "adjudication", "time forfeit", "abandoned", "rules infraction")
    assert found["Termination"] in words
    assert (found["Reason"], found["Result"]) == (reason.value, "0-1")


@pytest.mark.parametrize(
    ("control", "text"),
    [
        (TimeControl(move_s=0.5), "1/0.5"),
        (TimeControl(game_s=300), "300"),
        (TimeControl(game_s=60, increment_s=0.1), "60+0.1"),
        (TimeControl(game_s=60, move_s=1), "?"),
    ],
)
def test_time_controls(control: TimeControl, text: str) -> None:
    assert time_control(control) == text


def test_an_opening_that_is_too_long_for_a_tag_is_a_comment() -> None:
    for length in (128, 129):
        opening = " ".join("1" * length)
        text = pgn_of(make_record(opening=opening), "Cup", 1)
        (found,) = headers_of(text)
        comments = [comment.replace("\n ", " ") for comment in re.findall(r"\{(.*?)\}", text, re.DOTALL)]
        is_tag = length == 128
        assert found.get("Opening") == (opening if is_tag else None)
        assert (f"opening: {opening}" in comments) == (not is_tag)


def test_an_unreadable_time_is_unknown() -> None:
    (found,) = headers_of(pgn_of(make_record(started_at="yesterday"), "Cup", 1))
    assert (found["Date"], "UTCDate" in found) == ("????.??.??", False)


def test_the_example_of_the_docs() -> None:
    (example,) = (block for block in blocks(TEXTS["exports.md"], "text") if "[Event" in block)
    moves = [MoveRecord(number % 2, move, 1, 1) for number, move in enumerate("22111")]
    record = make_record(
        *("r001-2v1", "greedy", "first_legal"),
        game="kalah(2,2)",
        control=TimeControl(move_s=10.0),
        moves=moves,
        result=MatchResult(0, Reason.SCORE, "greedy (South) won: 5 to 3", (5, 3)),
    )
    assert example + "\n" == pgn_of(record, "Cup", 1)


# A tournament


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tournament's directory: different games between four players from both sides, without draws."""
    random = np.random.default_rng(5)

    def lottery(record: GameRecord) -> GameRecord:
        first, second = (NAMES.index(player.name) for player in record.players)
        winner = int(random.random() > 1 / (1 + np.exp(-(second - first) * 0.6 - 0.3)))
        moves = [MoveRecord(0, record.key, 1, 1)]
        return replace(record, moves=moves, result=MatchResult(winner, Reason.SCORE, "won", (2, 0)))

    return write_store(tmp_path_factory.mktemp("field") / "out", NAMES, changed=lottery, rounds=12)


def export(directory: Path, *options: str | Path) -> Result:
    return invoke("tournament", "export", directory, *options)


def strengths(games: list[dict[str, str]]) -> list[float]:
    """Fit plain Bradley and Terry with an advantage of White, by gradient steps, as Ordo -W does; mean 0."""
    white, black = (np.array([NAMES.index(game[side]) for game in games]) for side in ("White", "Black"))
    won = np.array([game["Result"] == "1-0" for game in games], dtype=float)
    strength, advantage = np.zeros(len(NAMES)), 0.0
    for _ in range(5_000):
        surprise = won - 1 / (1 + np.exp(-(strength[white] - strength[black] + advantage)))
        change = np.bincount(white, surprise, len(NAMES)) - np.bincount(black, surprise, len(NAMES))
        strength, advantage = strength + 0.02 * change, advantage + 0.02 * surprise.sum()
    return list(ELO * (strength - strength.mean()))


@pytest.mark.slow
def test_a_plain_fit_of_the_export_gives_the_same_strengths(field: Path) -> None:
    """Strengths before the scale of expected scores are compared, since Ordo has no such scale."""
    exported = headers_of(export(field, "--format", "pgn").stdout)
    assert len(exported) == 12 * 12
    with Store(field / "results.db", read_only=True) as store:
        point = BradleyTerry(results_of(evidence_of(NAMES, store.games())), ghosts=0).peak()
    ours = ELO * (point[: len(NAMES)] - point[: len(NAMES)].mean())
    assert strengths(exported) == pytest.approx(list(ours), abs=0.1)


@pytest.mark.parametrize("program", ["ordo", "bayeselo"])
def test_programs_for_ratings_read_it(program: str, field: Path, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    path = tmp_path / "cup.pgn"
    assert export(field, "--format", "pgn", "--out", path).exit_code == 0
    command = ["ordo", "-W", "-p", str(path)] if program == "ordo" else ["bayeselo"]
    asked = f"readpgn {path}\nelo\nmm\nratings\nx\nx\n"
    done = subprocess.run(
        command, input=asked, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False
    )
    assert all(name in done.stdout for name in NAMES), done.stdout + done.stderr


def test_only_games_that_count_are_exported(tmp_path: Path) -> None:
    void = Entry(Action.VOID, "r001-1v2", "power cut", 1, "2026-01-02T03:04:05+00:00")
    folder = write_store(tmp_path / "out", ["ann", "bob"], lambda _: (None, None), journal=[void])
    (found,) = headers_of(export(folder, "--format", "pgn").stdout)
    assert (found["GameId"], found["Result"]) == ("r001-2v1", "1/2-1/2")
    path = tmp_path / "cup.pgn"
    done = export(folder, "--what", "games", "--format", "pgn", "--out", path)
    assert done.stdout == f"{path}: games that count, 1 of 2 played\n"
    (one,) = headers_of(export(folder, "--game", "r001-1v2", "--format", "pgn").stdout)
    assert one["GameId"] == "r001-1v2"


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_alone(field: Path, tmp_path: Path) -> None:
    moves = tmp_path / "moves.csv"
    command = [
        str(one) for one in (KALARENA, "tournament", "export", field, "--what", "moves", "--out", moves)
    ]
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, timeout=RUN_LIMIT_S, check=True)
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "game 20 of 144" in shown
    assert shown.endswith("game 144 of 144\x1b[K\r\x1b[K")
    assert done.stdout.decode() == f"{moves}: moves, of 144 games played\n"
    assert export(field, "--what", "moves", "--out", moves).stderr == ""
