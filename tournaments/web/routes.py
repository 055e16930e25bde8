"""All routes of the site."""

from tournaments.web.api import documentation
from tournaments.web.http import static_files
from tournaments.web.http.routing import Route
from tournaments.web.lecturer import routes as lecturer
from tournaments.web.pages import (
    account,
    bots,
    competitions,
    faults,
    games,
    health,
    home,
    live_pages,
    signing_in,
    standings,
    starter_kits,
    submissions_page,
    versions,
)

MODULES = (
    account,
    static_files,
    bots,
    competitions,
    documentation,
    faults,
    games,
    health,
    home,
    lecturer,
    live_pages,
    submissions_page,
    signing_in,
    standings,
    starter_kits,
    versions,
)
"""Each with its ``ROUTES``; a name or an address that occurs twice fails tests/test_web_app.py."""

ROUTES: tuple[Route, ...] = tuple(route for module in MODULES for route in module.ROUTES)
