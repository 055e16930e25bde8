"""Rules for uploads, frozen versions and hours without practice (pure: time is an argument)."""

from datetime import UTC, datetime, time, timedelta

from tournaments.course.settings import Settings


def may_upload(settings: Settings, now: datetime, uploads_today: int, uploads_before: int) -> str | None:
    """Return the reason why a team may not upload now, as a sentence for it; None if it may.

    ``uploads_today`` is the number of its versions of this day (``day_of``), ``uploads_before`` of all its
    versions.
    """
    if not settings.uploads_open:
        return "Uploads are closed."
    if settings.deadline is not None and now > settings.deadline:
        return f"The deadline was {told(settings, settings.deadline)}."
    total = settings.uploads_total
    if total is not None and uploads_before >= total:
        return f"A team has {_uploads(total)} in all, and yours are used up."
    daily = settings.uploads_per_day
    if daily is not None and uploads_today >= daily:
        tomorrow = told(settings, day_of(settings, now)[1])
        return f"A team has {_uploads(daily)} a day, and yours are used up: the next day begins {tomorrow}."
    return None


def day_of(settings: Settings, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning and the end of a moment's day in the course's time zone."""
    today = now.astimezone(settings.zone).date()
    begins = datetime.combine(today, time(), settings.zone)
    ends = datetime.combine(today + timedelta(days=1), time(), settings.zone)
    return begins.astimezone(UTC), ends.astimezone(UTC)


def frozen_moment(settings: Settings, now: datetime) -> datetime | None:
    """Return the moment at which versions were frozen; None as long as nothing is frozen.

    That is the lecturer's freeze, if one is set, else the deadline, once it has passed.
    """
    moment = settings.deadline if settings.frozen_at is None else settings.frozen_at
    return moment if moment is not None and moment <= now else None


def is_quiet(settings: Settings, now: datetime) -> bool:
    """Return whether practice rests at this time; the first minute is included, the last is not."""
    if settings.quiet_from is None or settings.quiet_to is None:
        return False
    begins, ends = time.fromisoformat(settings.quiet_from), time.fromisoformat(settings.quiet_to)
    clock = now.astimezone(settings.zone).time()
    if begins < ends:
        return begins <= clock < ends
    return clock >= begins or clock < ends  # over midnight


def told(settings: Settings, moment: datetime) -> str:
    """Return a moment as text for people, in the course's time zone."""
    return f"{moment.astimezone(settings.zone):%Y-%m-%d %H:%M} ({settings.time_zone})"


def _uploads(count: int) -> str:
    return "1 upload" if count == 1 else f"{count} uploads"
