"""All routes of the site."""

from tournaments.web import (
    account,
    assets,
    bots,
    competitions,
    faults,
    games,
    health,
    home,
    live_pages,
    my,
    signing_in,
    standings,
    starter_kits,
    versions,
)
from tournaments.web.api import documentation
from tournaments.web.lecturer import routes as lecturer
from tournaments.web.routing import Route

MODULES = (
    account,
    assets,
    bots,
    competitions,
    documentation,
    faults,
    games,
    health,
    home,
    lecturer,
    live_pages,
    my,
    signing_in,
    standings,
    starter_kits,
    versions,
)
"""Each with its ``ROUTES``; a name or an address that occurs twice fails tests/test_web_app.py."""

ROUTES: tuple[Route, ...] = tuple(route for module in MODULES for route in module.ROUTES)
