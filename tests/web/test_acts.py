"""Each action of a page and its entry in the journal: both are stored, or neither, whatever fails."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.statement_faults import CourseContents, fault_before
from tests.web.played_course import PlayedService
from tests.web.site import PASSWORD, World, open_world
from tournaments.course.model import LinkPurpose
from tournaments.database.base import Location
from tournaments.web.http.rate_limits import Limits
from tournaments.web.http.rendering import path_for
from tournaments.web.routes import ROUTES

NEW = "another long password"
Scene = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """An action, by the name of its route."""

    route: str
    role: str
    fields: dict[str, str]
    parameters: Callable[[Scene], dict[str, Any]] = lambda _scene: {}


STUDENT = {"account": "newcomer"}


def of(name: str, key: str = "account") -> Callable[[Scene], dict[str, Any]]:
    """Return the parameters of an address that names an object of the scene."""
    return lambda scene: {key: scene[name]}


PASSWORDS = {"password": NEW, "again": NEW}
# fmt: off
CASES = (
    Case("sign-in.try", "visitor", {"login": "lecturer", "password": PASSWORD}),
    Case("link.use", "visitor", PASSWORDS, of("link", "secret")),
    Case("account.password", "student", PASSWORDS | {"old": PASSWORD}),
    Case("account.token", "student", {"name": "laptop", "days": "30"}),
    Case("account.revoke", "student", {}, of("token", "token")),
    Case("withdraw", "student", {"withdrawn": "yes"}, of("version", "id")),
    Case("teach.roster.add", "lecturer", {"login": "s-9", "name": "S 9", "team": "Team 9"}),
    Case("teach.roster.import.send", "lecturer",
         {"roster": "login,name,team\nstudent-1,Student One,Team 1\ns-9,S 9,Team 9\n", "do": "import"}),
    Case("teach.student.link", "lecturer", {}, of("newcomer")),
    Case("teach.student.disable", "lecturer", {"disabled": "yes"}, of("newcomer")),
    Case("teach.student.change", "lecturer", {"name": "Other", "team": "Team 9"}, of("newcomer")),
    Case("teach.team.rename", "lecturer", {"name": "Otters"}, of("team", "team")),
    Case("teach.settings.save", "lecturer", {"title": "Another course", "game": "manchester"}),
    Case("teach.settings.freeze", "lecturer", {"freeze": "now"}),
    Case("teach.accounts.add", "admin", {"login": "l-2", "name": "L 2", "role": "lecturer"}),
    Case("teach.accounts.link", "admin", {}, of("lecturer")),
    Case("teach.accounts.role", "admin", {"role": "admin"}, of("lecturer")),
    Case("teach.accounts.disable", "admin", {"disabled": "yes"}, of("lecturer")),
)
# fmt: on
NO_ACTS = {"sign-out", "upload", "api_submit", "teach.marks.make"}
"""Routes that change something of their own, or nothing."""
OF_THE_SERVICE = re.compile(r"recheck|api_pairings|teach\.tournament\..*")
"""Routes whose actions tests/server/test_acts.py tests."""


def make_scene(world: World) -> Scene:
    """Add the objects of the cases."""
    course, now, student = world.course, world.clock(), world.accounts["student"]
    team = world.teams[0]
    newcomer = course.accounts.add("newcomer", "Newcomer", student.role, None, now)
    version, _ = course.versions.add(team.id, "c", 1, 1, student.id, "page", now)
    return {
        "newcomer": newcomer.id,
        "lecturer": world.accounts["lecturer"].id,
        "team": team.id,
        "version": version.id,
        "link": course.links.make(newcomer.id, LinkPurpose.INVITATION, now),
        "token": course.tokens.make(student.id, "laptop", now, None)[1].id,
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.route)
async def test_an_action_and_its_entry_are_both_stored_or_neither(
    case: Case, place: Location, tmp_path: Path
) -> None:
    with open_world(place, tmp_path, PlayedService(tmp_path)) as world:
        path = path_for(ROUTES, case.route, case.parameters(make_scene(world)))
        async with world.browser(case.role) as browser:
            page = "/sign-in" if case.role == "visitor" else "/account"
            fields = case.fields | {"csrf": await browser.csrf(page)}
            before = CourseContents.read(place)
            for number in count(1):
                world.site.limits = Limits()
                with fault_before(number) as fault:
                    answer = await browser.post(path, data=fields, headers={"origin": "http://testserver"})
                is_done = before.assert_both_or_neither(place)
                if not fault.happened:
                    break
                assert not is_done
                assert answer.status_code == 500
    assert (is_done, answer.status_code in {200, 201, 303}) == (True, True), answer.text
    assert number > 2  # the action, its entry, and the commit


def test_every_route_that_changes_something_is_in_the_table() -> None:
    changing = {route.name for route in ROUTES if route.method == "POST"}
    tested = {case.route for case in CASES} | NO_ACTS | set(filter(OF_THE_SERVICE.fullmatch, changing))
    assert changing == tested
