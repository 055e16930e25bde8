"""Page of a team's own bot: its versions, and the submission of a new one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import BinaryIO

import trio
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from referee.judge.verdict_text import counted
from sample_bots.starters_catalog import STARTERS
from tournaments.bots.upload.archive import read_folder
from tournaments.bots.upload.limits import MEBIBYTE, Upload, UploadError, UploadLimits, size_text
from tournaments.course.challenges import MOST_PAIRS
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, Team, Version
from tournaments.course.settings import Settings, day_of
from tournaments.course.upload_limits import may_upload
from tournaments.web.http.errors import BadInput, Unavailable, UploadRefused
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import form_of
from tournaments.web.http.request_context import settings_of, signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.http.uploads import (
    LARGEST_BODY,
    READING,
    submit_upload,
    unpack_upload,
    upload_limits,
)
from tournaments.web.views.challenge_view import form_for
from tournaments.web.views.published_marks import marks_of, published
from tournaments.web.views.visibility import titles_for

FILE, FOLDER = "file", "folder"
"""Fields of the form: one archive or program; the files of a folder, each named by its path."""
SHOWN = 5
"""Most names listed of the files that were left out."""


@dataclass(frozen=True)
class TeamRecords:
    """Database records of a team."""

    team: Team
    members: Sequence[Account]
    versions: Sequence[Version]
    """Newest first."""
    current: Version | None
    today: int
    """Number of the team's uploads on this day."""
    stored: int = 0
    """Bytes of the team's uploads and of the bots built from them; the same files count once."""

    @property
    def uploads(self) -> int:
        """Number of the team's uploads in all."""
        return self.versions[0].number if self.versions else 0


def team_records(
    course: Course, settings: Settings, team_id: int, current: Version | None, now: datetime
) -> TeamRecords:
    """Read the records; blocks.  ``current`` is the version that plays."""
    with course.reading():
        team = course.teams.get(team_id)
        if team is None:
            raise CourseError("Your team is no more: ask the lecturer.")
        return TeamRecords(
            team=team,
            members=course.accounts.of_team(team_id),
            versions=course.versions.of_team(team_id),
            current=current,
            today=course.versions.counts(team_id, day_of(settings, now)[0]),
            stored=course.versions.storage(team_id).of_team,
        )


def uploads_left(records: TeamRecords, settings: Settings) -> list[str]:
    """Return the number of uploads left under each limit, in words."""
    left = []
    if settings.uploads_per_day is not None:
        left.append(f"{counted(max(settings.uploads_per_day - records.today, 0), 'upload')} left today")
    if settings.uploads_total is not None:
        left.append(f"{counted(max(settings.uploads_total - records.uploads, 0), 'upload')} left in all")
    most = settings.team_storage_mb
    if most is not None and 2 * records.stored > most * MEBIBYTE:
        left.append(f"{max(0.0, most - records.stored / MEBIBYTE):.1f} of {most} MiB left for files")
    return left


def team_of(account: Account) -> int:
    """Return the team of a student; routes for students make sure that there is one."""
    assert account.team_id is not None
    return account.team_id


async def team_page(request: Request, status: int = 200, complaint: str = "") -> Response:
    """Show the page; ``complaint`` is the reason why an upload was refused."""
    site, settings, user = site_of(request), settings_of(request), signed_in_user(request)
    now = site.now()
    team_id = team_of(user)
    current = (await site.read_cache.get(site.course.versions.current)).get(team_id)

    def read() -> TeamRecords:
        found = team_records(site.course, settings, team_id, current, now)
        return replace(found, stored=found.stored + site.service.built_size(team_id))

    records = await in_thread(read)
    marks = marks_of(await site.read_cache.get(published, site.course), user.login)
    marked = {one.slug for one in marks}
    competitions = await site.read_cache.get(site.course.competitions.all) if marks else []
    # Marks go with a deleted tournament.  Those of a hidden one were published on purpose.
    tournaments = [one for one in competitions if one.slug in marked and one.is_visible(teaches=True)]
    titles = await titles_for(request, tournaments)
    return render(
        request,
        "my.html",
        status,
        active="my",
        records=records,
        refusal=may_upload(settings, now, records.today, records.uploads),
        left=uploads_left(records, settings),
        largest=size_text(upload_limits(settings).upload_bytes),
        complaint=complaint,
        starters=STARTERS,
        marks=[mark for mark in marks if mark.slug in titles],
        titles=titles,
        linked={one.slug for one in tournaments if one.is_visible(teaches=False)},
        challenge=await form_for(request),
        most_pairs=MOST_PAIRS,
    )


async def upload(request: Request) -> Response:
    """Submit a new version.  The answer to scripts is JSON: the path of the next page, or an error."""
    site, settings = site_of(request), settings_of(request)
    by_script = "application/json" in request.headers.get("accept", "")
    try:
        form = await form_of(request)
        at = site.now()  # before unpacking, for which uploads queue
        with site.course.versions.arriving(team_of(signed_in_user(request)), at):
            files = await _received(form, upload_limits(settings))
            version, is_new = await submit_upload(request, files, "page", at)
    except (UploadRefused, CourseError, BadInput, Unavailable) as error:
        status = error.status if isinstance(error, Unavailable) else 422
        sentence = _sentence(str(error))
        if by_script:
            return JSONResponse({"error": sentence}, status)
        return await team_page(request, status, sentence)
    path = f"/my/versions/{version.id}"
    note = received_text(version, files, is_new)
    if by_script:
        response: Response = JSONResponse({"path": path})
        noted = see_other(request, path, note)
        response.raw_headers += [pair for pair in noted.raw_headers if pair[0] == b"set-cookie"]
        return response
    return see_other(request, path, note)


async def _received(form: FormData, limits: UploadLimits) -> Upload:
    """Return the files of the form.  Raises UploadRefused, BadInput."""
    folder, files = _chosen(form, FOLDER), _chosen(form, FILE)
    if len(files) > 1 or (files and folder):
        raise BadInput("Choose one file alone: a zip archive of the bot's folder, if the bot has several.")
    if folder:
        return await trio.to_thread.run_sync(_folder, folder, limits, limiter=READING)
    if not files:
        raise BadInput("Choose a zip archive of the bot's folder, or the file that is the bot, first.")
    file: BinaryIO = files[0].file
    return await unpack_upload(files[0].filename or "", file, limits)


def _chosen(form: FormData, field: str) -> list[UploadFile]:
    """Return the files of a field; a browser sends one without a name where none was chosen."""
    return [part for part in form.getlist(field) if isinstance(part, UploadFile) and part.filename]


def _folder(parts: Sequence[UploadFile], limits: UploadLimits) -> Upload:
    """Return the files of a folder.  Raises UploadRefused."""
    try:
        return read_folder(((part.filename or "", part.file.read()) for part in parts), limits)
    except UploadError as error:
        raise UploadRefused(str(error)) from error


def received_text(version: Version, files: Upload, is_new: bool) -> str:
    """Return a sentence on the result of an upload, for the next page."""
    if not is_new:
        return f"These are the same files as version {version.number}'s: nothing was changed."
    count = len(files.files)
    sentence = f"Version {version.number} was received: {counted(count, 'file')}."
    if files.passed_over:
        names = ", ".join(files.passed_over[:SHOWN]) + (", ..." if len(files.passed_over) > SHOWN else "")
        sentence += f" Left out, as no part of a bot: {names}."
    return sentence


def _sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


ROUTES = (
    Route("GET", "/my", team_page, Access.STUDENT, "my"),
    Route("POST", "/my/upload", upload, Access.STUDENT, "upload", body_limit=LARGEST_BODY, is_upload=True),
)
