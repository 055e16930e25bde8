"""The corpus of students' bots: each plays without a fault, unconfined and confined at the default limits."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus.build import built_corpus, missing_tools
from tests.corpus.games import Table, playing
from tests.corpus.programs import PROGRAMS, SOURCES, tools_of
from tests.support.confinement import needs_sandbox

OPPONENT = "first_legal"
SWAPPING_OPPONENT = "python-plain"
UNHURRIED = ("--start-time", "120")
"""All other limits are the defaults.  On a busy host, a large program takes most of the default 30 s."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")

BOTS = [
    pytest.param(name, marks=() if program.quick else pytest.mark.toolchain)
    for name, program in PROGRAMS.items()
]


@pytest.fixture(scope="module")
def corpus(request: pytest.FixtureRequest) -> Path:
    """The directory of all bots that can be built here; of the quick ones if no others are selected."""
    names = [name for name, program in PROGRAMS.items() if program.quick or name == SWAPPING_OPPONENT]
    is_quick = not any(
        item.get_closest_marker(tier) for item in request.session.items for tier in ("toolchain", "slow")
    )
    return built_corpus(names if is_quick else PROGRAMS)


@pytest.fixture(scope="module")
def unconfined(corpus: Path) -> Iterator[Table]:
    """A process of the current user that plays games."""
    with playing(corpus, ordinary_user=False) as table:
        yield table


@pytest.fixture(scope="module", params=["root", "ordinary user"])
def confined(request: pytest.FixtureRequest, corpus: Path) -> Iterator[Table]:
    """Such a process of each of two users; without root, of the current user alone."""
    needs_sandbox()
    as_root = request.param == "root"
    if as_root and os.geteuid() != 0:
        pytest.skip("the tests are not run by root")
    with playing(corpus, ordinary_user=not as_root) as table:
        yield table


def needs_tools(name: str) -> None:
    """Skip a bot that cannot be built, or fail where all tools were promised."""
    if missing := missing_tools(name):
        reason = f"{', '.join(missing)} not found on PATH: {name} cannot be built"
        if os.environ.get("KALARENA_REQUIRE_TOOLCHAINS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_plays_unconfined(name: str, unconfined: Table, tmp_path: Path) -> None:
    """It moves second, and answers its opponent's move with SWAP if it can."""
    needs_tools(name)
    bot = shutil.copytree(unconfined.corpus / name, tmp_path / name)
    outcome = unconfined.play(OPPONENT, str(bot), "--sandbox", "off", *UNHURRIED)
    assert outcome.reason == "score", str(outcome)


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_plays_confined(name: str, confined: Table) -> None:
    """It moves first, and its opponent swaps."""
    needs_tools(name)
    outcome = confined.play(name, SWAPPING_OPPONENT, "--sandbox", "required", *UNHURRIED)
    assert outcome.reason == "score", str(outcome)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["java-table", "java-executor"])
def test_a_jar_plays_by_its_command_line(name: str, confined: Table) -> None:
    """As the course's own engine is given its bots; a confined one sees only the files that it names."""
    needs_tools(name)
    folder = confined.corpus / name
    options = ("--sandbox", "required", *UNHURRIED)
    outcome = confined.play("java -jar bot.jar", OPPONENT, *options, folder=folder)
    assert outcome.reason == "score", str(outcome)


def test_the_readme_lists_each_bot() -> None:
    rows = [line.split("|") for line in (SOURCES / "README.md").read_text(encoding="utf-8").splitlines()]
    assert [row[1].strip(" `") for row in rows if len(row) > 3 and "`" in row[1]] == list(PROGRAMS)


@pytest.mark.slow
def test_ci_installs_the_tools_of_each_bot() -> None:
    script = (SOURCES.parents[1] / ".ci" / "run").read_text(encoding="utf-8")
    for name in PROGRAMS:
        for tool in tools_of(name):
            installed = {"java": "javac", "gcc": "cc"}.get(tool, tool)
            assert f"command -v {installed} " in script, name
