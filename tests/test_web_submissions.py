"""A student's own pages: submitting, the check of a version, and what may be done with it."""

import errno
import io
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette import formparsers

from sample_bots.starters_catalog import STARTERS
from tests.web_played import SECRET, Played, fail, open_played, qualify
from tests.web_site import CSRF, NOW, ORIGIN, Browser
from tournaments.bots.storage import ContentError
from tournaments.bots.upload.archive import read_upload
from tournaments.course.model import Checked, Version, VersionState
from tournaments.database.base import StoreError
from tournaments.server.checks.check_log import CheckLog
from tournaments.web.pages.starter_kits import kit

BOT = b"#!/usr/bin/env python3\nprint('MOVE;1')\n"
JSON = {"accept": "application/json"}


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path, pairs=0) as found:
        yield found


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_py", ".py"), content)
    return packed.getvalue()


async def send(browser: Browser, files: list[tuple[str, tuple[str, bytes]]], **headers: str) -> Any:
    page = (await browser.get("/my")).text
    csrf = CSRF.search(page)
    assert csrf is not None
    return await browser.post(
        "/my/upload", data={"csrf": csrf[1]}, files=files, headers={"origin": ORIGIN, **headers}
    )


def newest(played: Played) -> Version:
    return played.world.course.versions.of_team(played.world.teams[0].id)[0]


# Submitting.


async def test_a_zip_becomes_a_version(played: Played) -> None:
    async with played.world.browser("student") as browser:
        answer = await send(browser, [("file", ("bot.zip", zipped(bot__bot_py=BOT, bot__x_py=b"")))])
        version = newest(played)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/my/versions/{version.id}")
        page = (await browser.get(answer.headers["location"])).text
    assert version.number == 2
    assert [file.path for file in played.service.contents.read(version.content)] == ["bot.py", "x.py"]
    assert "Version 2 was received: 2 files." in page


async def test_a_single_file_becomes_a_version(played: Played) -> None:
    async with played.world.browser("student") as browser:
        assert (await send(browser, [("file", ("bot.py", BOT))])).status_code == 303
    (file,) = played.service.contents.read(newest(played).content)
    assert (file.path, file.content, file.executable) == ("bot.py", BOT, True)


async def test_a_folder_is_sent_by_the_script_file_by_file(played: Played) -> None:
    files = [("folder", (f"my-bot/{path}", BOT)) for path in ("bot.py", "src/a.py", ".git/config")]
    async with played.world.browser("student") as browser:
        answer = await send(browser, files, **JSON)
        version = newest(played)
        assert answer.json() == {"path": f"/my/versions/{version.id}"}
        page = (await browser.get(f"/my/versions/{version.id}")).text
    assert [file.path for file in played.service.contents.read(version.content)] == ["bot.py", "src/a.py"]
    assert "Left out, as no part of a bot: my-bot/.git." in page


@pytest.mark.parametrize("headers", [{}, JSON])
async def test_what_is_no_submission_is_refused_with_a_sentence(
    played: Played, headers: dict[str, str]
) -> None:
    hostile = io.BytesIO()
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("../<b>x</b>", b"x")
    async with played.world.browser("student") as browser:
        answer = await send(browser, [("file", ("bot.zip", hostile.getvalue()))], **headers)
    assert answer.status_code == 422
    assert "leads out of the bot's folder" in answer.text.replace("&#39;", "'")
    assert newest(played).number == 1
    if not headers:
        assert "<b>x</b>" not in answer.text
        assert 'role="alert"' in answer.text


@pytest.mark.parametrize("headers", [{}, JSON])
@pytest.mark.parametrize("error", [ContentError("/srv/x: no space"), StoreError("/srv/x", is_ours=True)])
async def test_an_upload_that_we_cannot_keep_is_our_fault(
    played: Played, monkeypatch: pytest.MonkeyPatch, error: Exception, headers: dict[str, str]
) -> None:
    async def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(played.service, "submit", full)
    async with played.world.browser("student") as browser:
        answer = await send(browser, [("file", ("bot.py", BOT))], **headers)
    assert answer.status_code == 503
    told = answer.json()["error"] if headers else answer.text
    assert "This server could not keep what you sent" in told
    assert "/srv/x" not in told


