"""Limits of a team's uploads: the deadline, their number and their storage (pure)."""

from dataclasses import dataclass
from datetime import datetime

from referee.judge.verdict_text import counted
from tournaments.course.settings import Settings, day_of, moment_text

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes of an upload's files, and of those that are stored already; the same files count once."""

    of_team: int = 0
    of_course: int = 0
    upload: int = 0
    """Bytes that the upload would add, before its bot is built."""
    built_of_team: int = 0
    """Bytes of the bots that are built from the team's uploads."""
    built_of_course: int = 0

    @property
    def all_of_team(self) -> int:
        """Bytes of the team's uploads and of the bots that are built from them."""
        return self.of_team + self.built_of_team

    @property
    def all_of_course(self) -> int:
        """Bytes of all uploads and of the bots that are built from them."""
        return self.of_course + self.built_of_course


def may_upload(
    settings: Settings,
    now: datetime,
    uploads_today: int,
    uploads_before: int,
    storage: Storage = Storage(),
) -> str | None:
    """Return the reason why a team may not upload now, as a sentence for it; None if it may.

    ``uploads_today`` is the number of its versions of this day (``day_of``), ``uploads_before`` of all its
    versions.
    """
    if not settings.uploads_open:
        return "Uploads are closed."
    if settings.deadline is not None and now > settings.deadline:
        return f"The deadline was {moment_text(settings, settings.deadline)}."
    total = settings.uploads_total
    if total is not None and uploads_before >= total:
        return f"A team has {counted(total, 'upload')} in all, and yours are used up."
    daily = settings.uploads_per_day
    if daily is not None and uploads_today >= daily:
        tomorrow = moment_text(settings, day_of(settings, now)[1])
        uploads = counted(daily, "upload")
        return f"A team has {uploads} a day, and yours are used up: the next day begins {tomorrow}."
    return _storage_problem(settings, storage)


def _storage_problem(settings: Settings, storage: Storage) -> str | None:
    adds = f"{_megabytes(storage.upload)} MiB unpacked"
    most = settings.team_storage_mb
    if most is not None and storage.all_of_team + storage.upload > most * MIB:
        return (
            f"Your team's uploads and the bots built from them take {_megabytes(storage.all_of_team)} of "
            f"{most} MiB, and this one has {adds}: leave out what your bot does not need, such as build "
            "products and data, let its build delete what it does not need, or ask the lecturer for more "
            "storage."
        )
    most = settings.course_storage_mb
    if most is not None and storage.all_of_course + storage.upload > most * MIB:
        return (
            f"All teams' uploads and the bots built from them take {_megabytes(storage.all_of_course)} of "
            f"{most} MiB, and this one has {adds}: ask the lecturer for more storage in the settings."
        )
    return None


def _megabytes(size: int) -> str:
    return f"{size / MIB:.1f}"
