"""Lists of the site: searched, sorted in natural order, filtered and paged; a journal of sentences."""

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.support.courses import NOW
from tests.web.played_course import Played
from tournaments.course.model import Event, Role
from tournaments.web.views.journal_sentences import SENTENCES, sentence_of
from tournaments.web.views.lists import ROWS, Column, ListQuery, listed, natural_key

pytestmark = pytest.mark.any_database

COLUMNS = {"name": Column[str]("Name", natural_key), "length": Column[str]("Length", len, True)}


def names(query: dict[str, str], rows: list[str]) -> list[str]:
    found = listed(rows, ListQuery.read(query, COLUMNS, {}), COLUMNS, lambda row: [row])
    return list(found.rows)


def test_numbers_within_names_are_compared_as_numbers() -> None:
    assert names({}, ["s10", "S2", "s1", "10", "9"]) == ["9", "10", "s1", "S2", "s10"]
    assert names({"order": "desc"}, ["s2", "s10"]) == ["s10", "s2"]
    assert names({"sort": "length"}, ["a", "ccc", "bb"]) == ["ccc", "bb", "a"]


@pytest.mark.parametrize(
    "query", [{"sort": "made-up"}, {"order": "x"}, {"page": "-1"}, {"page": "x"}, {"page": "99"}]
)
def test_an_invalid_query_is_ignored(query: dict[str, str]) -> None:
    assert names(query, ["b", "a"]) == ["a", "b"]


def test_every_word_of_a_search_must_be_there() -> None:
    rows = ["Team 1, student-1", "Team 2, student-2"]
    assert names({"q": "TEAM student-2"}, rows) == rows[1:]
    assert names({"q": "nobody"}, rows) == []


def test_pages_keep_the_query() -> None:
    rows = [f"s{number}" for number in range(2 * ROWS + 1)]
    query = ListQuery.read({"q": "s", "page": "3", "order": "desc"}, COLUMNS, {})
    found = listed(rows, query, COLUMNS, lambda row: [row])
    assert (list(found.rows), found.pages, found.found) == (["s0"], 3, 2 * ROWS + 1)
    assert found.query.address(page=2) == "?q=s&sort=name&order=desc&page=2"
    assert found.order_link("name") == "?q=s&sort=name&order=asc"
    assert (found.aria_sort("name"), found.aria_sort("length")) == ("descending", "none")


