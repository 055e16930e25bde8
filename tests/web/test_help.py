"""The help on the site: rendered from docs/, with links that work, and part of an installed package."""

import re
from html import unescape

import pytest

from referee.version import VERSION
from tests.web.played_course import Played
from tournaments.web.views.course_game import course_game
from tournaments.web.views.help_texts import HOME, PAGES, help_page, help_text, linked_help

pytestmark = pytest.mark.any_database

LINK = re.compile(r'<a href="([^"]*)"')
ANCHOR = re.compile(r' id="([^"]*)"')


async def test_a_visitor_reads_rules_protocol_faults_and_time(played: Played) -> None:
    played.show("nobody")
    sign_in = await played.world.page("visitor", "/sign-in")
    for path in (
        "/help",
        "/help/students",
        "/help/rules",
        "/help/protocol",
        "/help/protocol#time",
        "/faults",
    ):
        assert f'href="{path}"' in sign_in
    assert "<h1>The protocol</h1>" in await played.world.page("visitor", "/help/protocol")
    overview = await played.world.page("visitor", "/help")
    assert "/starters/java.zip" in overview
    assert "In this course" not in overview
    course = await played.world.page("student", "/help")
    assert "In this course" in course
    assert "<dd>Kalah, 7 pits, 7 seeds (manchester)</dd>" in course


@pytest.mark.parametrize(
    ("game", "name", "rules"),
    [
        ("kalah(4,3)", "Kalah with 4 pits a side and 3 seeds in each", "/help/rules#kalah"),
        ("kalamala", "Kalamala", "/help/rules#kalamala"),
    ],
)
def test_the_game_of_a_course_has_a_link_to_its_rules(game: str, name: str, rules: str) -> None:
    found = course_game(game)
    assert (found.name, found.rules) == (name, rules)
    assert f"The start position of {name}" in found.picture


async def test_the_footer_names_the_release_also_on_the_page_of_a_version(played: Played) -> None:
    paths = ("/", f"/my/versions/{played.versions['Team 1 v1'].id}")
    for path in paths:
        assert f"<p>Kalarena {VERSION}</p>" in await played.world.page("student", path)


@pytest.mark.parametrize("name", PAGES)
async def test_every_link_of_a_help_page_leads_somewhere(played: Played, name: str) -> None:
    page = help_page(name)
    for link in map(unescape, LINK.findall(page.body)):
        path, _, anchor = link.partition("#")
        if path.startswith("https://"):
            continue
        target = page.body if not path else help_page(path.removeprefix(f"{HOME}/")).body
        assert not anchor or anchor in ANCHOR.findall(target), link
    assert {heading.anchor for heading in page.headings} <= set(ANCHOR.findall(page.body))
    assert f"<h1>{page.title}</h1>" in unescape(await played.world.page("student", f"{HOME}/{name}"))


def test_the_text_is_escaped_and_has_the_whole_page() -> None:
    page = help_page("protocol")
    assert "<YOU|OPP>" in help_text("protocol")
    assert "&lt;YOU|OPP&gt;" in page.body
    assert "<YOU" not in page.body
    assert page.body.count("<h2") == help_text("protocol").count("\n## ")


def test_a_link_to_a_file_without_a_page_is_text() -> None:
    assert "](design.md" not in help_text("sandbox")
    assert '<a href=""' not in "".join(help_page(name).body for name in PAGES)
    assert ".md" not in "".join(LINK.findall("".join(help_page(name).body for name in PAGES)))


def test_a_link_that_names_a_file_names_the_page_instead() -> None:
    assert "([rules.md](rules.md))" in help_text("protocol")
    assert '(<a href="/help/rules">“The rules”</a>)' in help_page("protocol").body


async def test_advice_that_names_a_file_has_a_link_to_its_page(played: Played) -> None:
    faults = await played.world.page("visitor", "/faults")
    assert 'and look at <a href="/help/bots">' in faults
    assert not re.search(r"docs/\w+\.md", faults)
    assert linked_help("<b> docs/design.md, docs/bots.md") == (
        '&lt;b&gt; docs/design.md, <a href="/help/bots">A bot&#39;s directory</a>'
    )


async def test_an_unknown_page_is_not_found(played: Played) -> None:
    for name in ("none", "design", "..%2Fsecret"):
        await played.world.page("visitor", f"{HOME}/{name}", 404)
