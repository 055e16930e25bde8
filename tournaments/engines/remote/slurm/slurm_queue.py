"""Information from Slurm: the current jobs, and the last output of ended ones."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

JOB_NAME = "kalarena"
LIST_JOBS = ("squeue", "--me", "--noheader", "--format=%A")
TAIL_BYTES = 4000
NOTHING = "it wrote nothing"


async def listed_jobs() -> set[str] | None:
    """Return the numbers of this user's jobs that wait or run; None if Slurm does not answer just now."""
    process = await asyncio.create_subprocess_exec(
        *LIST_JOBS, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    said, _ = await process.communicate()
    return set(said.decode().split()) if process.returncode == 0 else None


def last_words(logs: Path, job: str) -> str:
    """Return the last line that a job wrote, of its errors if it had some."""
    for suffix in ("err", "out"):
        try:
            written = (logs / f"{JOB_NAME}-{job}.{suffix}").read_bytes()[-TAIL_BYTES:]
        except OSError:  # it never ran, or the file system of its node is slow
            continue
        if line := _last_line(written.decode(errors="replace").splitlines()):
            return line
    return NOTHING


def complaint(error: str) -> str:
    """Return the message of a command of Slurm, from dask-jobqueue's text for it."""
    return _last_line(error.partition("stderr:")[2].splitlines()) or _last_line(error.splitlines())


def _last_line(lines: Iterable[str]) -> str:
    return next((line.strip() for line in reversed(list(lines)) if line.strip()), "")
