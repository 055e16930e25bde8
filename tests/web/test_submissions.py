"""A student's own pages: uploads, the check of a version, and the actions on it."""

import errno
import io
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
import trio
from starlette import formparsers

from sample_bots.starters_catalog import STARTERS
from tests.support.courses import NOW, set_password
from tests.web.played_course import SECRET, Played
from tests.web.site import BROWSER, Browser
from tournaments.bots.storage import ContentError
from tournaments.bots.upload.archive import read_upload
from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, Version, VersionState
from tournaments.database.base import StoreError
from tournaments.server.checks.check_log import CheckLog
from tournaments.server.competitions.entrants import candidates
from tournaments.server.competitions.tournament_spec import TournamentSpec, TournamentSpecError
from tournaments.web.http import uploads
from tournaments.web.http.routing import MOST_THREADS
from tournaments.web.http.uploads import MOST_UNDER_WAY
from tournaments.web.pages.starter_kits import kit
from tournaments.web.pages.versions import MOST_PACKED

BOT = b"#!/usr/bin/env python3\nprint('MOVE;1')\n"
JSON = {"accept": "application/json"}
Files = list[tuple[str, tuple[str, bytes]]]


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


async def send(browser: Browser, files: Files, **headers: str) -> Any:
    return await browser.submit("/my", to="/my/upload", files=files, headers=headers)


async def send_bot(browser: Browser, content: bytes = BOT) -> Any:
    return await send(browser, [("file", ("bot.py", content))])


def end_access(course: Course, account: Account) -> None:
    """End the sessions and the tokens of an account."""
    set_password(course, account.id, "another long password")
    course.tokens.revoke_all(account.id)


def newest(played: Played) -> Version:
    return played.world.course.versions.of_team(played.world.teams[0].id)[0]


# Uploads.


@pytest.mark.parametrize(
    ("files", "stored", "sentence"),
    [
        (
            [("file", ("bot.zip", zipped(**{"bot/bot.py": BOT, "bot/x.py": b""})))],
            ["bot.py", "x.py"],
            "Version 2 was received: 2 files.",
        ),
        ([("file", ("bot.py", BOT))], ["bot.py"], "Version 2 was received: 1 file."),
        (
            [("folder", (f"my-bot/{path}", BOT)) for path in ("bot.py", "src/a.py", ".git/config")],
            ["bot.py", "src/a.py"],
            "Left out, as no part of a bot: my-bot/.git.",
        ),
    ],
)
async def test_an_upload_becomes_a_version(
    played: Played, files: Files, stored: list[str], sentence: str
) -> None:
    is_folder = files[0][0] == "folder"  # which the page's script sends
    async with played.world.browser("student") as browser:
        answer = await send(browser, files, **(JSON if is_folder else {}))
        path = f"/my/versions/{newest(played).id}"
        if is_folder:
            assert answer.json() == {"path": path}
        else:
            assert (answer.status_code, answer.headers["location"]) == (303, path)
        assert sentence in await browser.text(path)
    content = played.service.contents.read(newest(played).content)
    assert [file.path for file in content] == stored
    assert (content[0].content, content[0].executable) == (BOT, files[0][1][0] != "bot.zip")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([("file", ("bot.zip", zipped(**{"../<b>x</b>": b"x"})))], "leads out of the bot's folder"),
        ([], "Choose a zip archive"),
        ([("file", ("1.py", BOT)), ("file", ("2.py", BOT))], "Choose one file alone"),
        ([("file", ("1.py", BOT)), ("folder", ("2.py", BOT))], "Choose one file alone"),
        ([("file", ("bot.py", b"x" * 20_000))], "are allowed"),
    ],
)
async def test_an_upload_is_refused_with_a_sentence(played: Played, files: Files, words: str) -> None:
    played.world.course.settings.change(upload_mb=0.01)
    async with played.world.browser("student") as browser:
        for headers in ({}, JSON):
            answer = await send(browser, files, **headers)
            assert answer.status_code == 422
            assert words in answer.text.replace("&#39;", "'")
            if not headers:
                assert "<b>x</b>" not in answer.text
                assert 'role="alert"' in answer.text
    assert newest(played).number == 1


