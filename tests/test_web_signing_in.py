"""Signing in and out, one-time links, and the own account, on both databases."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web_site import CSRF, ORIGIN, PASSWORD, Browser, World, open_world
from tournaments.course.model import LinkPurpose
from tournaments.database.base import Location
from tournaments.web.http import static_files
from tournaments.web.pages import account, signing_in

NEW = "another long password"
SESSION = "kalarena-session"
BROWSER = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}


@pytest.fixture
def world(place: Location, tmp_path: Path) -> Iterator[World]:
    routes = (*signing_in.ROUTES, *account.ROUTES, *static_files.ROUTES)
    with open_world(place, tmp_path, routes=routes) as made:
        yield made


def invitation(world: World, login: str = "student-3", purpose: LinkPurpose = LinkPurpose.INVITATION) -> str:
    found = world.course.accounts.by_login(login)
    if found is None:
        found = world.course.accounts.add(
            login, "Student 3", world.accounts["student"].role, None, world.clock()
        )
    return f"/links/{world.course.links.make(found.id, purpose, world.clock())}"


async def is_signed_in(browser: Browser) -> bool:
    return (await browser.get("/account")).status_code == 200


async def test_signing_in_leads_to_where_one_wanted(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.get("/account?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/account%3Fx%3D1")
        shown = await browser.get(answer.headers["location"])
        (wanted,) = re.findall(r'name="next" value="([^"]+)"', shown.text)
        answer = await browser.submit(
            "/sign-in", {"login": " Student-1 ", "password": PASSWORD, "next": wanted}
        )
        assert (answer.status_code, answer.headers["location"]) == (303, "/account?x=1")
        assert await is_signed_in(browser)
        assert (await browser.get("/sign-in?next=/account")).headers["location"] == "/account"


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example/", "/\\evil.example", ""])
async def test_it_never_leads_elsewhere(world: World, wanted: str) -> None:
    async with world.browser() as browser:
        fields = {"login": "student-1", "password": PASSWORD, "next": wanted}
        assert (await browser.submit("/sign-in", fields)).headers["location"] == "/"
        assert (await browser.get("/sign-in", params={"next": wanted})).headers["location"] == "/"


async def test_wrong_passwords_and_logins_look_the_same(world: World) -> None:
    pages = []
    async with world.browser() as browser:
        for login in ("student-1", "nobody", "student-9"):
            answer = await browser.submit("/sign-in", {"login": login, "password": "wrong password"})
            assert answer.status_code == 403
            pages.append(CSRF.sub("", answer.text).replace(login, ""))
        assert pages[0] == pages[1] == pages[2]
        assert "The login or the password is wrong." in pages[0]
        assert "wrong password" not in pages[0]
        assert not await is_signed_in(browser)


async def test_what_was_typed_is_shown_as_text(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.submit("/sign-in", {"login": '"><script>x', "password": "p"})
        assert "<script>x" not in answer.text
        assert "&#34;&gt;&lt;script&gt;x" in answer.text


@pytest.mark.parametrize("fields", [{}, {"login": "student-1"}, {"password": "x"}, {"login": "\ud800"}])
async def test_forms_with_parts_missing(world: World, fields: dict[str, str]) -> None:
    fields = {name: value.encode("utf-8", "replace").decode() for name, value in fields.items()}
    async with world.browser() as browser:
        assert (await browser.submit("/sign-in", fields)).status_code == 403


async def test_guessing_is_slowed_down(world: World) -> None:
    async with world.browser() as browser, world.browser() as elsewhere:

        async def guess(login: str = "student-1", password: str = "wrong password") -> int:
            return (await browser.submit("/sign-in", {"login": login, "password": password})).status_code

        assert [await guess() for _ in range(11)] == [403] * 10 + [429]
        for way in ("STUDENT-1", " \uff33tudent-1", "\u017ftudent-1"):  # all of them are the same login
            assert await guess(way, PASSWORD) == 429
        await elsewhere.sign_in("student-2")  # other logins are free
        world.clock.advance(seconds=20)
        assert await guess(password=PASSWORD) == 303


async def test_right_passwords_cost_nothing(world: World) -> None:
    for _ in range(12):
        async with world.browser() as browser:
            await browser.sign_in("student-1")


async def test_an_address_has_its_own_limit(world: World) -> None:
    async with world.browser() as browser:
        shown = await browser.get("/sign-in")
        found = CSRF.search(shown.text)
        assert found
        statuses = []
        for number in range(62):
            fields = {"csrf": found[1], "login": f"guess-{number}", "password": "p"}
            statuses.append((await browser.post("/sign-in", data=fields, headers=BROWSER)).status_code)
        assert statuses == [403] * 60 + [429] * 2


async def test_a_session_is_a_new_one_and_ends(world: World) -> None:
    async with world.browser("student") as browser:
        first = browser.cookies[SESSION]
        await browser.submit("/account", to="/sign-out")
        assert SESSION not in browser.cookies
        browser.cookies.set(SESSION, first)  # a copy that somebody kept
        assert not await is_signed_in(browser)
        browser.cookies.clear()
        await browser.sign_in("student-1")
        assert browser.cookies[SESSION] != first


async def test_signing_out_needs_a_form(world: World) -> None:
    async with world.browser("student") as browser:
        assert (await browser.get("/sign-out")).status_code == 405
        assert (await browser.post("/sign-out", headers=BROWSER)).status_code == 403
        assert await is_signed_in(browser)


async def test_a_session_is_forgotten_after_two_weeks_without_use(world: World) -> None:
    async with world.browser("student") as browser:
        for _ in range(3):
            world.clock.advance(days=10)
            assert await is_signed_in(browser)
        world.clock.advance(days=15)
        assert not await is_signed_in(browser)


async def test_a_made_up_session_is_none(world: World) -> None:
    async with world.browser() as browser:
        for value in (
            "x",
            "",
            "a.b.c",
            world.course.sessions.start(world.accounts["admin"].id, world.clock())[0],
        ):
            browser.cookies.set(SESSION, value)
            assert not await is_signed_in(browser)


# Links.


async def test_a_link_lets_choose_a_password_once(world: World) -> None:
    link = invitation(world)
    async with world.browser() as browser, world.browser() as second:
        for _ in range(3):  # looking does not use it up
            shown = await browser.get(link)
            assert shown.status_code == 200
            assert "student-3" in shown.text
            assert shown.headers["referrer-policy"] == "same-origin"
            assert shown.headers["cache-control"] == "no-store"
        answer = await browser.submit(link, {"password": NEW, "again": NEW})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "Welcome, Student 3." in (await browser.get("/account")).text
        gone = await second.get(link)
        assert gone.status_code == 404
        assert "used already, or is too old" in gone.text
        await second.sign_in("student-3", NEW)


@pytest.mark.parametrize(
    ("password", "again", "sentence"),
    [
        (NEW, "something else", "The two passwords are not the same."),
        ("short", "short", "at least 10 characters"),
        ("x" * 201, "x" * 201, "at most 200 characters"),
        ("", "", "at least 10 characters"),
    ],
)
async def test_a_password_that_is_none_leaves_the_link(
    world: World, password: str, again: str, sentence: str
) -> None:
    link = invitation(world)
    async with world.browser() as browser:
        answer = await browser.submit(link, {"password": password, "again": again})
        assert answer.status_code == 400
        assert sentence in answer.text
        assert (await browser.submit(link, {"password": NEW, "again": NEW})).status_code == 303


@pytest.mark.parametrize(("role", "path"), [("student", "/my"), ("lecturer", "/teach"), ("admin", "/teach")])
async def test_who_is_new_sees_first_what_there_is_to_do(world: World, role: str, path: str) -> None:
    async with world.browser() as browser:
        link = invitation(world, world.accounts[role].login)
        answer = await browser.submit(link, {"password": NEW, "again": NEW})
    assert answer.headers["location"] == path


async def test_old_and_made_up_links(world: World) -> None:
    link = invitation(world)
    world.clock.advance(days=31)
    async with world.browser() as browser:
        for address in (link, "/links/x", "/links/%F0%9F%92%A9", "/links/" + "x" * 5000):
            assert (await browser.get(address)).status_code == 404
        await browser.get("/sign-in")
        assert (await browser.post(link, headers=BROWSER)).status_code == 403


async def test_a_reset_ends_what_was_signed_in(world: World) -> None:
    async with world.browser("student") as browser, world.browser() as owner:
        link = invitation(world, "student-1", LinkPurpose.RESET)
        assert (await owner.submit(link, {"password": NEW, "again": NEW})).status_code == 303
        assert await is_signed_in(owner)
        assert not await is_signed_in(browser)


async def test_a_link_of_a_disabled_account(world: World) -> None:
    link = invitation(world)
    account_of_link = world.course.accounts.by_login("student-3")
    assert account_of_link
    world.course.accounts.set_disabled(account_of_link.id, True)
    async with world.browser() as browser:
        assert (await browser.get(link)).status_code == 404


async def test_links_are_not_tried_by_thousands(world: World) -> None:
    async with world.browser() as browser:
        statuses = [(await browser.get(f"/links/{number}")).status_code for number in range(61)]
        assert statuses == [404] * 60 + [429]


# The account.


async def test_the_account_says_who_one_is(world: World) -> None:
    async with world.browser("student") as browser:
        page = (await browser.get("/account")).text
        assert "student-1" in page
        assert "Team 1" in page
        assert "student-2" not in page
    async with world.browser("lecturer") as browser:
        page = (await browser.get("/account")).text
        assert "Team 1" not in page


async def test_a_new_password_ends_other_sessions(world: World) -> None:
    async with world.browser("student") as here, world.browser("student") as there:
        fields = {"old": PASSWORD, "password": NEW, "again": NEW}
        answer = await here.submit("/account", fields, to="/account/password")
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        assert "other browsers are signed out" in (await here.get("/account")).text
        assert await is_signed_in(here)
        assert not await is_signed_in(there)
        await there.sign_in("student-1", NEW)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"old": "wrong password", "password": NEW, "again": NEW}, "The old password is wrong."),
        ({"old": PASSWORD, "password": NEW, "again": "x"}, "The two new passwords are not the same."),
        ({"old": PASSWORD, "password": "short", "again": "short"}, "at least 10 characters"),
        ({}, "The old password is wrong."),
    ],
)
async def test_a_password_that_is_not_changed(world: World, fields: dict[str, str], sentence: str) -> None:
    async with world.browser("student") as browser:
        answer = await browser.submit("/account", fields, to="/account/password")
        assert answer.status_code == 400
        assert sentence in answer.text
        assert PASSWORD not in answer.text
    async with world.browser("student"):
        pass


async def test_the_old_password_is_not_guessed_here_either(world: World) -> None:
    async with world.browser("student") as browser:
        fields = {"old": "wrong password", "password": NEW, "again": NEW}
        statuses = [
            (await browser.submit("/account", fields, to="/account/password")).status_code for _ in range(11)
        ]
        assert statuses == [400] * 10 + [429]


async def test_a_token_is_shown_once(world: World) -> None:
    async with world.browser("student") as browser:
        answer = await browser.submit("/account", {"name": "my <laptop>", "days": "30"}, to="/account/tokens")
        assert answer.status_code == 201
        (secret,) = re.findall(r">(kal_\w{40})<", answer.text)
        page = (await browser.get("/account")).text
        assert "my &lt;laptop&gt;" in page
        assert "kal_" not in page
        found = world.course.tokens.find(secret, world.clock())
        assert found is not None
        assert found.id == world.accounts["student"].id
        (token,) = world.course.tokens.of(found.id)
        answer = await browser.submit("/account", to=f"/account/tokens/{token.id}/revoke")
        assert answer.status_code == 303
        assert world.course.tokens.find(secret, world.clock()) is None


async def test_tokens_of_others_are_not_revoked(world: World) -> None:
    secret, token = world.course.tokens.make(world.accounts["other"].id, "laptop", world.clock(), None)
    async with world.browser("student") as browser:
        answer = await browser.submit("/account", to=f"/account/tokens/{token.id}/revoke")
        assert answer.status_code == 404
    assert world.course.tokens.find(secret, world.clock()) is not None


async def test_tokens_that_cannot_be(world: World) -> None:
    async with world.browser("student") as browser:
        for name, days in (("", "30"), ("x" * 1000, "30"), ("x", "1"), ("x\x07y", "30"), ("x", "")):
            fields = {"name": name, "days": days}
            answer = await browser.submit("/account", fields, to="/account/tokens")
            assert answer.status_code == 400, fields
        for number in range(account.MOST_TOKENS):
            world.course.tokens.make(world.accounts["student"].id, f"{number}", world.clock(), None)
        answer = await browser.submit("/account", {"name": "x", "days": "30"}, to="/account/tokens")
        assert answer.status_code == 400
        assert "revoke one first" in answer.text
