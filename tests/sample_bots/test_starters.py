"""The starter kits: they build, play every Kalah board by the rules, and choose the same moves."""

import importlib.util
import os
import random
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from referee.games.catalog import OPENING_VARIABLE, parse_game
from referee.games.kalah import Kalah
from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from sample_bots.starters_catalog import (
    STARTERS,
    STARTERS_DIRECTORY,
    find_starter,
    starter_directory,
    starter_names,
)
from tests.support.builders import RUN_LIMIT_S
from tests.support.confinement import UNHURRIED, needs_sandbox
from tests.support.paths import REPOSITORY_ROOT
from tournaments.bots import build as build_module
from tournaments.bots.manifest import load_manifest
from tournaments.bots.resolve import resolve_bot

PATIENT = TimeControl(move_s=20, start_s=20)
ALWAYS_THERE = ("python", "java", "cpp", "javascript")
"""Languages whose tools must be there where KALARENA_REQUIRE_TOOLCHAINS says that all must be."""
EACH_KIT = pytest.mark.parametrize(
    "language",
    [pytest.param(name, marks=() if name == "python" else pytest.mark.toolchain) for name in STARTERS],
)

GAMES = (
    ("manchester", ""),
    ("kalah(3,2)", ""),
    ("bga(6,4)+pie", ""),
    ("manchester(4,20)", ""),
    ("manchester", "4 1 7"),
    ("kalah(5,3)", "1,2,3,4,0,2,0,4,4,1,4,5"),
)
"""(game, opening); sowings of 20 seeds lap a board of four pits."""