@pytest.mark.parametrize(
    "error",
    [
        ContentError("/srv/x: no space"),
        StoreError("/srv/x", is_ours=True),
        OSError(errno.ENOSPC, "No space left on device", "/srv/x"),
    ],
)
async def test_an_upload_that_cannot_be_stored_is_a_fault_of_the_server(
    played: Played, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(**_: object) -> None:
        raise error

    async def fail_later(*_: object) -> None:
        raise error

    if isinstance(error, OSError):
        monkeypatch.setattr(formparsers, "SpooledTemporaryFile", fail)
    else:
        monkeypatch.setattr(played.service, "submit", fail_later)
    async with played.world.browser("student") as browser:
        for headers in ({}, JSON):
            answer = await send(browser, [("file", ("bot.py", BOT))], **headers)
            assert answer.status_code == 503
            sentence = answer.json()["error"] if headers else answer.text
            assert "This server could not keep what you sent" in sentence
            assert "/srv/x" not in sentence
    assert "/srv/x" in caplog.text
    assert newest(played).number == 1


async def test_a_mistake_in_storing_an_upload_is_a_fault_of_the_server(
    played: Played, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("course.db was written by a newer version")

    monkeypatch.setattr(played.service, "submit", fail)
    async with played.world.browser("student") as browser:
        answer = await send_bot(browser)
    assert (answer.status_code, "noted as fault" in answer.text) == (500, True)
    assert "course.db was written by a newer version" in caplog.text


async def test_an_upload_counts_from_the_moment_at_which_it_had_arrived(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads wait for one another to be unpacked, which can take longer than is left."""
    world = played.world
    world.course.settings.change(deadline=world.clock() + timedelta(seconds=1))
    arrived = world.clock()

    def late(*arguments: Any) -> Any:
        world.clock.advance(seconds=5)
        return read_upload(*arguments)

    monkeypatch.setattr(uploads, "read_upload", late)
    async with world.browser("student") as browser:
        assert (await send_bot(browser)).status_code == 303
        assert (newest(played).number, newest(played).submitted_at) == (2, arrived)
        assert "The deadline was" in (await send_bot(browser, BOT * 2)).text
    assert newest(played).number == 2


@pytest.mark.parametrize("way", ["page", "api"])
async def test_an_upload_that_is_not_stored_yet_is_missed_by_no_tournament_of_frozen_versions(
    played: Played, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    world, course, found = played.world, played.world.course, list[str]()
    spec = TournamentSpec.read({"title": "Cup", "bots": "frozen"})

    def unpack(*arguments: Any) -> Any:
        frozen_at = world.clock()
        for at in (frozen_at - timedelta(seconds=1), frozen_at):  # before the upload and after it
            try:
                candidates(spec, course.versions, course.teams, at, frozen_at)
            except TournamentSpecError as error:
                found.extend(error.problems)
        return read_upload(*arguments)

    monkeypatch.setattr(uploads, "read_upload", unpack)
    async with world.browser("student") as browser:
        if way == "page":
            await send_bot(browser)
        else:
            await browser.post(WAYS["api"][0], content=BOT, headers=world.bearer("student"))
    assert newest(played).number == 2
    (problem,) = found
    assert problem.startswith("bots: an upload of Team 1 was submitted in time, and is still being stored")
    assert course.versions.teams_arriving(NOW) == set()


async def test_few_uploads_of_an_account_are_received_at_a_time(played: Played) -> None:
    begun, ended = trio.Semaphore(0), trio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"--x\r\n"
        begun.release()
        await ended.wait()

    async def send_slowly(browser: Browser) -> None:
        kind = {"content-type": "multipart/form-data; boundary=x"}
        assert (await browser.post("/my/upload", content=slow(), headers=BROWSER | kind)).status_code == 403

    async with (
        played.world.browser("student") as browser,
        played.world.browser("other") as other,
        trio.open_nursery() as nursery,
    ):
        for _ in range(MOST_UNDER_WAY):
            nursery.start_soon(send_slowly, browser)
            await begun.acquire()
        answer = await send(browser, [("file", ("bot.py", BOT))], **JSON)
        assert (answer.status_code, "still being received" in answer.json()["error"]) == (429, True)
        assert (await send_bot(other)).status_code == 303
        ended.set()
    async with played.world.browser("student") as browser:
        assert (await send_bot(browser)).status_code == 303


WAYS = {
    "page": ("/my/upload", b'--x\r\nContent-Disposition: form-data; name="file"; filename="bot.py"\r\n\r\n'),
    "api": ("/api/v1/submissions?name=bot.py", b""),
}
"""Address of an upload, and the first bytes of its body."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda course, account: course.accounts.set_disabled(account.id, True), 401),
        (lambda course, account: course.accounts.move(account.id, None), 403),
        (lambda course, account: course.accounts.move(account.id, course.teams.by_name("Team 2").id), 403),
        (end_access, 401),
    ],
    ids=["disabled", "without a team", "moved", "access ended"],
)
async def test_an_upload_is_refused_if_the_account_changes_while_it_arrives(
    played: Played, way: str, change: Callable[[Course, Account], object], status: int
) -> None:
    path, first = WAYS[way]

    async def slow() -> AsyncIterator[bytes]:
        yield first + BOT
        change(played.world.course, played.world.accounts["student"])
        yield b"\r\n--x--\r\n"

    async with played.world.browser("student") as browser:
        headers = BROWSER | JSON | played.world.bearer("student") | {"x-csrf": await browser.csrf("/my")}
        headers["content-type"] = "multipart/form-data; boundary=x"
        answer = await browser.post(path, content=slow(), headers=headers)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert {one.number for one in played.world.course.versions.all(9)} == {1}


async def test_a_script_gets_the_reason_when_its_session_has_ended(played: Played) -> None:
    async with played.world.browser() as browser:
        answer = await browser.post("/my/upload", headers=BROWSER | JSON)
        assert (answer.status_code, answer.json()) == (401, {"error": "Sign in to see this page."})


async def test_the_same_files_are_no_new_version(played: Played) -> None:
    async with played.world.browser("student") as browser:
        await send_bot(browser)
        answer = await send_bot(browser)
        assert "the same files as version 2" in await browser.text(answer.headers["location"])
    assert newest(played).number == 2


async def test_the_storage_that_is_left_is_shown_with_built_bots(played: Played) -> None:
    assert "MiB left" not in await played.world.page("student", "/my")
    played.service.built = 300 << 20
    assert "200.0 of 500 MiB left for files" in await played.world.page("student", "/my")


async def test_the_deadline_and_the_limits_of_uploads_are_shown(played: Played) -> None:
    settings = played.world.course.settings
    settings.change(uploads_per_day=2, uploads_total=10)
    async with played.world.browser("student") as browser:
        # The version of the course is of today.
        assert "1 upload left today. 9 uploads left in all." in await browser.text("/my")
        await send_bot(browser)
        page = await browser.text("/my")
        assert "0 uploads left today" in page
        assert "yours are used up" in page
        settings.change(deadline=NOW - timedelta(hours=1))
        page = await browser.text("/my")
    assert "The deadline was" in page
    assert 'type="file"' not in page


async def test_the_rate_of_uploads_is_limited(played: Played) -> None:
    async with played.world.browser("student") as browser:
        found = [(await send_bot(browser, b"%d" % number)).status_code for number in range(11)]
    assert found == [303] * 10 + [429]


async def test_a_team_without_a_bot_sees_the_starter_kits(played: Played) -> None:
    course = played.world.course
    course.accounts.move(played.world.accounts["student"].id, course.teams.add("Team 3", NOW).id)
    async with played.world.browser("student") as browser:
        page = await browser.text("/my")
        assert all(f"/starters/{name}.zip" in page for name in STARTERS)
        await browser.text("/starters/cobol.zip", 404)
        for name, starter in STARTERS.items():
            answer = await browser.get(f"/starters/{name}.zip")
            assert answer.content == kit(name)
            upload = read_upload(f"{name}.zip", io.BytesIO(answer.content))
            assert {"bot.toml", starter.source} <= {file.path for file in upload.files}


# A version.


async def test_a_failed_version_shows_each_item_with_its_remedy(played: Played) -> None:
    version = played.fail(played.add_version())
    page = await played.world.page("student", f"/my/versions/{version.id}")
    assert page.index("Plays as South") < page.index("Took START after 40 ms.")
    for text in (
        "Lost 3 of 3 games: it sent &#39;&lt;b&gt;debug&lt;/b&gt;&#39;.",
        "What to do:</strong> print debug text to standard error.",
        "&lt;- &lt;b&gt;debug&lt;/b&gt;",
        "It did not qualify: 1 item of its check failed. Version 1 stays the current one.",
        "kalarena play . first_legal -v",
        "1.25 ms",
    ):
        assert text in page
    assert "<i>everything</i>" not in page
    assert "/withdraw" not in page


async def test_a_failed_build_shows_its_log(played: Played) -> None:
    version, versions = played.add_version(), played.world.course.versions
    versions.begin_check(version.id)
    checked = Checked(None, "javac: error: Bot.java:3: ';' expected")
    versions.decide(version.id, VersionState.FAILED, checked, None, 0, NOW)
    page = await played.world.page("student", f"/my/versions/{version.id}")
    for text in ("could not be built or started", "<details open>", "Bot.java:3"):
        assert text in page


async def test_a_version_that_could_not_be_checked_is_not_blamed(played: Played) -> None:
    version, versions = played.add_version(), played.world.course.versions
    versions.begin_check(version.id)
    versions.decide(version.id, VersionState.STUCK, Checked(None, "log"), None, 0, NOW)
    page = await played.world.page("student", f"/my/versions/{version.id}")
    assert "The server could not check it; the bot is not at fault." in page


async def test_a_report_of_a_newer_release_is_left_out(played: Played) -> None:
    version, versions = played.add_version(), played.world.course.versions
    versions.begin_check(version.id)
    newer = Checked({"schema": 99, "items": []}, "the end of the log")
    versions.decide(version.id, VersionState.FAILED, newer, None, 2, NOW)
    page = await played.world.page("student", f"/my/versions/{version.id}")
    assert "2 items of its check failed" in page
    assert "the end of the log" in page


async def test_a_running_check_can_be_followed(played: Played) -> None:
    version = played.add_version()
    log = played.service.logs[version.id] = CheckLog(["building", "<script>", "third"])
    path = f"/my/versions/{version.id}"
    async with played.world.browser("student") as browser:
        page = await browser.text(path)
        assert f'data-events="{path}/events" data-after="3"' in page
        assert '<noscript><meta http-equiv="refresh"' in page
        assert "&lt;script&gt;" in page
        log.close()
        events = await browser.text(f"{path}/events?after=1")
        again = (await browser.get(f"{path}/events?after=1", headers={"last-event-id": "2"})).text
    assert 'event: line\nid: 2\ndata: "<script>"' in events
    assert 'id: 3\ndata: "third"' in events
    assert "building" not in events
    assert events.rstrip().endswith("event: over\ndata: null")
    assert ("id: 2" in again, "id: 3" in again) == (False, True)


async def test_the_source_is_for_its_team_and_lecturers(played: Played) -> None:
    path = f"/my/versions/{played.versions['Team 1 v1'].id}/source.zip"
    for role in ("student", "lecturer"):
        async with played.world.browser(role) as browser:
            answer = await browser.get(path)
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.namelist() == ["Team_1-v1/bot.py"]
            assert archive.read("Team_1-v1/bot.py") == b"print(1)\n"
    async with played.world.browser("other") as browser:  # as if there were no such version
        hidden = await browser.text(path.removesuffix("/source.zip"), 404)
        assert SECRET not in hidden
        assert hidden == await browser.text("/my/versions/999", 404)
        await browser.text(path, 404)


async def test_downloads_of_sources_take_no_threads_from_pages(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, begun, go_on = played.service.contents.read, 0, Event()

    def slow(digest: str) -> Any:
        nonlocal begun
        begun += 1
        go_on.wait(30)
        return read(digest)

    monkeypatch.setattr(played.service.contents, "read", slow)
    path = f"/my/versions/{played.versions['Team 1 v1'].id}/source.zip"
    with trio.fail_after(30):
        async with played.world.browser("student") as browser, trio.open_nursery() as nursery:
            for _ in range(MOST_THREADS + 1):
                nursery.start_soon(browser.get, path)
            while begun < MOST_PACKED:
                await trio.to_thread.run_sync(int)
            assert "Team 1" in await browser.text("/my")
            assert begun == MOST_PACKED
            go_on.set()


async def test_a_source_that_cannot_be_packed_is_a_fault_of_the_server(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/x")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    path = f"/my/versions/{played.versions['Team 1 v1'].id}/source.zip"
    for role, is_told in (("student", False), ("lecturer", True)):
        text = await played.world.page(role, path, 503)
        assert ("its disk may be full" in text, "/srv/x" in text) == (True, is_told)


async def test_a_version_is_withdrawn_and_restored(played: Played) -> None:
    course, version = played.world.course, played.versions["Team 1 v1"]
    path = f"/my/versions/{version.id}"
    async with played.world.browser("student") as browser:
        answer = await browser.submit(path, {"withdrawn": "yes"}, to=f"{path}/withdraw")
        assert (answer.status_code, answer.headers["location"]) == (303, path)
        assert version.team_id not in course.versions.current()
        assert "does not play" in await browser.text(path)
        await browser.submit(path, {"withdrawn": "no"}, to=f"{path}/withdraw")
    assert course.versions.current()[version.team_id].id == version.id
    assert played.service.changes == 2
    assert [event.action for event in course.journal.entries(2)] == ["version.restore", "version.withdraw"]


@pytest.mark.parametrize("moment", ["deadline", "frozen_at"])
async def test_after_the_deadline_only_a_lecturer_withdraws(played: Played, moment: str) -> None:
    course, version = played.world.course, played.versions["Team 1 v1"]
    course.settings.change(**{moment: NOW - timedelta(hours=1)})
    path = f"/my/versions/{version.id}"
    for role, status in (("student", 409), ("lecturer", 303)):
        async with played.world.browser(role) as browser:
            answer = await browser.submit(path, {"withdrawn": "yes"}, to=f"{path}/withdraw")
        assert answer.status_code == status
    assert course.versions.of_team(version.team_id)[0].withdrawn


async def test_a_lecturer_has_a_version_checked_again(played: Played) -> None:
    version = played.versions["Team 1 v1"]
    path = f"/my/versions/{version.id}"
    async with played.world.browser("lecturer") as browser:
        assert (await browser.submit(path, to=f"{path}/recheck")).status_code == 303
        assert (await browser.submit("/account", to=f"{path}/recheck")).status_code == 400  # it is queued
    assert played.service.rechecked == [version.id]


async def test_a_newer_version_replaces_an_older_one(played: Played) -> None:
    old, new = played.versions["Team 1 v1"], played.qualify(played.add_version())
    async with played.world.browser("student") as browser:
        assert "the newer version 2 is the current one" in await browser.text(f"/my/versions/{old.id}")
        assert "Qualified: this is the team" in await browser.text(f"/my/versions/{new.id}")


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(days=3, hours=4, minutes=5), "in 3 days 4 hours"),
        (timedelta(days=1, minutes=5), "in 1 day"),
        (timedelta(hours=1, minutes=1, seconds=59), "in 1 hour 1 minute"),
        (timedelta(seconds=59), "in less than a minute"),
        (timedelta(hours=-2), "2 hours ago"),
    ],
)
async def test_deadlines_are_counted_down(played: Played, left: timedelta, words: str) -> None:
    world = played.world
    world.course.settings.change(deadline=world.clock() + left)
    for role, path in (("student", "/"), ("student", "/my"), ("lecturer", "/teach")):
        assert f'Z">{words}</span>' in await world.page(role, path), path


async def test_deadlines_are_shown_in_the_zone_of_the_course(played: Played) -> None:
    played.world.course.settings.change(time_zone="Europe/Berlin", deadline="2026-05-01T18:00")
    for role, page in (("student", "/my"), ("student", "/"), ("lecturer", "/teach")):
        assert "2026-05-01 18:00 (Europe/Berlin)" in await played.world.page(role, page)
