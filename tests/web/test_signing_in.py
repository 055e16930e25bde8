"""Signing in and out, one-time links, and the account's page."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.support.courses import set_password
from tests.support.databases import database_of
from tests.web.site import BROWSER, CSRF, ORIGIN, PASSWORD, Browser, World, open_world
from tournaments.course.model import LinkPurpose
from tournaments.database.base import StoreError
from tournaments.web.http import static_files
from tournaments.web.pages import account, signing_in

NEW = "another long password"
SESSION = "kalarena-session"
WRONG = {"login": "student-1", "password": "wrong password"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    routes = (*signing_in.ROUTES, *account.ROUTES, *static_files.ROUTES)
    with open_world(database_of(tmp_path).course(), tmp_path, routes=routes) as made:
        yield made


def make_link(world: World, login: str = "student-3", purpose: LinkPurpose = LinkPurpose.INVITATION) -> str:
    found = world.course.accounts.by_login(login)
    if found is None:
        role = world.accounts["student"].role
        found = world.course.accounts.add(login, "Student 3", role, None, world.clock())
    return f"/links/{world.course.links.make(found.id, purpose, world.clock())}"


def passwords(password: str = NEW, again: str | None = None) -> dict[str, str]:
    return {"password": password, "again": password if again is None else again}


async def is_signed_in(browser: Browser) -> bool:
    return (await browser.get("/account")).status_code == 200


# Signing in.


async def test_signing_in_leads_to_the_requested_page(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.get("/account?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/account%3Fx%3D1")
        (wanted,) = re.findall(r'name="next" value="([^"]+)"', await browser.text(answer.headers["location"]))
        fields = {"login": " Student-1 ", "password": PASSWORD, "next": wanted}
        answer = await browser.submit("/sign-in", fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account?x=1")
        assert await is_signed_in(browser)
        assert (await browser.get("/sign-in?next=/account")).headers["location"] == "/account"


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example/", "/\\evil.example", ""])
async def test_signing_in_never_leads_to_another_site(world: World, wanted: str) -> None:
    async with world.browser() as browser:
        fields = {"login": "student-1", "password": PASSWORD, "next": wanted}
        assert (await browser.submit("/sign-in", fields)).headers["location"] == "/"
        assert (await browser.get("/sign-in", params={"next": wanted})).headers["location"] == "/"


async def test_wrong_passwords_and_logins_look_the_same(world: World) -> None:
    pages = set()
    async with world.browser() as browser:
        for login in ("student-1", "nobody", "student-9"):
            answer = await browser.submit("/sign-in", WRONG | {"login": login})
            assert answer.status_code == 403
            pages.add(CSRF.sub("", answer.text).replace(login, ""))
        (page,) = pages
        assert "The login or the password is wrong." in page
        assert "wrong password" not in page
        assert not await is_signed_in(browser)
        answer = await browser.submit("/sign-in", {"login": '"><script>x', "password": "p"})
        assert "<script>x" not in answer.text
        assert "&#34;&gt;&lt;script&gt;x" in answer.text
        for fields in ({}, {"login": "student-1"}, {"password": "x"}, {"login": "?"}):
            assert (await browser.submit("/sign-in", fields)).status_code == 403


async def test_guesses_of_a_password_are_limited(world: World) -> None:
    async with world.browser() as browser, world.browser() as another:

        async def guess(**fields: str) -> int:
            return (await browser.submit("/sign-in", WRONG | fields)).status_code

        assert [await guess() for _ in range(11)] == [403] * 10 + [429]
        for spelling in ("STUDENT-1", " \uff33tudent-1", "\u017ftudent-1"):  # of the same login
            assert await guess(login=spelling, password=PASSWORD) == 429
        await another.sign_in("student-2")  # other logins are not limited
        world.clock.advance(seconds=20)
        assert await guess(password=PASSWORD) == 303
    for _ in range(12):  # right passwords do not count
        async with world.browser() as browser:
            await browser.sign_in("student-2")


@pytest.mark.parametrize(("table", "method"), [("accounts", "check_password"), ("sessions", "start")])
async def test_failures_of_the_database_use_up_no_attempts(
    world: World, monkeypatch: pytest.MonkeyPatch, table: str, method: str
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("course.db: the disk is full", is_ours=True)

    async with world.browser() as browser:
        fields = {"csrf": await browser.csrf("/sign-in"), "login": "student-1", "password": PASSWORD}
        with monkeypatch.context() as failing:
            failing.setattr(getattr(world.course, table), method, fail)
            for _ in range(61):  # more than an address may try
                answer = await browser.post("/sign-in", data=fields, headers=BROWSER)
                assert answer.status_code == 503
        assert (await browser.post("/sign-in", data=fields, headers=BROWSER)).status_code == 303


@asynccontextmanager
async def browser_at(world: World, address: str) -> AsyncIterator[Browser]:
    transport = httpx2.ASGITransport(app=world.app, client=(address, 50_000))
    async with Browser(transport=transport, base_url=ORIGIN) as browser:
        yield browser


async def test_guesses_from_elsewhere_do_not_keep_the_owner_out(world: World) -> None:
    """A wrong password each 2.5 seconds, for ten minutes; then from many addresses."""
    async with (
        browser_at(world, "192.0.2.1") as guesser,
        browser_at(world, "192.0.2.2") as owner,
        browser_at(world, "192.0.2.3") as another,
    ):
        csrf = await guesser.csrf("/sign-in")
        guess = WRONG | {"csrf": csrf}
        for _ in range(240):
            world.clock.advance(seconds=2.5)
            answer = await guesser.post("/sign-in", data=guess, headers=BROWSER)
        assert answer.status_code == 429
        await owner.sign_in("student-1")  # from an address without wrong passwords
        await owner.submit("/account", to="/sign-out")
        limit = world.site.limits.sign_in_login
        while not limit.take("student-1", world.clock().timestamp()):
            pass  # guesses from many addresses
        answer = await another.submit("/sign-in", {"login": "student-1", "password": PASSWORD})
        assert answer.status_code == 429
        await owner.sign_in("student-1")  # a browser that the account has used
        assert (await owner.submit("/account", to="/sign-out")).status_code == 303
        answers = [await owner.submit("/sign-in", WRONG) for _ in range(11)]
        assert [answer.status_code for answer in answers] == [403] * 10 + [429]


async def test_sign_ins_are_in_the_journal(world: World) -> None:
    async with world.browser() as browser:
        await browser.submit("/sign-in", WRONG)
        await browser.sign_in("student-1")
    (entry,) = world.course.journal.entries(9)
    assert (entry.action, entry.subject) == ("account.sign_in", "student-1")
    assert entry.account_id == world.accounts["student"].id


async def test_guesses_from_an_address_are_limited(world: World) -> None:
    async with world.browser() as browser:
        csrf = await browser.csrf("/sign-in")
        statuses = []
        for number in range(62):
            fields = {"csrf": csrf, "login": f"guess-{number}", "password": "p"}
            statuses.append((await browser.post("/sign-in", data=fields, headers=BROWSER)).status_code)
        assert statuses == [403] * 60 + [429] * 2
        statuses = [(await browser.get(f"/links/{number}")).status_code for number in range(61)]
        assert statuses == [404] * 60 + [429]


# Sessions.


async def test_signing_out_ends_the_session(world: World) -> None:
    async with world.browser("student") as browser:
        assert (await browser.get("/sign-out")).status_code == 405
        assert (await browser.post("/sign-out", headers=BROWSER)).status_code == 403
        first = browser.cookies[SESSION]
        await browser.submit("/account", to="/sign-out")
        assert SESSION not in browser.cookies
        browser.cookies.set(SESSION, first)  # a copy of the cookie
        assert not await is_signed_in(browser)
        browser.cookies.clear()
        await browser.sign_in("student-1")
        assert browser.cookies[SESSION] != first


async def test_a_session_ends_after_two_weeks_without_use(world: World) -> None:
    async with world.browser("student") as browser:
        for _ in range(3):
            world.clock.advance(days=10)
            assert await is_signed_in(browser)
        world.clock.advance(days=15)
        assert not await is_signed_in(browser)


async def test_an_unsigned_cookie_is_no_session(world: World) -> None:
    secret, _session = world.course.sessions.start(world.accounts["admin"].id, world.clock())
    async with world.browser() as browser:
        for value in ("x", "", "a.b.c", secret):
            browser.cookies.set(SESSION, value)
            assert not await is_signed_in(browser)


async def test_signing_in_again_ends_the_session_before(world: World) -> None:
    async with world.browser() as browser, world.browser() as copy:
        await browser.sign_in("student-1")
        copy.cookies.update(browser.cookies)
        assert await is_signed_in(copy)
        fields = {"login": "student-2", "password": PASSWORD}
        answer = await browser.submit("/account", fields, to="/sign-in")  # from a page in another tab
        assert answer.status_code == 303
        assert "student-2" in await browser.text("/account")
        assert not await is_signed_in(copy)


# Links.


async def test_a_new_password_overtakes_what_is_done_with_the_old_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old password was right when it was checked, and is changed before a session begins."""
    accounts = world.course.accounts
    check = accounts.check_password
    async with world.browser() as known, world.browser() as other:
        await known.sign_in("student-1")

        def overtaken(login: str, password: str) -> object:
            found = check(login, password)
            assert found is not None
            set_password(world.course, found[0].id, NEW)
            return found

        monkeypatch.setattr(accounts, "check_password", overtaken)
        answer = await other.submit("/sign-in", {"login": "student-1", "password": PASSWORD})
        assert (answer.status_code, signing_in.WRONG in answer.text) == (403, True)
        assert not await is_signed_in(other)

        monkeypatch.setattr(accounts, "check_password", check)
        await known.sign_in("student-1", NEW)
        page = await known.csrf("/account")
        monkeypatch.setattr(accounts, "check_password", overtaken)
        fields = {"csrf": page, "old": NEW} | passwords("a third long password")
        answer = await known.post("/account/password", data=fields, headers=BROWSER)
        assert (answer.status_code, "changed in the meantime" in answer.text) == (400, True)
    assert check("student-1", NEW) is not None