def _load() -> ModuleType:
    """The Python kit as a module: all kits choose the moves of its functions."""
    spec = importlib.util.spec_from_file_location("starter", starter_directory("python") / "bot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODEL = _load()


def copy_of(language: str, folder: Path) -> Path:
    """A kit as a student has it."""
    starter, target = STARTERS[language], folder / language
    missing = [program for program in starter.programs if shutil.which(program) is None]
    if missing:
        reason = f"{', '.join(missing)} not found on PATH: the {starter.title} kit cannot be tried"
        if os.environ.get("KALARENA_REQUIRE_TOOLCHAINS") == "1" and language in ALWAYS_THERE:
            pytest.fail(reason)
        pytest.skip(reason)
    target.mkdir()
    for file in starter.files:
        shutil.copy(starter_directory(language) / file, target)
    return target


@pytest.fixture(scope="module")
def kits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Language -> the player of its kit, built when first asked for."""
    folder = tmp_path_factory.mktemp("kits")

    @cache
    def build(language: str) -> Player:
        with pytest.MonkeyPatch.context() as patch:
            # A compiler without a cache takes long on a busy machine.
            patch.setattr(build_module, "BUILD_LIMIT_S", 900.0)
            return resolve_bot(str(copy_of(language, folder)), folder, game="manchester")

    return build


@pytest.fixture
def swapper(tmp_path: Path) -> Player:
    """The Python kit, changed to swap whenever it may."""
    source = (starter_directory("python") / "bot.py").read_text(encoding="utf-8")
    eager = source.replace("if may_swap and wants_to_swap(own, other):", "if may_swap:")
    assert eager != source
    (tmp_path / "bot.py").write_text(eager, encoding="utf-8")
    return resolve_bot(str(tmp_path), tmp_path)


async def play(first: Player, second: Player, game: str, opening: str = "") -> GameRecord:
    """A confined game that ends with a score."""
    job = Job("k", game, (first, second), PATIENT, UNHURRIED, opening=opening, sandbox=needs_sandbox())
    record = await play_game(job)
    assert record.result.reason is Reason.SCORE
    assert record.exit_status == (0, 0)
    return record


def halves(board: list[int], seat: str) -> tuple[list[int], list[int]]:
    """Own half and the other's."""
    north, south = board[: len(board) // 2], board[len(board) // 2 :]
    return (north, south) if seat == "North" else (south, north)


def expected(game: str, opening: str, lines: list[str]) -> Iterator[str]:
    """The replies of a kit to the lines that it receives, by the documentation of the protocol alone."""
    rules = parse_game(game)
    assert isinstance(rules, Kalah)
    seat, board, first_answer, asked = "", rules.board_text(rules.initial_state()), True, False
    for line in lines:
        word, *fields = line.split(";")
        if word == "START":
            seat = fields[0]
            asked = seat == "South" and not opening
        elif word == "CHANGE":
            if fields[0] == "SWAP":
                seat = "North"
            board, asked = fields[1], fields[2] == "YOU"
        else:
            asked = False
        if not asked:
            continue
        own, other = halves([int(number) for number in board.split(",")], seat)
        offered = lines[0] == "START;North" and first_answer and not opening and rules.swap is not None
        if offered and MODEL.wants_to_swap(own, other):
            yield "SWAP"
            seat = "South"
        else:
            yield f"MOVE;{MODEL.choose_pit(own, other)}"
        first_answer = False


@pytest.mark.slow
@EACH_KIT
async def test_a_kit_plays_like_all_others(language: str, kits: Any, swapper: Player) -> None:
    """Whole games from both sides, confined: no fault, and each decision is that of the Python functions."""
    kit = kits(language)
    first_legal, chance = (resolve_bot(text, Path("/")) for text in ("first_legal", "random:1"))
    swaps = 0
    for game, opening in GAMES:
        pairs = [(kit, replace(kit, name="itself")), (kit, first_legal), (chance, kit)]
        if (game, opening) in (("manchester", ""), ("bga(6,4)+pie", "")):
            pairs.append((kit, swapper))
        for first, second in pairs:
            record = await play(first, second, game, opening)
            for player, bot in enumerate((first, second)):
                lines = [line for line in record.wire if line.player == player]
                received = [line.line for line in lines if line.direction == "to"]
                sent = [line.line for line in lines if line.direction == "from"]
                if bot.cwd == kit.cwd:
                    assert sent == list(expected(game, opening, received))
                    swaps += "SWAP" in sent
    assert swaps > 0


def run_kit(kit: Player, lines: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    """Send the lines to a kit's process, without variables of Kalarena but those given."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("KALARENA_")}
    return subprocess.run(
        kit.command,
        cwd=kit.cwd,
        env={**others, **more},
        input="\n".join([*lines, "END", ""]),
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        check=True,
    )


def random_board(rng: random.Random) -> list[int]:
    """A board of any size on which both sides can move, often with empty pits, now and then with laps."""
    pits = rng.randint(1, 9)
    most = rng.choice((1, 3, 8, 2 * pits + 2, 50))
    while True:
        sides = [[rng.choice((0, rng.randint(0, most))) for _ in range(pits)] for _ in "NS"]
        if all(any(side) for side in sides):
            return [*sides[0], rng.randint(0, 40), *sides[1], rng.randint(0, 40)]


@EACH_KIT
def test_a_kit_answers_any_board_like_all_others(language: str, kits: Any) -> None:
    """Hundreds of boards for one process; an opening is announced, so that it has no turn but these."""
    for seat in ("North", "South"):
        rng = random.Random(seat)
        boards = [random_board(rng) for _ in range(600)]
        lines = [f"START;{seat}"]
        for board in boards:
            text = ",".join(map(str, board))
            lines += ["TIME;5;7", f"CHANGE;1;{text};OPP", f"CHANGE;1;{text};YOU"]
        done = run_kit(kits(language), lines, **{OPENING_VARIABLE: "1"})
        replies = [f"MOVE;{MODEL.choose_pit(*halves(board, seat))}" for board in boards]
        assert done.stdout.splitlines() == replies
        assert len(done.stderr.splitlines()) == len(boards)
        assert done.stdout.endswith("\n")


@EACH_KIT
def test_a_kit_without_kalarenas_variables_plays_manchester(language: str, kits: Any) -> None:
    """The course's own engine sets none of them."""
    lines = ["START;North", "CHANGE;4;8,8,8,7,7,7,7,0,7,7,7,0,8,8,8,1;YOU"]
    assert run_kit(kits(language), lines).stdout == "SWAP\n"


@EACH_KIT
def test_building_makes_the_products_of_the_manifest(language: str, kits: Any) -> None:
    folder = Path(kits(language).cwd)
    manifest = tomllib.loads((folder / "bot.toml").read_text(encoding="utf-8"))
    made = {path.name for path in folder.iterdir()} - set(STARTERS[language].files) - {"__pycache__"}
    assert made == ({"Bot.class"} if language == "java" else {"bot"} if "build" in manifest else set())


@pytest.mark.toolchain
def test_the_java_kit_compiles_changed_classes_that_only_unchanged_classes_use(tmp_path: Path) -> None:
    """Bot uses Search, Search uses Eval; a change of Eval alone is compiled."""
    kit = copy_of("java", tmp_path)
    text = (kit / "Bot.java").read_text(encoding="utf-8")
    assert "choosePit(own, other);" in text
    sources = {
        "Bot.java": text.replace("choosePit(own, other);", "Search.pit();"),
        "Search.java": "class Search { static int pit() { return Eval.pit(); } }\n",
        "Eval.java": "class Eval { static int pit() { return 1; } }\n",
    }
    now = time.time()
    for name, source in sources.items():
        (kit / name).write_text(source, encoding="utf-8")
        os.utime(kit / name, (now - 20, now - 20))
    lines = ["START;South"]
    assert run_kit(resolve_bot(str(kit), tmp_path, game="manchester"), lines).stdout == "MOVE;1\n"
    for path in kit.glob("*.class"):
        os.utime(path, (now - 10, now - 10))
    (kit / "Eval.java").write_text(sources["Eval.java"].replace("1", "2"), encoding="utf-8")
    assert run_kit(resolve_bot(str(kit), tmp_path, game="manchester"), lines).stdout == "MOVE;2\n"


def test_the_kits_know_the_rules() -> None:
    """The last seed of a sowing and its captures are those of the rule book."""
    rng = random.Random(6)
    extra_turns = captures = 0
    for _ in range(1000):
        board = random_board(rng)
        pits = len(board) // 2 - 1
        board[pits] += -sum(board) % (2 * pits)  # as many seeds as a game can have
        game = parse_game(f"kalah({pits},{sum(board) // (2 * pits)})")
        assert isinstance(game, Kalah)
        state = game.parse_state(",".join(map(str, board)))  # South's move
        own, other = halves(board, "South")
        for move in game.legal_moves(state):
            after = game.apply(state, move)
            if game.outcome(after) is not None:
                continue
            i = int(game.format_move(state, move)) - 1
            extra = own[i] > 0 and MODEL.last_seed(own, i) == pits
            assert extra == (game.to_move(after) is game.to_move(state)), (board, move)
            passed = (i + own[i] + pits + 1) // (2 * pits + 1)  # seeds sown into the store on the way
            gained = [int(number) for number in game.board_text(after).split(",")][-1] - own[pits]
            assert gained - passed == MODEL.captured(own, other, i), (board, move)
            extra_turns += extra
            captures += gained > passed
    assert extra_turns > 150
    assert captures > 150


@pytest.mark.parametrize(
    ("own", "other", "pit"),
    [
        ([3, 2, 1, 0], [0, 0, 0, 0], 3),  # three extra turns: the nearest to the store
        ([1, 0, 2, 0], [0, 5, 0, 0], 1),  # a capture, not the fullest pit
        ([0, 3, 3, 0], [1, 1, 1, 0], 3),  # the fullest pit, the nearest of equal ones
    ],
)
def test_a_kit_chooses_as_its_readme_says(own: list[int], other: list[int], pit: int) -> None:
    assert MODEL.choose_pit(own, other) == pit


@pytest.mark.parametrize(
    ("own", "other", "swaps"),
    [
        ([7] * 7 + [0], [7] * 7 + [0], False),  # an extra turn is waiting
        ([8, 1, 0], [1, 0, 1], False),
        ([8, 2, 0], [1, 0, 1], True),
        ([8, 2, 1], [1, 0, 1], False),
    ],
)
def test_a_kit_swaps_as_its_readme_says(own: list[int], other: list[int], swaps: bool) -> None:
    assert MODEL.wants_to_swap(own, other) is swaps


# Files.


def test_the_catalog_has_every_directory_and_unique_names() -> None:
    assert {path.name for path in STARTERS_DIRECTORY.iterdir() if path.is_dir()} == set(STARTERS)
    names = starter_names()
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


@pytest.mark.parametrize(
    ("language", "name"),
    [("C++", "cpp"), ("js", "javascript"), (" Java ", "java"), ("golang", "go"), ("cobol", None), ("", None)],
)
def test_names_of_languages(language: str, name: str | None) -> None:
    assert find_starter(language) == name


@pytest.mark.parametrize("language", STARTERS)
def test_files_of_a_kit(language: str) -> None:
    starter, folder = STARTERS[language], starter_directory(language)
    assert all((folder / file).is_file() for file in starter.files)
    for file in starter.files:
        content = (folder / file).read_bytes()
        assert content.isascii()
        assert b"\r" not in content
        assert content.endswith(b"\n")
    manifest = load_manifest(folder)
    assert manifest is not None
    assert manifest.games == ["manchester", "bga", "kalah"]
    assert manifest.capabilities == ["openings"]
    assert manifest.name == f"{starter.title} starter"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 25
    assert all(program in readme for program in starter.programs)
    if manifest.build is not None:
        assert f"    {' '.join(manifest.build)}\n" in readme
        ignored = (folder / ".gitignore").read_text(encoding="utf-8").split()
        assert all(any(Path(made).match(line.lstrip("/")) for line in ignored) for made in manifest.products)


def test_the_commands_of_docs_students_change_the_java_kit(tmp_path: Path) -> None:
    page = (REPOSITORY_ROOT / "docs" / "students.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```java\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    kit = starter_directory("java")
    commands = [shlex.split(line) for line in page.splitlines() if line.startswith("sed ")]
    assert {Path(words[-1]).name for words in commands} == {"Bot.java", "bot.toml"}
    changed = []
    for words in commands:
        source = (kit / Path(words[-1]).name).read_text(encoding="utf-8")
        file = tmp_path / "file"
        file.write_text(source, encoding="utf-8")
        subprocess.run([*words[:-1], file], check=True)
        after = file.read_text(encoding="utf-8").splitlines()
        lines = [line for old, line in zip(source.splitlines(), after, strict=True) if old != line]
        assert len(lines) == 1, words
        changed += lines
    assert shown.rstrip("\n") in changed


def test_tools_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kit that cannot be tried is left out, but not where the tools were promised."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KALARENA_REQUIRE_TOOLCHAINS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="java, javac not found on PATH: the Java kit"):
        copy_of("java", tmp_path)
    monkeypatch.setenv("KALARENA_REQUIRE_TOOLCHAINS", "1")
    with pytest.raises(pytest.fail.Exception, match="javac not found"):
        copy_of("java", tmp_path)
    with pytest.raises(pytest.skip.Exception, match="rustc not found"):
        copy_of("rust", tmp_path)
