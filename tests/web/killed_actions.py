"""The actions of pages in a process that is killed before each of their statements.

Arguments: ``DATABASE FOLDER ROUTE...``; the routes are those of the actions.

Prints, for each action and each of its statements, the wait status of the process, and whether the action was
stored.  Each process is forked from this one.  Each action has a course of its own.
"""

import json
import pickle
import signal
import sys
from itertools import count
from pathlib import Path

import trio

from tests.support.statement_faults import CourseContents, fault_before, in_copy, kill_process
from tests.support.store_locations import from_argument
from tests.web.played_course import PlayedService
from tests.web.site import open_world
from tests.web.test_acts import CASES, MAIL, Case, make_scene
from tournaments.database.base import Location
from tournaments.web.http.rendering import environment, path_for
from tournaments.web.routes import ROUTES

TEMPLATES = ("account.html", "sign_in.html", "base.html", "macros.html", "teach/links.html")
"""Templates of the pages with the forms, and those which they include."""


async def act(case: Case, place: Location, folder: Path, number: int) -> None:
    """Do the action; this process is killed before a statement, unless it has fewer."""
    path = (folder / "path").read_text()
    with open_world(place, folder, PlayedService(folder), mail=MAIL) as world:
        async with world.browser(case.role) as browser:
            page = "/sign-in" if case.role == "visitor" else "/account"
            fields = case.fields | {"csrf": await browser.csrf(page)}
            (folder / "before").write_bytes(pickle.dumps(CourseContents.read(place)))
            with fault_before(number, kill_process):
                answer = await browser.post(path, data=fields, headers={"origin": "http://testserver"})
            assert answer.status_code in {200, 201, 303}, answer.text


def prepare(case: Case, place: Location, folder: Path) -> None:
    """Make the objects of the action, and store its path."""
    with open_world(place, folder, PlayedService(folder), mail=MAIL) as world:
        (folder / "path").write_text(path_for(ROUTES, case.route, case.parameters(make_scene(world))))


def attempts(case: Case, place: Location, folder: Path) -> list[tuple[int, bool]]:
    """Return the wait status, and whether the action was stored, for a kill before each statement."""
    folder.mkdir()
    assert in_copy(prepare, case, place, folder) == 0
    found = []
    for number in count(1):
        status = in_copy(trio.run, act, case, place, folder, number)
        before: CourseContents = pickle.loads((folder / "before").read_bytes())
        found.append((status, before.assert_both_or_neither(place)))
        if status != signal.SIGKILL:
            break
    return found


def main() -> None:
    """Print the results of all kills as JSON; see the module's docstring."""
    database, folder, routes = from_argument(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    for template in TEMPLATES:  # compiling them takes half of an attempt: it is not done by each copy
        environment().get_template(template)
    found = {}
    for number, case in enumerate(case for case in CASES if case.route in routes):
        name = f"action-{number}"
        found[case.route] = attempts(case, database.competition(name), folder / name)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
