"""What is uploaded, from the network to the files of a submission."""

import tempfile
from contextlib import aclosing
from typing import BinaryIO, cast

import trio
from starlette.requests import Request

from tournaments.course.model import Account, Version
from tournaments.course.settings import Settings
from tournaments.database.errors import StoreError
from tournaments.submissions.archive import read_upload
from tournaments.submissions.content import ContentError
from tournaments.submissions.limits import MEBIBYTE, UploadLimits
from tournaments.submissions.upload import Upload, UploadError
from tournaments.web.errors import NotTaken, TooLarge
from tournaments.web.full_disks import not_kept
from tournaments.web.site import Site

LARGEST_BODY = 1024 * MEBIBYTE
"""Of a route that takes uploads; what the lecturer allows is less, and looked at as they come."""
IN_MEMORY = MEBIBYTE
"""Larger uploads wait on the disk."""
MOST_READ = 2
"""Uploads unpacked at a time: each may take as much memory as all its files."""

READING = trio.CapacityLimiter(MOST_READ)
"""Taken by whoever unpacks an upload."""


def limits_of(settings: Settings) -> UploadLimits:
    """What the lecturer allows; a larger upload may be as much larger unpacked."""
    usual = UploadLimits()
    upload = max(1, round(settings.upload_mb * MEBIBYTE))
    return UploadLimits(
        upload_bytes=upload,
        total_bytes=max(usual.total_bytes, 2 * upload),
        file_bytes=max(usual.file_bytes, upload),
    )


async def received(request: Request, limits: UploadLimits) -> BinaryIO:
    """The body of a request as a file, which the caller closes.

    Raises:
        TooLarge: The body has more bytes than an upload may have.
        Unavailable: It cannot be written to the disk.

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
        raise not_kept(error) from error
    except BaseException:
        file.close()
        raise
    return file


def _too_large(limits: UploadLimits) -> TooLarge:
    mebibytes = limits.upload_bytes / MEBIBYTE
    return TooLarge(
        f"An upload may have {mebibytes:.4g} MiB: leave out what the bot does not need, or compress it."
    )


async def unpacked(name: str, file: BinaryIO, limits: UploadLimits) -> Upload:
    """The files of an upload.

    Raises:
        NotTaken: They cannot be a submission; the sentence says why.

    """
    try:
        return await trio.to_thread.run_sync(read_upload, name, file, limits, limiter=READING)
    except UploadError as error:
        raise NotTaken(str(error)) from error


async def submitted(site: Site, upload: Upload, account: Account, origin: str) -> tuple[Version, bool]:
    """Hand a student's upload to the service; what it answers.

    Raises:
        CourseError: The team may not upload now.
        Unavailable: It could not be kept, which is this server's fault.

    """
    assert account.team_id is not None  # Access.STUDENT
    try:
        return await site.service.submit(upload, account.team_id, account.id, origin)
    except ContentError as error:
        raise not_kept(error) from error
    except StoreError as error:
        if error.is_ours:
            raise not_kept(error) from error
        raise