async def test_a_link_sets_a_password_once(world: World) -> None:
    link = make_link(world)
    async with world.browser() as browser, world.browser() as second:
        for _ in range(3):  # opening the page does not use it up
            shown = await browser.get(link)
            assert (shown.status_code, "student-3" in shown.text) == (200, True)
            assert shown.headers["referrer-policy"] == "same-origin"
            assert shown.headers["cache-control"] == "no-store"
        for fields, sentence in (
            (passwords(again="something else"), "The two passwords are not the same."),
            (passwords("short"), "at least 10 characters"),
            (passwords("x" * 201), "at most 200 characters"),
            (passwords(""), "at least 10 characters"),
        ):
            answer = await browser.submit(link, fields)
            assert (answer.status_code, sentence in answer.text) == (400, True)
        answer = await browser.submit(link, passwords())
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "Welcome, Student 3." in await browser.text("/account")
        assert "used already, or is too old" in await second.text(link, 404)
        await second.sign_in("student-3", NEW)


@pytest.mark.parametrize(("role", "path"), [("student", "/my"), ("lecturer", "/teach"), ("admin", "/teach")])
async def test_a_link_leads_to_the_first_page_of_the_role(world: World, role: str, path: str) -> None:
    async with world.browser() as browser:
        answer = await browser.submit(make_link(world, world.accounts[role].login), passwords())
    assert answer.headers["location"] == path


