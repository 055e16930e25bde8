"""Every change that a lecturer makes is noted in the course's journal, with who made it and what it was."""

from typing import Any

from starlette.requests import Request

from tournaments.web.site import account_of, site_of
from tournaments.web.threads import in_thread


async def note(request: Request, action: str, subject: str, **detail: Any) -> None:
    """Add an entry.  ``detail`` is what JSON can hold, and no secret."""
    site = site_of(request)
    await in_thread(site.course.journal.note, site.now(), account_of(request).id, action, subject, detail)