async def test_a_form_that_the_disk_does_not_take(
    played: Played, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/x")

    monkeypatch.setattr(formparsers, "SpooledTemporaryFile", full)
    async with played.world.browser("student") as browser:
        answer = await send(browser, [("file", ("bot.py", BOT))])
    assert answer.status_code == 503
    assert "This server could not keep what you sent" in answer.text
    assert "/srv/x" not in answer.text
    assert "No space left on device" in caplog.text
    assert newest(played).number == 1


async def test_nothing_chosen(played: Played) -> None:
    async with played.world.browser("student") as browser:
        answer = await browser.submit("/my", to="/my/upload")
    assert answer.status_code == 422
    assert "Choose a zip archive" in answer.text


@pytest.mark.parametrize("fields", [("file", "file"), ("file", "folder")])
async def test_more_than_one_choice(played: Played, fields: tuple[str, ...]) -> None:
    files = [(field, (f"{number}.py", BOT)) for number, field in enumerate(fields)]
    async with played.world.browser("student") as browser:
        answer = await send(browser, files)
    assert answer.status_code == 422
    assert "Choose one file alone" in answer.text
    assert newest(played).number == 1


async def test_the_same_files_are_no_new_version(played: Played) -> None:
    async with played.world.browser("student") as browser:
        await send(browser, [("file", ("bot.py", BOT))])
        answer = await send(browser, [("file", ("bot.py", BOT))])
        page = (await browser.get(answer.headers["location"])).text
    assert newest(played).number == 2
    assert "the same files as version 2" in page


async def test_a_large_upload_is_refused(played: Played) -> None:
    played.world.course.settings.change(upload_mb=0.01)
    async with played.world.browser("student") as browser:
        answer = await send(browser, [("file", ("bot.py", b"x" * 20_000))])
    assert answer.status_code == 422
    assert "are allowed" in answer.text
    assert newest(played).number == 1


async def test_after_the_deadline(played: Played) -> None:
    played.world.course.settings.change(deadline=NOW - timedelta(hours=1))
    async with played.world.browser("student") as browser:
        page = (await browser.get("/my")).text
    assert "The deadline was" in page
    assert 'type="file"' not in page


async def test_what_is_left_of_the_limits(played: Played) -> None:
    played.world.course.settings.change(uploads_per_day=2, uploads_total=10)
    async with played.world.browser("student") as browser:
        assert "1 upload left today. 9 uploads left in all." in (await browser.get("/my")).text
        await send(browser, [("file", ("bot.py", BOT))])
        page = (await browser.get("/my")).text
    assert "0 uploads left today" in page
    assert "yours are used up" in page


async def test_uploads_are_limited_in_number(played: Played) -> None:
    async with played.world.browser("student") as browser:
        found = [(await send(browser, [("file", ("bot.py", b"%d" % n))])).status_code for n in range(12)]
    assert found[0] == 303
    assert found[-1] == 429


async def test_a_team_without_a_bot_is_shown_how_to_begin(played: Played) -> None:
    course = played.world.course
    team = course.teams.add("Team 3", NOW)
    course.accounts.move(played.world.accounts["student"].id, team.id)
    async with played.world.browser("student") as browser:
        page = (await browser.get("/my")).text
        for name in STARTERS:
            assert f"/starters/{name}.zip" in page
            assert (await browser.get(f"/starters/{name}.zip")).status_code == 200
        assert (await browser.get("/starters/cobol.zip")).status_code == 404


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_kit_can_be_submitted_as_it_is(name: str) -> None:
    upload = read_upload(f"{name}.zip", io.BytesIO(kit(name)))
    paths = {file.path for file in upload.files}
    assert {"bot.toml", STARTERS[name].source} <= paths
    assert upload.stripped == f"{name}-bot"


# A version.


async def test_a_failed_version_tells_each_item_with_what_to_do(played: Played) -> None:
    version = played.world.course.versions.add(
        played.world.teams[0].id, "c" * 64, 1, 9, played.world.accounts["student"].id, "page", NOW
    )[0]
    fail(played.world, version)
    async with played.world.browser("student") as browser:
        page = (await browser.get(f"/my/versions/{version.id}")).text
    assert page.index("Plays as South") < page.index("Took START after 40 ms.")
    assert "Lost 3 of 3 games: it sent &#39;&lt;b&gt;debug&lt;/b&gt;&#39;." in page
    assert "What to do:</strong> print debug text to standard error." in page
    assert "&lt;- &lt;b&gt;debug&lt;/b&gt;" in page
    assert "It did not qualify: 1 item of its check failed. Version 1 stays active." in page
    assert "kalarena play . first_legal -v" in page
    assert "1.25 ms" in page
    assert "<i>everything</i>" not in page
    assert "/withdraw" not in page


async def test_a_failed_build_shows_the_log(played: Played) -> None:
    course, team = played.world.course, played.world.teams[0]
    student = played.world.accounts["student"].id
    version = course.versions.add(team.id, "c" * 64, 1, 9, student, "page", NOW)[0]
    course.versions.begin_check(version.id)
    checked = Checked(None, "javac: error: Bot.java:3: ';' expected")
    course.versions.decide(version.id, VersionState.FAILED, checked, None, 0, NOW)
    async with played.world.browser("student") as browser:
        page = (await browser.get(f"/my/versions/{version.id}")).text
    assert "could not be built or started" in page
    assert "<details open>" in page
    assert "Bot.java:3" in page


async def test_a_check_that_goes_on_is_followed(played: Played) -> None:
    version = played.world.course.versions.add(
        played.world.teams[0].id, "c" * 64, 1, 9, played.world.accounts["student"].id, "page", NOW
    )[0]
    log = CheckLog(["building", "<script>", "third"])
    played.service.logs[version.id] = log
    path = f"/my/versions/{version.id}"
    async with played.world.browser("student") as browser:
        page = (await browser.get(path)).text
        assert f'data-events="{path}/events" data-after="3"' in page
        assert '<noscript><meta http-equiv="refresh"' in page
        assert "&lt;script&gt;" in page
        log.close()
        events = (await browser.get(f"{path}/events?after=1")).text
        again = (await browser.get(f"{path}/events?after=1", headers={"last-event-id": "2"})).text
    assert 'event: line\nid: 2\ndata: "<script>"' in events
    assert 'id: 3\ndata: "third"' in events
    assert "building" not in events
    assert events.rstrip().endswith("event: over\ndata: null")
    assert "id: 2" not in again
    assert "id: 3" in again


async def test_the_source_is_for_its_team_and_lecturers(played: Played) -> None:
    version = played.versions["Team 1 v1"]
    path = f"/my/versions/{version.id}/source.zip"
    for role, status in (("student", 200), ("lecturer", 200), ("other", 404)):
        async with played.world.browser(role) as browser:
            answer = await browser.get(path)
        assert answer.status_code == status
        if status == 200:
            with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                assert archive.namelist() == ["Team_1-v1/bot.py"]
                assert archive.read("Team_1-v1/bot.py") == b"print(1)\n"


async def test_another_team_s_version_is_as_if_it_were_not_there(played: Played) -> None:
    version = played.versions["Team 1 v1"]
    async with played.world.browser("other") as browser:
        there, nowhere = [(await browser.get(f"/my/versions/{n}")) for n in (version.id, 999)]
    assert there.status_code == nowhere.status_code == 404
    assert SECRET not in there.text


async def test_withdrawing_and_using_again(played: Played) -> None:
    course, version = played.world.course, played.versions["Team 1 v1"]
    path = f"/my/versions/{version.id}"
    async with played.world.browser("student") as browser:
        answer = await browser.submit(path, {"withdrawn": "yes"}, to=f"{path}/withdraw")
        assert (answer.status_code, answer.headers["location"]) == (303, path)
        assert version.team_id not in course.versions.current()
        assert "does not play" in (await browser.get(path)).text
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
        assert played.service.rechecked == [version.id]
        assert (await browser.submit("/account", to=f"{path}/recheck")).status_code == 400  # it is queued
    assert played.service.rechecked == [version.id]


async def test_a_newer_version_takes_the_place(played: Played) -> None:
    old = played.versions["Team 1 v1"]
    student = played.world.accounts["student"].id
    new = played.world.course.versions.add(old.team_id, "c" * 64, 1, 9, student, "page", NOW)[0]
    qualify(played.world, new)
    async with played.world.browser("student") as browser:
        assert "version 2 is newer and active" in (await browser.get(f"/my/versions/{old.id}")).text
        assert "Qualified and active." in (await browser.get(f"/my/versions/{new.id}")).text