async def test_links_that_are_not_valid(world: World) -> None:
    old = make_link(world)
    world.clock.advance(days=31)
    disabled = world.course.accounts.by_login("student-3")
    assert disabled
    of_disabled = make_link(world)
    world.course.accounts.set_disabled(disabled.id, True)
    async with world.browser() as browser:
        for address in (old, of_disabled, "/links/x", "/links/%F0%9F%92%A9", "/links/" + "x" * 5000):
            await browser.text(address, 404)
        await browser.get("/sign-in")
        assert (await browser.post(old, headers=BROWSER)).status_code == 403


async def test_a_reset_ends_all_sessions(world: World) -> None:
    async with world.browser("student") as browser, world.browser() as owner:
        link = make_link(world, "student-1", LinkPurpose.RESET)
        assert (await owner.submit(link, passwords())).status_code == 303
        assert await is_signed_in(owner)
        assert not await is_signed_in(browser)


# The account.


async def test_the_account_has_its_login_and_team(world: World) -> None:
    page = await world.page("student", "/account")
    assert ("student-1" in page, "Team 1" in page, "student-2" in page) == (True, True, False)
    assert "Team 1" not in await world.page("lecturer", "/account")


async def test_a_new_password_ends_other_sessions(world: World) -> None:
    async with world.browser("student") as here, world.browser("student") as there:
        for fields, sentence in (
            ({"old": "wrong password", **passwords()}, "The old password is wrong."),
            ({"old": PASSWORD, **passwords(again="x")}, "The two new passwords are not the same."),
            ({"old": PASSWORD, **passwords("short")}, "at least 10 characters"),
            ({}, "The old password is wrong."),
        ):
            answer = await here.submit("/account", fields, to="/account/password")
            assert (answer.status_code, sentence in answer.text) == (400, True)
            assert PASSWORD not in answer.text
        assert await is_signed_in(there)
        answer = await here.submit("/account", {"old": PASSWORD, **passwords()}, to="/account/password")
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        assert "other browsers are signed out" in await here.text("/account")
        assert await is_signed_in(here)
        assert not await is_signed_in(there)
        await there.sign_in("student-1", NEW)


