"""The identity of the sample bots: digests of earlier releases stay valid, and a version means one play."""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from protocol.announced import AnnouncedTime
from referee.games.catalog import AnyGame, parse_game
from referee.games.kalah import NORTH, Kalah, Phase
from sample_bots import catalog, first_legal, first_move, greedy, swap_happy
from sample_bots.catalog import SAMPLE_BOTS, play_digest, searches
from sample_bots.conversation import Choose
from sample_bots.ladder import levels
from sample_bots.ladder.levels import ladder_player, level_of
from sample_bots.minimax import minimax_mover
from sample_bots.random_bot import random_mover
from sample_bots.strong.compiled import COMPILED
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.engines import engine_of
from sample_bots.strong.time_manager import TimeManager
from tests.support.builders import invoke, write_tournament
from tournaments.bots.resolve import resolve_bot
from tournaments.config.load import load_tournament
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

STORED = {
    "first_legal": "8a5d29eb96a97e378dab816c0b279dd228843c31d768d3a677af648dd4235031",
    "random": "2a2bf9411b1bd371f7289e6b407df4205bf1095e25dcf4ac0ed77f8b36bca1a9",
    "random:0017": "cdc3735fb93ea32e974182e8773c4744e4b3b99d5363f7523011818861414b5b",
    "greedy": "3b624b928165868b0dd9844201bdb3e85fc8af4b269fb415b8f741d1b691e10e",
    "minimax": "668d8ce456c1930587fee28e3f3ae8362a65d6293f1e6edf2c156ae26f8f86ef",
    "minimax:2": "921572a811be06bef24ef3e9ad9caae586f24445206eb8523dce40528df1e60b",
    "ladder:1": "0c39ba7d91006f9379b02a0fd0a62d2519a289e4c6214fb3816f46b6afc36bba",
    "ladder:3": "1cd461369e13a29f97a8b032a4e04cc68a4a0eb23c10f120ddaa8235a31adcb7",
    "ladder:10:5": "82e045b66a28c7ae5d8807084b1c60023510acd49df6da39bcbe98bbc43c1604",
    "strong": "32d5f1e0f968dcaf859d31e8c039f6a5808cd316585f36548676b47053b04554",
    "strong:0.5": "441e19994e2cce7f546fb72c239864969bd2f5d37679909bdd3c1fe82f44c39f",
    "swap_happy": "8422f191530a0b83dd63648cc1c6a38ffd437e39c962e794fe4763b9238ff858",
}
"""Digests in results of releases that hashed the source files: databases hold them, never change them."""

TOURNAMENT = """
game = "manchester(4,3)"
bots = ["greedy", "minimax:2", {bot = "ladder:3", name = "three"}]
[sandbox]
mode = "off"
"""


@pytest.mark.parametrize("text", STORED)
def test_digests_of_earlier_releases_stay(text: str, tmp_path: Path) -> None:
    assert resolve_bot(text, tmp_path).digest == STORED[text]


def test_a_tournament_of_an_earlier_release_is_resumed_and_verified(tmp_path: Path) -> None:
    file = write_tournament(tmp_path, TOURNAMENT)
    tournament = load_tournament(file)
    digests = {
        name: STORED[text] for name, text in [("greedy",) * 2, ("minimax:2",) * 2, ("three", "ladder:3")]
    }
    entry = Entry(
        Action.ADD,
        "late",
        "joined late",
        1,
        datetime.now(UTC).isoformat(),
        {"bot": "first_legal", "base": str(tmp_path), "digest": STORED["first_legal"], "replaces": None},
    )
    directory = TournamentDirectory(tmp_path / "out")
    with directory.locked(), Store(directory.store_path) as store:
        results = TournamentResults.of(tournament)
        store.claim(results.name, results.config(), {**tournament.identity(), "bots": digests})
        store.note(entry)
    resumed = invoke("tournament", "run", file, "--out", tmp_path / "out")
    assert resumed.exit_code == 0, resumed.output
    assert invoke("tournament", "verify", tmp_path / "out").exit_code == 0
    with Store(directory.store_path, read_only=True) as store:
        assert len(store.games()) == 12
        assert store.identity() == {**tournament.identity(), "bots": digests}


def test_a_version_has_a_digest_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {play_digest("greedy")}
    for version in (2, 3):
        changed = {**SAMPLE_BOTS, "greedy": replace(SAMPLE_BOTS["greedy"], version=version)}
        monkeypatch.setattr(catalog, "SAMPLE_BOTS", changed)
        digests.add(play_digest("greedy"))
        assert play_digest("minimax:2") == STORED["minimax:2"]
    assert len(digests) == 3


# The play of each version.  Where a bot uses its time, its search has a limit of nodes here instead.

GAMES = ("manchester", "kalamala")
STATES = 10
NODES = 4_000
UNLIMITED_S = 3600.0
"""A limit of time that no search here reaches, however slow the machine is."""


def states_of(game: AnyGame) -> Iterator[Any]:
    """Some states of random games, always the same."""
    dice = random.Random(game.name)
    for _ in range(STATES):
        state = game.initial_state()
        for _ in range(dice.randrange(24)):
            after = game.apply(state, dice.choice(game.legal_moves(state)))
            if game.outcome(after) is not None:
                break
            state = after
        yield state


