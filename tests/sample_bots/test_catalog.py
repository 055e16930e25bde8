"""The sample bots' names, options and commands."""

import sys
from pathlib import Path

import pytest

from referee.games.catalog import parse_game
from sample_bots import first_legal
from sample_bots.catalog import SAMPLE_BOTS, BadOptionError, needs_kernels, sample_bot_command
from sample_bots.strong import kernels


def test_catalog_names() -> None:
    assert list(SAMPLE_BOTS) == [
        *("first_legal", "random", "greedy", "minimax"),
        *("ladder", "strong", "swap_happy"),
    ]
    readme = (Path(first_legal.__file__).parent / "README.md").read_text()
    for name, bot in SAMPLE_BOTS.items():
        assert bot.about
        assert "\n" not in bot.about
        assert f"`{name}`" in readme or f"`{name}:" in readme


@pytest.mark.parametrize(
    ("spec", "is_search"),
    [
        *((spec, True) for spec in ("strong", "strong:0.5", "ladder:5", "ladder:10:3")),
        *((spec, False) for spec in ("ladder:4", "minimax:4", "nobody")),
    ],
)
def test_searching_bots_use_compiled_kernels(spec: str, is_search: bool) -> None:
    assert needs_kernels(spec) == (is_search and kernels.can_compile())
    argv = sample_bot_command(spec)
    assert argv is None or ("--kernels" in argv) == needs_kernels(spec)


@pytest.mark.parametrize(("name", "lowest"), [("manchester", 8), ("kalamala", 5)])
def test_levels_need_kernels_only_in_games_in_which_they_are_engines(name: str, lowest: int) -> None:
    game = parse_game(name)
    for level in range(1, 11):
        spec = f"ladder:{level}"
        assert needs_kernels(spec, game) == (level >= lowest and kernels.can_compile())
        argv = sample_bot_command(spec, game)
        assert argv is not None
        assert ("--kernels" in argv) == needs_kernels(spec, game)


def test_catalog_commands() -> None:
    for spec, arguments in {
        "first_legal": ["first_legal"],
        "random": ["random_bot"],
        "random:0": ["random_bot", "0"],
        "random:0017": ["random_bot", "17"],
        "greedy": ["greedy"],
        "minimax": ["minimax"],
        "minimax:1": ["minimax", "1"],
        "minimax:20": ["minimax", "20"],
    }.items():
        argv = sample_bot_command(spec)
        assert argv is not None
        script = next(index for index, word in enumerate(argv) if word.endswith(".py"))
        assert argv[0] == sys.executable
        assert Path(argv[script]).is_absolute()
        assert argv[script + 1 :] == arguments


@pytest.mark.parametrize(
    "spec", ["", "first-legal", "Random", "./greedy", "java -jar bot.jar", "bots/x:3", ":3"]
)
def test_other_texts_are_no_sample_bots(spec: str) -> None:
    assert sample_bot_command(spec) is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("first_legal:1", "first_legal takes no option"),
        ("greedy:3", "greedy takes no option"),
        ("greedy:", "greedy takes no option"),
        ("random:", "takes a seed"),
        ("random:-1", "takes a seed"),
        ("random:x", "takes a seed"),
        ("random:1:2", "takes a seed"),
        ("minimax:", "takes a depth"),
        ("minimax:x", "takes a depth, a whole number from 1 to 20, not 'x'"),
        ("minimax:0", "takes a depth"),
        ("minimax:21", "takes a depth"),
        ("minimax:+4", "takes a depth"),
        ("minimax: 4", "takes a depth"),
        ("minimax:\u0664", "takes a depth"),
    ],
)
def test_bad_options(spec: str, message: str) -> None:
    with pytest.raises(BadOptionError) as raised:
        sample_bot_command(spec)
    assert message in str(raised.value)
    assert repr(spec) in str(raised.value)
