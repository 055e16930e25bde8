"""All routes of the site."""

from tournaments.web.api import documentation
from tournaments.web.http import static_files
from tournaments.web.http.routing import Route
from tournaments.web.lecturer import (
    accounts,
    dashboard,
    downloads,
    journal,
    marks,
    new_tournament,
    people,
    roster_import,
    settings,
    submissions,
    tournament_control,
)
from tournaments.web.pages import (
    account,
    bots,
    challenges,
    check_games,
    competitions,
    faults,
    feeds,
    games,
    help_pages,
    home,
    live_pages,
    play,
    signing_in,
    starter_kits,
    submissions_page,
    versions,
)

MODULES = (
    account,
    static_files,
    bots,
    challenges,
    check_games,
    competitions,
    documentation,
    faults,
    feeds,
    games,
    help_pages,
    home,
    live_pages,
    play,
    submissions_page,
    signing_in,
    starter_kits,
    versions,
    dashboard,
    roster_import,  # fixed addresses before those with a part to be filled in
    people,
    submissions,
    settings,
    journal,
    accounts,
    new_tournament,
    marks,
    tournament_control,
    downloads,
)
"""Each with its ``ROUTES``; a name or an address that occurs twice fails tests/web/test_app.py."""

ROUTES: tuple[Route, ...] = tuple(route for module in MODULES for route in module.ROUTES)