@pytest.mark.parametrize(
    ("fields", "tokens", "sentence"),
    [({}, 2, "Your 2 tokens are revoked, too."), ({"keep_tokens": "on"}, 2, ""), ({}, 0, "")],
)
async def test_a_new_password_revokes_tokens(
    world: World, fields: dict[str, str], tokens: int, sentence: str
) -> None:
    """Unless their owner says otherwise: a program of somebody else may have one."""
    made = [world.token("student") for _ in range(tokens)]
    async with world.browser("student") as browser:
        page = await browser.text("/account")
        assert "your tokens are revoked" in page
        assert ("Keep my tokens" in page, "until you revoke it" in page) == (tokens > 0, tokens > 0)
        form = {"old": PASSWORD, **passwords(), **fields}
        assert (await browser.submit("/account", form, to="/account/password")).status_code == 303
        page = await browser.text("/account")
        assert sentence in page
        assert ("are revoked, too" in page) is bool(sentence)
    valid = [world.course.tokens.find(secret, world.clock()) is not None for secret in made]
    assert valid == [bool(fields)] * tokens


async def test_guesses_of_the_old_password_are_limited(world: World) -> None:
    async with world.browser("student") as browser:
        fields = {"old": "wrong password", **passwords()}
        answers = [await browser.submit("/account", fields, to="/account/password") for _ in range(11)]
    assert [answer.status_code for answer in answers] == [400] * 10 + [429]


async def test_a_token_is_shown_once_and_revoked_by_its_owner(world: World) -> None:
    tokens = world.course.tokens
    of_other, token_of_other = tokens.make(world.accounts["other"].id, "laptop", world.clock(), None)
    async with world.browser("student") as browser:
        answer = await browser.submit("/account", {"name": "my <laptop>", "days": "30"}, to="/account/tokens")
        assert answer.status_code == 201
        (secret,) = re.findall(r">(kal_\w{40})<", answer.text)
        page = await browser.text("/account")
        assert ("my &lt;laptop&gt;" in page, "kal_" in page) == (True, False)
        found = tokens.find(secret, world.clock())
        assert found is not None
        assert found.id == world.accounts["student"].id
        (token,) = tokens.of(found.id)
        for number, status in ((token.id, 303), (token_of_other.id, 404)):
            answer = await browser.submit("/account", to=f"/account/tokens/{number}/revoke")
            assert answer.status_code == status
    assert tokens.find(secret, world.clock()) is None
    assert tokens.find(of_other, world.clock()) is not None


async def test_invalid_tokens_are_not_made(world: World) -> None:
    async with world.browser("student") as browser:

        async def refused(name: str, days: str) -> str:
            answer = await browser.submit("/account", {"name": name, "days": days}, to="/account/tokens")
            assert answer.status_code == 400, (name, days)
            return answer.text

        for name, days in (("", "30"), ("x" * 1000, "30"), ("x", "1"), ("x\x07y", "30"), ("x", "")):
            await refused(name, days)
        for _ in range(account.MOST_TOKENS):
            world.token("student")
        page = await refused("x", "never")
        assert "revoke one first" in page
        assert '<option value="never" selected>' in page
