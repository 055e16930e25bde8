"""Atom feeds: what is in them for whom, and that their secret addresses can be revoked."""

import re
import xml.etree.ElementTree as ET
from datetime import datetime

import pytest

from tests.support.courses import NOW, after, decide
from tests.web.played_course import Played
from tests.web.site import ORIGIN
from tournaments.course.challenges import Side
from tournaments.course.model import (
    BotChoice,
    ChallengeState,
    CompetitionKind,
    CompetitionState,
    VersionState,
)
from tournaments.course.people.credentials import FEED_PREFIX
from tournaments.web.views.atom import NAMESPACE, FeedEntry, atom_feed

pytestmark = pytest.mark.any_database

ATOM = f"{{{NAMESPACE}}}"


def entries_in(feed: str | bytes) -> dict[str, ET.Element]:
    """Return the entries of a feed by title; the feed has all elements that Atom requires."""
    root = ET.fromstring(feed)
    assert root.tag == f"{ATOM}feed"
    for element in (root, *root.findall(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(f"{ATOM}{name}")) == 1
            assert element.findtext(f"{ATOM}{name}")
        moment = element.findtext(f"{ATOM}updated") or ""
        assert datetime.fromisoformat(moment).utcoffset() is not None
    assert root.findtext(f"{ATOM}author/{ATOM}name")
    entries = root.findall(f"{ATOM}entry")
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(ids) == len(set(ids))
    return {entry.findtext(f"{ATOM}title") or "": entry for entry in entries}


def finish_cup(played: Played) -> None:
    played.world.course.competitions.set_state(played.cup.id, CompetitionState.FINISHED, "", NOW)


def address_of(played: Played, role: str) -> str:
    account = played.world.accounts[role]
    secret, _ = played.world.course.tokens.make(account.id, "news feed", NOW, None, FEED_PREFIX)
    return f"/feeds/{secret}"


def end_challenge(played: Played) -> None:
    """Let Team 1 challenge Team 2, and win."""
    course = played.world.course
    course.settings.change(challenges_with="teams")
    spec = {"game": course.settings.load().game}
    store = course.competitions.add("challenges", "Challenges", CompetitionKind.CHALLENGE, spec, None, NOW)
    played.service.tournaments.challenges[store.id] = played.service.database.competition("challenges")
    sides = []
    for number, name in enumerate(("Team 1 v1", "Team 2 v1")):
        version = played.versions[name]
        course.competitions.enter(store.id, name, version.id, None)
        sides.append(Side(BotChoice(version_id=version.id), name, played.world.teams[number].id))
    team, student = played.world.teams[0], played.world.accounts["student"]
    rules = course.settings.load()
    own, other = sides
    one = course.challenges.add(store.id, team.id, student.id, own, other, 1, "page", NOW, rules)
    course.challenges.count(one.id, 2, 0, 0)
    course.challenges.end(one.id, ChallengeState.FINISHED, NOW)


def test_any_text_is_well_formed_and_unchanged_when_it_is_read() -> None:
    title = 'a <b> & "c" ]]> \N{SNOWMAN} '
    feed = atom_feed("T & Co", ORIGIN, "/", [FeedEntry("/x", "1", title + "\0\x1b\ud800\uffff", title, NOW)])
    [(found, entry)] = entries_in(feed).items()
    assert found == title + r"\x00\x1b\ud800\uffff"
    assert entry.findtext(f"{ATOM}summary") == title


def test_a_feed_without_entries_is_valid() -> None:
    assert entries_in(atom_feed("T", ORIGIN, "/", [])) == {}


async def test_everybody_finds_finished_tournaments(played: Played) -> None:
    played.show("named")
    async with played.world.browser() as browser:
        assert 'type="application/atom+xml"' in await browser.text("/competitions")
        assert entries_in(await browser.text("/feed.atom")) == {}  # the cup is being played
        finish_cup(played)
        answer = await browser.get("/feed.atom")
        assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
        entry = entries_in(answer.text)["Cup of Team 1 is finished"]
        link = entry.find(f"{ATOM}link")
        assert link is not None
        assert link.attrib["href"] == f"{ORIGIN}/competitions/cup"
        same = await browser.get("/feed.atom", headers={"if-none-match": answer.headers["etag"]})
        assert (same.status_code, same.text) == (304, "")


async def test_the_public_feed_follows_the_settings_of_visibility(played: Played) -> None:
    finish_cup(played)
    played.show("nobody")
    async with played.world.browser() as browser:
        assert (await browser.get("/feed.atom")).status_code == 303
        assert "application/atom+xml" not in await browser.text("/sign-in")
        played.show("anonymous")
        [title] = entries_in(await browser.text("/feed.atom"))
        assert not re.search("Team[ _]1", title)
        played.world.course.competitions.set_hidden(played.cup.id, True)
        assert entries_in(await browser.text("/feed.atom")) == {}


@pytest.mark.parametrize(
    ("role", "titles"),
    [
        (
            "student",
            {
                "Version 1 qualified",
                "Version 2 did not qualify",
                "The challenge against Team 2 v1 is over",
            },
        ),
        ("other", {"Version 1 qualified", "The challenge by Team 1 v1 is over"}),
        ("lecturer", set()),
    ],
)
async def test_a_team_finds_its_checks_and_challenges(played: Played, role: str, titles: set[str]) -> None:
    played.fail(played.add_version())
    end_challenge(played)
    finish_cup(played)
    found = entries_in(await played.world.page("visitor", address_of(played, role)))
    assert set(found) == titles | {"Cup of Team 1 is finished"}
    results = {entry.findtext(f"{ATOM}summary") for title, entry in found.items() if "challenge" in title}
    wins, losses = (2, 0) if role == "student" else (0, 2)
    assert results <= {f"Your bot: {wins} won, 0 drawn, {losses} lost."}


async def test_the_result_of_each_check_has_an_id_of_its_own(played: Played) -> None:
    course, version = played.world.course, played.versions["Team 1 v1"]
    path = address_of(played, "student")

    async def newest() -> str | None:
        [entry] = [
            one
            for title, one in entries_in(await played.world.page("visitor", path)).items()
            if "Version 1" in title
        ]
        return entry.findtext(f"{ATOM}id")

    before = await newest()
    course.versions.requeue(version.id)
    decide(course, version, VersionState.FAILED, after(hours=1))
    assert await newest() != before


async def test_a_team_finds_pseudonyms_where_students_see_no_names(played: Played) -> None:
    played.show("nobody", students_see_names=False)
    end_challenge(played)
    feed = await played.world.page("visitor", address_of(played, "student"))
    assert any(title.startswith("The challenge against") for title in entries_in(feed))
    assert not re.search(r"Team[ _+]?2", feed)


async def test_an_address_is_shown_once_opens_nothing_else_and_is_revoked(played: Played) -> None:
    world = played.world
    async with world.browser("student") as student, world.browser() as reader:
        made = await student.submit("/account", to="/account/feed")
        assert made.status_code == 201
        found = re.search(rf"{ORIGIN}(/feeds/feed_\w+)<", made.text)
        assert found
        address = found[1]
        assert address not in await student.text("/account")
        feed = await reader.text(address)
        assert "Version 1 qualified" in entries_in(feed)
        assert address not in feed
        bearer = {"authorization": f"Bearer {address.rpartition('/')[2]}"}
        assert (await reader.get("/api/v1/submissions", headers=bearer)).status_code == 401
        token = world.course.tokens.of(world.accounts["student"].id)[0]
        await student.submit("/account", to=f"/account/tokens/{token.id}/revoke")
        await reader.text(address, 404)


async def test_a_token_of_the_api_opens_no_feed(played: Played) -> None:
    await played.world.page("visitor", f"/feeds/{played.world.token('student')}", 404)


async def test_the_feed_of_a_disabled_account_is_not_found(played: Played) -> None:
    address = address_of(played, "student")
    played.world.course.accounts.set_disabled(played.world.accounts["student"].id, True)
    await played.world.page("visitor", address, 404)


async def test_an_account_has_a_greatest_number_of_tokens(played: Played) -> None:
    for _ in range(20):
        address_of(played, "student")
    async with played.world.browser("student") as browser:
        answer = await browser.submit("/account", {}, to="/account/feed")
    assert answer.status_code == 400
    assert "an account has at most 20 tokens: revoke one of them first" in answer.text
