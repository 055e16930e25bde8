"""The site of `make docs` has all pages and all commands, and loads nothing from other hosts."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import referee
import tournaments
from tests.support.paths import REPOSITORY_ROOT
from tournaments.cli.main import main

pytestmark = pytest.mark.any_database

ROOT = REPOSITORY_ROOT
DOCS = ROOT / "docs"
CONFIGURATION = ROOT / ".mkdocs.yml"
BUILT_S = 300


def pages_in(nav: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_in(part)


def test_every_page_is_in_the_navigation_once() -> None:
    nav = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))["nav"]
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(pages_in(nav)) == sorted(pages)
    readers = [reader for part in nav for reader in part]
    assert readers == ["Home", "Students", "Lecturers", "Bot authors", "Operators", "Developers"]


def commands(context: click.Context) -> Iterator[click.Context]:
    """All commands below one, and itself."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from commands(click.Context(command, parent=context, info_name=name))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site.  Every warning fails the build."""
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("MkDocs is not installed: `make docs` installs it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", CONFIGURATION, "-d", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_reference_has_all_commands_and_options(site: Path) -> None:
    text = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    sections = dict(re.findall(r'<h[2-6] id="([^"]+)"(.*?)(?=<h[2-6] id=|</article>)', text, re.DOTALL))
    for context in commands(click.Context(main, info_name="kalarena")):
        section = unescape(sections[context.command_path.replace(" ", "-")])
        for parameter in context.command.get_params(context):
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert all(name in section for name in parameter.opts), (context.command_path, parameter.opts)


@pytest.mark.slow
def test_the_pages_of_the_api_have_classes_and_functions(site: Path) -> None:
    for page, names in {
        "protocol": ["protocol.session.Session"],
        "referee": ["referee.playing.play_alone", "referee.session.Session", "referee.judge.events.Sent"],
        "tournaments": ["tournaments.results.store.Store", "tournaments.schedule.pairing.Schedule"],
        "../api/games": [f"referee.{name}" for name in referee.__all__],
        "../api/tournaments": [f"tournaments.{name}" for name in tournaments.__all__],
    }.items():
        text = (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
        assert all(f'id="{name}"' in text for name in names), page


@pytest.mark.slow
def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.glob("*.md")))
    for path in pages:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?([^\"' >]*)", text)
        assert loaded
        assert [url for url in loaded if re.match(r"(?:https?:)?//", url)] == [], path.name
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", path.read_text(encoding="utf-8")), path.name