async def test_one_line_is_not_plural(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = played.world.course.versions
    monkeypatch.setattr(versions, "all", lambda _most, all_of=versions.all: all_of(1))
    tournaments, cup = played.service.tournaments, played.cup.id
    summary = await tournaments.summary(cup)
    tournaments.keep(cup, replace(summary, kept=summary.kept[:1]))
    for path, shown in (
        ("/teach/submissions", "1 version"),
        ("/teach/submissions?q=nobody", "0 of 1 version"),
        ("/competitions/cup/games", "1 game"),
        ("/competitions/cup/games?bot=nobody", "0 of 1 game"),
    ):
        page = await played.world.page("lecturer", path)
        assert re.findall("<output>(.*)</output>", page) == [shown], path


def add_students(played: Played, number: int) -> None:
    course = played.world.course
    for index in range(1, number + 1):
        team = course.teams.add(f"Group {index}", NOW)
        course.accounts.add(f"s{index}", f"Student {index}", Role.STUDENT, team.id, NOW)


def logins_on(page: str) -> list[str]:
    return re.findall(r'href="/teach/roster/\d+"><bdi>([^<]+)</bdi>', page)


async def test_the_roster_is_searched_sorted_filtered_and_paged(played: Played) -> None:
    add_students(played, 60)
    async with played.world.browser("lecturer") as browser:
        first = await browser.text("/teach/roster")
        assert logins_on(first)[:3] == ["s1", "s2", "s3"]
        assert len(logins_on(first)) == ROWS
        found = re.search(r'rel="next" href="([^"]+)"', first)
        assert found is not None
        rest = await browser.text(f"/teach/roster{unescape(found[1])}")
        assert logins_on(rest)[-2:] == ["student-1", "student-2"]
        assert logins_on(await browser.text("/teach/roster?q=group+57")) == ["s57"]
        assert logins_on(await browser.text("/teach/roster?bot=yes")) == ["student-1", "student-2"]
        assert logins_on(await browser.text("/teach/roster?account=active&sort=login&order=desc")) == [
            "student-2",
            "student-1",
        ]
        assert "No student matches" in await browser.text("/teach/roster?q=nobody")


async def test_the_roster_is_sorted_by_the_newest_submission(played: Played) -> None:
    add_students(played, 1)
    page = await played.world.page("lecturer", "/teach/roster?sort=newest&order=desc")
    assert logins_on(page) == ["student-2", "student-1", "s1"]
    page = await played.world.page("lecturer", "/teach/roster?sort=newest&order=asc")
    assert logins_on(page) == ["s1", "student-1", "student-2"]


async def test_submissions_are_searched_sorted_and_filtered(played: Played) -> None:
    failed = played.fail(played.add_version())
    async with played.world.browser("lecturer") as browser:
        pattern = re.compile(r"/my/versions/(\d+)\"><bdi>")
        newest = pattern.findall(await browser.text("/teach/submissions"))
        assert newest[0] == str(failed.id)
        assert pattern.findall(await browser.text("/teach/submissions?state=failed")) == [str(failed.id)]
        others = pattern.findall(await browser.text("/teach/submissions?q=student-2"))
        assert others == [str(played.versions["Team 2 v1"].id)]
        by_team = pattern.findall(await browser.text("/teach/submissions?sort=team&order=desc"))
        assert by_team[0] == others[0]


async def test_the_journal_is_searched_and_filtered(played: Played) -> None:
    course, lecturer = played.world.course, played.world.accounts["lecturer"]
    for name, action in (("Größe_1", "team.rename"), ("Groesse1", "account.add")):
        with course.act(NOW, lecturer.id, action, name, name="x%y"):
            pass
    with course.act(NOW, None, "tournament.finish", "cup"):
        pass
    async with played.world.browser("lecturer") as browser:

        async def subjects(query: str) -> set[str]:
            page = await browser.text(f"/teach/journal?{query}")
            assert "Older entries" not in page
            return {name for name in ("Größe_1", "Groesse1", "cup") if name in page.partition("<tbody>")[2]}

        assert await subjects("") == {"Größe_1", "Groesse1", "cup"}
        assert await subjects("q=Gr%C3%B6%C3%9Fe_") == {"Größe_1"}
        assert await subjects("q=x%25y&group=account") == {"Groesse1"}
        assert await subjects("by=0") == {"cup"}
        assert await subjects("group=made-up&by=x&order=asc") == {"Größe_1", "Groesse1", "cup"}
        assert await subjects("q=nothing") == set()
        page = await browser.text("/teach/journal")
        assert "The server finished the tournament cup." in page
        assert "lecturer renamed the team Größe_1 to x%y." in page


async def test_the_journal_has_pages_in_both_orders(played: Played) -> None:
    for number in range(60):
        with played.world.course.act(NOW, None, "team.rename", f"team-{number}", name="x"):
            pass
    async with played.world.browser("lecturer") as browser:
        for order in ("", "asc"):
            first = await browser.text(f"/teach/journal?group=team&order={order}")
            link = re.search(r'rel="next" href="([^"]+)"', first)
            assert link is not None
            second = await browser.text(unescape(link[1]))
            numbers = [re.findall(r"renamed the team team-(\d+) ", page) for page in (first, second)]
            expected = [str(number) for number in range(60)]
            assert numbers[0] + numbers[1] == (expected if order else expected[::-1])


@pytest.mark.parametrize("action", SENTENCES)
def test_an_entry_without_details_is_a_sentence(action: str) -> None:
    event = Event(1, NOW, None, action, "cup", {})
    text = sentence_of(event, "lecturer")
    assert text.startswith("lecturer ")
    assert action not in text


def test_an_entry_with_details_is_a_sentence() -> None:
    changes = {"deadline": [None, "2026-03-02T12:00:00Z"], "uploads_open": [True, False]}
    settings = Event(1, NOW, 1, "settings.change", "", {"changes": changes})
    assert sentence_of(settings, "lecturer") == (
        "lecturer changed the settings: “Deadline” from none to 2026-03-02 12:00 UTC; "
        "“Uploads are open” from yes to no"
    )
    void = Event(2, NOW, 1, "tournament.void", "cup", {"ruled_on": "r001-1v2", "why": "the lights went out"})
    assert sentence_of(void, "lecturer") == (
        "lecturer declared r001-1v2 void in the tournament cup: the lights went out"
    )
    bots = {"pairs": 2, "bot": "Otters v1", "opponent": "ladder:1"}
    assert sentence_of(Event(4, NOW, 1, "challenge.ask", "challenge 7", bots), "student-1") == (
        "student-1 challenged ladder:1 with Otters v1 to 2 pairs of games (challenge 7)"
    )
    signed_in = Event(3, NOW, 1, "account.sign_in", "student-1")
    assert sentence_of(signed_in, "student-1") == "student-1 signed in"
    assert sentence_of(Event(4, NOW, 1, "other.act", "x"), "admin") == "admin: other.act x"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([], ["ladder:1", "minimax:2"], "from none to ladder:1, minimax:2"),
        (0.5, 3, "from 0.5 to 3"),
        ({"a": "ä"}, "", 'from {"a": "ä"} to none'),
    ],
)
def test_the_values_of_a_changed_setting_are_words(before: object, after: object, words: str) -> None:
    changes = {"references": [before, after]}
    event = Event(1, NOW, 1, "settings.change", "", {"changes": changes})
    assert sentence_of(event, "lecturer").endswith(words)


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ("tournament.publish", "lecturer published the draft of the tournament cup"),
        ("tournament.hide", "lecturer hid the tournament cup from students"),
        ("tournament.show", "lecturer showed the tournament cup to students again"),
        ("tournament.cancel", "lecturer cancelled the tournament cup"),
        ("tournament.delete", "lecturer deleted the tournament cup"),
        ("challenge.consent", "lecturer stopped accepting challenges to cup"),
    ],
)
def test_each_button_of_a_tournament_has_a_sentence(action: str, sentence: str) -> None:
    assert sentence_of(Event(1, NOW, 1, action, "cup"), "lecturer") == sentence
