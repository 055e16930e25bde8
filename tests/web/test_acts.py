"""Each action of a page and its entry in the journal: both are stored, or neither, whatever fails."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from signal import SIGKILL
from subprocess import run
from typing import Any

import pytest

from tests.support.statement_faults import CourseContents, fault_before
from tests.support.store_locations import to_argument
from tests.web.played_course import PlayedService, open_played
from tests.web.site import PASSWORD, World, open_world
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import LinkPurpose
from tournaments.database.base import Location
from tournaments.database.location import Database
from tournaments.web.http.rate_limits import Limits
from tournaments.web.http.rendering import path_for
from tournaments.web.routes import ROUTES

NEW = "another long password"
MAIL = MailHome("home", b"key")
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
    Case("account.feed", "student", {}),
    Case("account.revoke", "student", {}, of("token", "token")),
    Case("account.mail", "student", {"address": "new@example.org"}),
    Case("account.mail.confirm", "student", {}, of("confirmation", "secret")),
    Case("challenges.consent", "student", {"accepts": "no"}),
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
    Case("teach.mail", "lecturer", {"do": "retry"}),
    Case("teach.accounts.add", "admin", {"login": "l-2", "name": "L 2", "role": "lecturer"}),
    Case("teach.accounts.link", "admin", {}, of("lecturer")),
    Case("teach.accounts.role", "admin", {"role": "admin"}, of("lecturer")),
    Case("teach.accounts.disable", "admin", {"disabled": "yes"}, of("lecturer")),
)
# fmt: on
NO_ACTS = {"sign-out", "upload", "api_submit", "teach.marks.make", "teach.marks.withdraw"}
"""Routes that change something of their own, or nothing but the journal."""
OF_THE_SERVICE = re.compile(
    r"recheck|api_pairings|teach\.tournament\..*|challenges\.(ask|cancel)|api_challenge_.*"
)
"""Routes whose actions tests/server/test_acts.py tests."""
UNRECORDED = re.compile(r"play\..*")
"""Routes of casual games, which are in no journal."""


def make_scene(world: World) -> Scene:
    """Add the objects of the cases."""
    course, now, student = world.course, world.clock(), world.accounts["student"]
    team = world.teams[0]
    course.addresses.begin(student.id, "ada@example.org", "confirm", now)
    newcomer = course.accounts.add("newcomer", "Newcomer", student.role, None, now)
    course.addresses.enrol(newcomer.id, "newcomer@example.org")
    link = course.links.make(newcomer.id, LinkPurpose.INVITATION, now)
    for mail in course.outbox.due(now, 9):
        course.outbox.failed(mail.id, "550 no such user", now)
    version, _ = course.versions.add(team.id, "c", 1, 1, student.id, "page", now)
    return {
        "newcomer": newcomer.id,
        "lecturer": world.accounts["lecturer"].id,
        "team": team.id,
        "version": version.id,
        "link": link,
        "confirmation": "confirm",
        "token": course.tokens.make(student.id, "laptop", now, None)[1].id,
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.route)
async def test_an_action_and_its_entry_are_both_stored_or_neither(
    case: Case, place: Location, tmp_path: Path
) -> None:
    with open_world(place, tmp_path, PlayedService(tmp_path), mail=MAIL) as world:
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


@pytest.mark.kill
@pytest.mark.long
def test_actions_of_a_server_that_is_killed(database: Database, tmp_path: Path) -> None:
    """It is killed before each statement that changes something, and before the commit.

    On PostgreSQL, a sample of the actions is enough: SQLite tries all of them in the same code.
    """
    cases = CASES[:: 1 if isinstance(database.address, Path) else 5]
    routes = [case.route for case in cases]
    words = [sys.executable, "-m", "tests.web.killed_actions", to_argument(database), str(tmp_path), *routes]
    done = run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == set(routes)
    for route, (*killed, last) in found.items():
        assert last == [0, True], route
        assert len(killed) > 2, route
        assert killed == [[SIGKILL, False]] * len(killed), route
    assert len(found["teach.roster.add"]) > 5  # a team, its name, an account, a link, the entry, the commit


MARKS = "/teach/tournaments/cup/marks"
RULES = '[[rule]]\nname = "All"\nkind = "points"\nmarks = 10\n'


@pytest.mark.slow
async def test_marks_are_published_and_withdrawn_as_a_whole(tmp_path: Path) -> None:
    """The entry in the journal is all that these actions store."""
    with open_played(tmp_path) as played:
        world = played.world
        async with world.browser("lecturer") as browser:
            csrf = await browser.csrf("/account")
            for path, fields, published in (
                (MARKS, {"rules": RULES, "do": "publish"}, True),
                (f"{MARKS}/withdraw", {}, False),
            ):
                for number in count(1):
                    with fault_before(number) as fault:
                        answer = await browser.post(
                            path, data=fields | {"csrf": csrf}, headers={"origin": "http://testserver"}
                        )
                    shows = "Your marks" in await world.page("student", "/my")
                    assert shows is (published is not fault.happened)
                    assert answer.status_code == (500 if fault.happened else 303), answer.text
                    if not fault.happened:
                        break
                assert number > 2  # the entry and its commit


def test_every_route_that_changes_something_is_in_the_table() -> None:
    changing = {route.name for route in ROUTES if route.method == "POST"}
    tested = {case.route for case in CASES} | NO_ACTS
    for pattern in (OF_THE_SERVICE, UNRECORDED):
        tested |= set(filter(pattern.fullmatch, changing))
    assert changing == tested