def fingerprint(*facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def moves_of(game: AnyGame, choose: Choose) -> list[str]:
    return [str(choose(game, state)) for state in states_of(game)]


def first_legal_choice(game: AnyGame, state: Any) -> Any:
    """The pit of first_legal.py at Kalah, else the move of the bot that takes its place."""
    if not isinstance(game, Kalah) or state.phase is Phase.REPLY:
        return first_move.choose(game, state)
    return first_legal.choose_pit(list(state.board), "North" if state.seat == NORTH else "South")


def level(number: int) -> Callable[[AnyGame], object]:
    """The moves of a level; no search has a limit of time here, which a slow machine would reach."""

    def moves(game: AnyGame) -> list[str]:
        nodes = level_of(game, number).nodes
        if nodes is None:
            return moves_of(game, ladder_player(game, number, 7, AnnouncedTime())[0])
        engine = engine_of(game)
        assert engine is not None
        return moves_of(game, lambda _, state: engine.search(state, SearchLimits(nodes=nodes)).move)

    return moves


def search_results(game: AnyGame) -> object:
    engine = engine_of(game)
    assert engine is not None
    found = [engine.search(state, SearchLimits(nodes=NODES)) for state in states_of(game)]
    return [(one.move, one.value, one.depth, one.nodes, one.proven) for one in found]


def times(*_: object) -> object:
    """Seconds for the moves of some games, rounded to microseconds."""
    seconds = []
    for announced in (
        AnnouncedTime(),
        AnnouncedTime(move_ms=70),
        AnnouncedTime(move_ms=1000),
        AnnouncedTime(game_ms=60_000, increment_ms=100),
        AnnouncedTime(move_ms=2000, game_ms=30_000),
    ):
        manager = TimeManager.from_announced(announced)
        for moves in range(40, 0, -1):
            seconds.append(round(manager.seconds_for_move(moves), 6))
            manager = manager.after_move(seconds[-1])
    return seconds


PLAY: dict[str, Callable[[AnyGame], object]] = {
    "first_legal": lambda game: moves_of(game, first_legal_choice),
    "random:7": lambda game: moves_of(game, random_mover(7)),
    "greedy": lambda game: moves_of(game, greedy.choose),
    "minimax:2": lambda game: moves_of(game, minimax_mover(2)),
    **{f"ladder:{number}": level(number) for number in range(1, 10)},
    "ladder:10": lambda game: (search_results(game), times()),
    "strong": lambda game: (search_results(game), times()),
    "swap_happy": lambda game: moves_of(game, swap_happy.choose),
}
"""Spec text -> facts about the bot's play in a game."""

FINGERPRINTS: dict[tuple[str, int], dict[str, str]] = {
    ("first_legal", 1): {"manchester": "8f4d80461353edfc", "kalamala": "c42371b5a395c986"},
    ("random:7", 1): {"manchester": "9e01288bf291574a", "kalamala": "70f5be8e5f1e2014"},
    ("greedy", 1): {"manchester": "66f47c526e0e032d", "kalamala": "f3ebdb20b5be3701"},
    ("minimax:2", 1): {"manchester": "55ff0427550b7aec", "kalamala": "204599a7a628c721"},
    ("ladder:1", 1): {"manchester": "75319c953a87451e", "kalamala": "ac65f8e0e5786b1e"},
    ("ladder:2", 1): {"manchester": "9745d35170ed66a7", "kalamala": "61d167717eb5466b"},
    ("ladder:3", 1): {"manchester": "e4d1f86e8c8d85d7", "kalamala": "8c46f476d0c4c69b"},
    ("ladder:4", 1): {"manchester": "68069a1973349eb7", "kalamala": "0dc0c2de6a7a76ed"},
    ("ladder:5", 1): {"manchester": "5acecc393a1ab80a", "kalamala": "3141324f15ae7ecb"},
    ("ladder:6", 1): {"manchester": "619588b4388c456b", "kalamala": "53351299aad10044"},
    ("ladder:7", 1): {"manchester": "2968dd0ecc604c35", "kalamala": "8f06e680cfb0b622"},
    ("ladder:8", 1): {"manchester": "edf6ffb0256f4507", "kalamala": "a823ee147af84381"},
    ("ladder:9", 1): {"manchester": "8595cf4a9294f12d", "kalamala": "147c41efe0532a48"},
    ("ladder:10", 1): {"manchester": "3eecec7c200cd56e", "kalamala": "4c078d136d183b5b"},
    ("strong", 1): {"manchester": "3eecec7c200cd56e", "kalamala": "4c078d136d183b5b"},
    ("swap_happy", 1): {"manchester": "97152aaf45c10d73", "kalamala": "1925cb56b9cca375"},
}
"""Spec text and version of the play -> game -> fingerprint."""


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=pytest.mark.slow) if searches(text) else text for text in PLAY]
)
def test_a_version_means_one_play(text: str, game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "LONGEST_MOVE_S", UNLIMITED_S)
    if not COMPILED and game == "kalamala" and searches(text):
        pytest.skip("the table is smaller in plain Python")
    name = text.partition(":")[0]
    expected = FINGERPRINTS[text, SAMPLE_BOTS[name].version][game]
    assert fingerprint(PLAY[text](parse_game(game))) == expected, (
        f"{name} plays differently at {game}: raise its version in sample_bots/catalog.py, "
        "and add the new fingerprints here"
    )


def test_every_sample_bot_has_fingerprints() -> None:
    assert {text.partition(":")[0] for text in PLAY} == set(SAMPLE_BOTS)
