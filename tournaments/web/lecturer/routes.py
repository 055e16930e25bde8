"""The routes of lecturers' pages."""

from tournaments.web.http.routing import Route
from tournaments.web.lecturer import (
    accounts,
    control,
    dashboard,
    downloads,
    journal,
    marks,
    new_tournament,
    people,
    roster_import,
    settings,
    submissions,
)

MODULES = (
    dashboard,
    roster_import,  # fixed addresses before those with a part to be filled in
    people,
    submissions,
    settings,
    journal,
    accounts,
    new_tournament,
    marks,
    control,
    downloads,
)

ROUTES: tuple[Route, ...] = tuple(route for module in MODULES for route in module.ROUTES)
