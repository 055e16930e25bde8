"""Journal entries for every change that a lecturer makes, with the account and the details."""

from typing import Any

from starlette.requests import Request

from tournaments.web.http.request_context import account_of, site_of
from tournaments.web.http.threads import in_thread


async def note(request: Request, action: str, subject: str, **detail: Any) -> None:
    """Add an entry to the journal; ``detail`` must be valid JSON and hold no secrets."""
    site = site_of(request)
    await in_thread(site.course.journal.note, site.now(), account_of(request).id, action, subject, detail)
