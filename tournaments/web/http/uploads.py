"""Uploads, from the body of a request to the files of a submission."""

import tempfile
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from datetime import datetime
from typing import BinaryIO, cast

import trio
from starlette.requests import Request

from tournaments.bots.storage import ContentError
from tournaments.bots.upload.archive import read_upload
from tournaments.bots.upload.limits import MEBIBYTE, Upload, UploadError, UploadLimits
from tournaments.course.model import Account, Version
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.web.http import auth
from tournaments.web.http.errors import Forbidden, TooLarge, TooMany, UploadRefused, storage_failure
from tournaments.web.http.request_context import Site, context_of, signed_in_user, site_of

LARGEST_BODY = 1024 * MEBIBYTE
"""Body limit of a route for uploads; the lecturer's limit is lower, and checked as they arrive."""
IN_MEMORY = MEBIBYTE
"""Bytes of an upload that are held in memory; larger uploads are written to the disk."""
MOST_READ = 2
"""Uploads unpacked at a time: each may take as much memory as all its files."""

TOO_MANY_UPLOADS = "You upload very often."
MOST_UNDER_WAY = 8
"""Uploads of an account that are received at a time, each with up to 22 MiB in memory.

A connection that broke counts until its time is over, which can be 17 minutes: a student with a bad
connection must be able to try again.
"""
RETRY_AFTER_S = 60.0
"""Seconds after which the next upload may be tried while others are received."""

READING = trio.CapacityLimiter(MOST_READ)
"""Limiter of all tasks that unpack uploads."""


def upload_limits(settings: Settings) -> UploadLimits:
    """Return the limits set by the lecturer; a larger upload may also be larger when unpacked."""
    usual = UploadLimits()
    upload = max(1, round(settings.upload_mb * MEBIBYTE))
    return UploadLimits(
        upload_bytes=upload,
        total_bytes=max(usual.total_bytes, 2 * upload),
        file_bytes=max(usual.file_bytes, upload),
    )


@contextmanager
def admitted_upload(site: Site, account: Account) -> Iterator[None]:
    """Count an upload of an account, which is received and unpacked within the block.

    Raises:
        TooMany: The account uploads too often, or too much at a time.

    """
    site.check_rate(site.limits.uploads, account.id, TOO_MANY_UPLOADS)
    under_way = site.uploads_under_way
    if under_way[account.id] >= MOST_UNDER_WAY:
        raise TooMany(
            f"{MOST_UNDER_WAY} of your uploads are still being received; one whose connection broke ends by "
            "itself after some minutes.",
            RETRY_AFTER_S,
        )
    under_way[account.id] += 1
    try:
        yield
    finally:
        under_way[account.id] -= 1


async def receive_upload(request: Request, limits: UploadLimits) -> BinaryIO:
    """Return the body of a request as a file, which the caller closes.

    Raises:
        TooLarge: The body has more bytes than an upload may have.
        Unavailable: The body cannot be written to the disk.

    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limits.upload_bytes:
        raise _too_large(limits)
    file = cast("BinaryIO", tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115 - the caller's
    try:
        waiting: list[bytes] = []
        count = kept = 0
        async with aclosing(request.stream()) as chunks:
            async for chunk in chunks:
                waiting.append(chunk)
                count += len(chunk)
                if count > limits.upload_bytes:
                    raise _too_large(limits)
                if count - kept >= IN_MEMORY:
                    await trio.to_thread.run_sync(file.write, b"".join(waiting))
                    waiting, kept = [], count
        await trio.to_thread.run_sync(file.write, b"".join(waiting))
    except OSError as error:
        file.close()
        raise storage_failure(error) from error
    except BaseException:
        file.close()
        raise
    return file


def _too_large(limits: UploadLimits) -> TooLarge:
    mebibytes = limits.upload_bytes / MEBIBYTE
    return TooLarge(
        f"An upload may have {mebibytes:.4g} MiB: leave out what the bot does not need, or compress it."
    )


async def unpack_upload(name: str, file: BinaryIO, limits: UploadLimits) -> Upload:
    """Return the files of an upload.

    Raises:
        UploadRefused: The files cannot be a submission; the sentence gives the reason.

    """
    try:
        return await trio.to_thread.run_sync(read_upload, name, file, limits, limiter=READING)
    except UploadError as error:
        raise UploadRefused(str(error)) from error


async def submit_upload(request: Request, upload: Upload, origin: str, at: datetime) -> tuple[Version, bool]:
    """Submit a student's upload that arrived at ``at``; return its version, and True if that is new.

    An upload may take minutes to arrive: the account is checked again.

    Raises:
        NotSignedIn: The account, the session or the token is not valid any more.
        Forbidden: The account has left its team since the upload began.
        CourseError: The team was not allowed to upload at that time.
        Unavailable: The upload could not be stored, which is this server's fault.

    """
    account, site = signed_in_user(request), site_of(request)
    assert account.team_id is not None  # Access.STUDENT
    try:
        again = (await auth.admit_again(request, context_of(request))).user
        if again is None or again.team_id != account.team_id:
            raise Forbidden("You are in another team since this upload began: send it again.")
        return await site.service.submit(upload, account.team_id, account.id, origin, at)
    except ContentError as error:
        raise storage_failure(error) from error
    except StoreError as error:
        if error.is_ours:
            raise storage_failure(error) from error
        raise
