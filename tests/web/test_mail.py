"""Pages of mail: the own address and its confirmation, addresses on lecturers' pages, the dashboard."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.courses import NOW, add_version, decide
from tests.web.played_course import PlayedService
from tests.web.site import World, open_world
from tournaments.course.course import Course
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import CHOSEN_KINDS, LinkPurpose, Mail, MailAddress, MailKind, VersionState
from tournaments.database.location import Database

ADA, NEW = "ada@example.org", "ada@new.example.org"
ALL = {kind.value: "on" for kind in CHOSEN_KINDS}


def service_of(database: Database, data: Path) -> PlayedService:
    service = PlayedService(data)
    service.database = database
    return service


@pytest.fixture
def world(database: Database, tmp_path: Path) -> Iterator[World]:
    """A site that sends mail; the student has an address from the roster."""
    with open_world(
        database.course(), tmp_path, service_of(database, tmp_path), mail=MailHome("home-1", b"key")
    ) as world:
        world.course.addresses.enrol(world.accounts["student"].id, ADA)
        yield world


def waiting(world: World) -> list[Mail]:
    return world.course.outbox.due(NOW, 99)


def address_of(world: World, role: str = "student") -> MailAddress:
    return world.course.addresses.of(world.accounts[role].id)


async def test_a_student_changes_the_own_address(world: World) -> None:
    async with world.browser("student") as student, world.browser("other") as other:
        assert ADA in await student.text("/account")
        asked = await student.submit("/account", {"address": NEW} | ALL, to="/account/mail")
        assert asked.headers["location"] == "/account#mail"
        assert address_of(world) == MailAddress(ADA, NEW)
        assert "is not confirmed yet" in await student.text("/account")
        [mail] = waiting(world)
        assert mail.address == NEW
        assert (await other.get(mail.path)).status_code == 404
        async with world.browser() as visitor:
            assert (await visitor.get(mail.path)).status_code == 303
        page = await student.text(mail.path)
        assert NEW in page
        assert address_of(world).address == ADA  # a mail program may have opened the page
        assert (await student.submit(mail.path)).status_code == 303
        assert address_of(world) == MailAddress(NEW, is_own=True)
        assert (await student.get(mail.path)).status_code == 404
    entries = world.course.journal.entries(9, group="account")
    assert [one.detail["change"] for one in entries if one.action == "account.mail"] == ["confirmed", "new"]
    assert "example.org" not in repr(entries)


async def test_a_student_chooses_kinds_and_removes_the_address(world: World) -> None:
    team, student = world.teams[0], world.accounts["student"]
    async with world.browser("student") as browser:
        await browser.submit("/account", {"address": ADA, "challenges": "on"}, to="/account/mail")
        assert address_of(world) == MailAddress(ADA, kinds=frozenset({MailKind.CHALLENGES}))
        decide(world.course, add_version(world.course, team, student, "c1"), VersionState.FAILED)
        assert waiting(world) == []
        await browser.submit("/account", {"address": ADA} | ALL, to="/account/mail")
        decide(world.course, add_version(world.course, team, student, "c2"), VersionState.FAILED)
        assert len(waiting(world)) == 1
        await browser.submit("/account", {"address": ""} | ALL, to="/account/mail")
        assert address_of(world) == MailAddress(is_own=True)
        assert waiting(world) == []
        before = world.course.journal.entries(1)
        await browser.submit("/account", {"address": ""} | ALL, to="/account/mail")
        assert world.course.journal.entries(1) == before  # nothing was changed


async def test_what_is_no_address_is_explained(world: World) -> None:
    async with world.browser("student") as browser:
        answer = await browser.submit("/account", {"address": "a b@example.org"}, to="/account/mail")
        assert answer.status_code == 400
        assert "is no e-mail address" in answer.text
        assert 'value="a b@example.org"' in answer.text


async def test_nobody_can_have_mails_sent_to_many_addresses(world: World) -> None:
    async with world.browser("student") as browser:
        statuses = [
            (
                await browser.submit("/account", {"address": f"{number}@example.org"}, to="/account/mail")
            ).status_code
            for number in range(6)
        ]
    assert statuses == [303] * 5 + [429]
    assert len(waiting(world)) == 1  # of each account the newest


async def test_a_lecturer_sets_the_address_of_a_student_until_the_student_does(world: World) -> None:
    page = f"/teach/roster/{world.accounts['other'].id}"
    values = {"name": "student-2", "team": "Team 2", "email": "other@example.org"}
    async with world.browser("lecturer") as browser:
        await browser.submit(page, values, to=f"{page}/change")
        assert address_of(world, "other") == MailAddress("other@example.org")
        assert 'value="other@example.org"' in await browser.text(page)
        shown = await browser.submit(page, to=f"{page}/link")
        assert "It also goes out by mail." in shown.text
        [mail] = waiting(world)
        assert mail.path in shown.text
        answer = await browser.submit(page, values | {"email": "other at example"}, to=f"{page}/change")
        assert (answer.status_code, "is no e-mail address" in answer.text) == (400, True)
        world.course.addresses.remove(world.accounts["other"].id)
        assert "none, as the student has decided" in await browser.text(page)


async def test_a_roster_with_addresses(world: World) -> None:
    roster = "login,name,team,email\ns-8,S 8,Team 8,s-8@example.org\ns-9,S 9,Team 8,\n"
    async with world.browser("lecturer") as browser:
        preview = await browser.submit("/teach/roster/import", {"roster": roster})
        assert "1 e-mail address is set" in preview.text
        assert "1 link goes out by mail" in preview.text
        assert waiting(world) == []
        done = await browser.submit("/teach/roster/import", {"roster": roster, "do": "import"})
        assert "1 of them also goes out by mail" in done.text
    [mail] = waiting(world)
    assert (mail.address, mail.path in done.text) == ("s-8@example.org", True)


async def test_the_dashboard_shows_what_could_not_be_delivered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.course.links.make(world.accounts["student"].id, LinkPurpose.RESET, NOW)
    [mail] = waiting(world)
    assert "1 mail waits" in await world.page("lecturer", "/teach")
    world.course.outbox.failed(mail.id, "550 5.1.1 <b>no such user</b>", NOW)
    text = await world.page("lecturer", "/teach")
    assert "1 mail could not be delivered." in text
    assert f"{ADA}&gt;" in text
    assert "&lt;b&gt;no such user" in text
    assert mail.path not in text
    status = replace(world.site.service.status(), mail_trouble="mail.example.org:587: Connection refused")
    monkeypatch.setattr(world.site.service, "status", lambda: status)
    needs = (await world.page("lecturer", "/teach")).partition("Needs action")[2].partition("</section>")[0]
    assert "No mail can be delivered now." in needs


async def test_failed_and_held_mails_are_sent_or_deleted_from_the_dashboard(
    world: World, database: Database
) -> None:
    student = world.accounts["student"].id
    world.course.links.make(student, LinkPurpose.RESET, NOW)
    [mail] = waiting(world)
    world.course.outbox.failed(mail.id, "550 5.1.1 no such user", NOW)
    async with world.browser("lecturer") as browser:

        async def done(do: str) -> str:
            await browser.submit("/teach", {"do": do}, to="/teach/mail")
            return await browser.text("/teach")

        assert "1 mail is waiting to be sent again." in await done("retry")
        assert [one.id for one in waiting(world)] == [mail.id]
        for do, sentence, number in (
            ("release", "1 mail is waiting to be sent.", 1),
            ("discard", "1 mail is deleted.", 0),
        ):
            with Course(database.course(), mail=MailHome("another", b"key")) as original:
                original.links.make(student, LinkPurpose.RESET, NOW)  # it replaces the mail before
            assert "1 mail of another data directory is held" in await browser.text("/teach")
            assert sentence in await done(do)
            assert len(waiting(world)) == number
        answer = await browser.submit("/teach", {"do": "x"}, to="/teach/mail")
        assert answer.status_code == 400
        journal = await browser.text("/teach/journal")
    for predicate in ("queued 1 failed mail again", "released 1 held mail", "deleted 1 held mail"):
        assert f"lecturer {predicate}." in journal


async def test_a_site_without_mail_says_nothing_of_it(database: Database, tmp_path: Path) -> None:
    with open_world(database.course(), tmp_path, service_of(database, tmp_path)) as world:
        for role, path in (
            ("student", "/account"),
            ("lecturer", "/teach"),
            ("lecturer", f"/teach/roster/{world.accounts['student'].id}"),
        ):
            assert not re.search(r"[Mm]ail\b", await world.page(role, path)), path
        async with world.browser("student") as browser:
            answer = await browser.submit("/account", {"address": ADA}, to="/account/mail")
            assert answer.status_code == 400
        world.course.addresses.enrol(world.accounts["student"].id, ADA)
        async with world.browser("student") as browser:  # who can remove an address all the same
            assert "This server sends no mail now." in await browser.text("/account")
            await browser.submit("/account", {"address": ""}, to="/account/mail")
        assert address_of(world).address is None
