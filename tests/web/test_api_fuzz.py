"""The HTTP API under schemathesis: valid and invalid requests, generated from its document, in each role.

No request is a fault of the server.  Each response has a status and a shape of the document; invalid requests
are refused, valid ones are accepted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.web.played_course import Played, open_played
from tests.web.site import running_site
from tournaments.course.challenges import Side
from tournaments.course.model import BotChoice
from tournaments.web.api.documentation import OPERATIONS
from tournaments.web.api.responses import TEXT
from tournaments.web.http.rate_limits import Rate, RateLimit

Case = schemathesis.Case[Any]

EXAMPLES = {"student": 12, "lecturer": 5, "visitor": 2}
"""Valid and invalid requests of each operation; visitors are refused before their request is read."""
ACCEPTED = ["2xx", 401, 403, 404]
CONFIG = {
    # The tests add the token.  A query may have more parameters than the document: for a later version.
    "generation": {"with-security-parameters": False, "allow-extra-parameters": False},
    "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
    # The shape of some bytes does not decide whether they are a bot,
    "operations": [
        {
            "include-name": "POST /api/v1/submissions",
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 422]}},
        },
        {  # nor whether there are such bots,
            "include-name": "POST /api/v1/competitions/{slug}/pairings",
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 409]}},
        },
        {
            "include-name": "POST /api/v1/challenges",
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 400]}},
        },
        {  # nor whether a challenge is over.
            "include-name": "POST /api/v1/challenges/{id}/cancel",
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 400]}},
        },
    ],
}
KNOWN: dict[str, list[Any]] = {"slug": ["practice", "cup"], "key": ["p0000001-1", "r001-1v2"], "id": [1, 2]}
"""Values that exist; generated values mostly do not."""
UNLIMITED = Rate(10**9, 10**9)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
LABELS = [f"{operation.route.method} {operation.path}" for operation in OPERATIONS]
WITH_INVALID = [
    f"{operation.route.method} {operation.path}"
    for operation in OPERATIONS
    if operation.body or any(parameter.schema != TEXT for parameter in operation.parameters)
]
"""Operations whose requests can be invalid: a path of texts alone cannot."""


@dataclass
class Api:
    """A server, its document, and the headers of each role."""

    url: str
    schema: Any
    headers: dict[str, dict[str, str]]
    session: requests.Session


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with (
        open_played(tmp_path_factory.mktemp("played")) as played,
        running_site(played.world) as site,
        requests.Session() as session,
    ):
        session.trust_env = False
        add_challenges(played)
        played.world.site.limits.api = played.world.site.limits.uploads = RateLimit(UNLIMITED)
        headers = {role: played.world.bearer(role) for role in EXAMPLES}
        schema = schemathesis.openapi.from_url(
            f"{site.url}/api/openapi.json", config=schemathesis.Config.from_dict(CONFIG)
        )
        yield Api(site.url, schema, headers, session)


def add_challenges(played: Played) -> None:
    """Add the challenges of KNOWN, by the student's team."""
    course, student = played.world.course, played.world.accounts["student"]
    team = played.world.teams[0]
    own = Side(BotChoice(version_id=course.versions.of_team(team.id)[0].id), "Team 1 v1", team.id)
    other = Side(BotChoice(reference="ladder:1"), "ladder:1", None)
    practice = course.competitions.by_slug("practice")
    assert practice is not None
    rules, now = course.settings.load(), played.world.clock()
    for _ in KNOWN["id"]:
        course.challenges.add(practice.id, team.id, student.id, own, other, 1, "api", now, rules)


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "role",  # values that a kind of database does not take are those of any role
    [pytest.param(role, marks=() if role == "student" else pytest.mark.any_database) for role in EXAMPLES],
)
@pytest.mark.parametrize("label", LABELS)
def test_responses_are_as_the_document_promises(api: Api, label: str, role: str) -> None:
    method, _, path = label.partition(" ")
    operation = api.schema[path][method]
    headers = api.headers[role]
    seen: set[int] = set()

    def ask(case: Case) -> None:
        response = case.call(session=api.session, headers=headers)
        if response.status_code == 413:  # for schemathesis no refusal of invalid data
            assert "too large" in response.json()["error"]
        else:
            request = {"session": api.session, "headers": headers}
            case.validate_response(response, headers=headers, transport_kwargs=request)
        seen.add(response.status_code)

    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    _each(role, right)(ask)
    if "{" in path:
        _each(role, right, st.integers(0, 1))(lambda case, which: ask(_of_known(case, which)))
    if label in WITH_INVALID:
        _each(role, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))(ask)
    # The requests came as far as the responses that they were made for.
    assert max(seen) < 500
    if label.endswith("/pairings"):
        assert (409 in seen) == (role == "lecturer")
        return
    if label.endswith(("/cancel", "POST /api/v1/challenges")):
        return  # test_challenges.py has these requests
    own = ("/submissions", "/challenges", "/opponents")
    may = role == "student" or (role == "lecturer" and not any(part in label for part in own))
    assert bool(seen & {200, 201}) == may


def _each(role: str, *strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
    """Return a caller of a function with values of the strategies, the same ones in each run."""
    bounded = settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=EXAMPLES[role],
        suppress_health_check=list(HealthCheck),
    )
    return lambda function: bounded(given(*strategies)(function))()


def _of_known(case: Case, which: int) -> Case:
    """Change the request to objects that exist."""
    case.path_parameters |= {name: KNOWN[name][which] for name in case.path_parameters}
    return case


@pytest.mark.slow
@pytest.mark.parametrize("role", EXAMPLES)
def test_other_methods_are_refused_with_the_allowed_ones(api: Api, role: str) -> None:
    for path in {operation.path for operation in OPERATIONS}:
        address = path.format(id=1, slug="cup", key="r001-1v2")
        allowed = {operation.route.method for operation in OPERATIONS if operation.path == path}
        for method in set(METHODS) - allowed:
            answer = api.session.request(method, api.url + address, headers=api.headers[role])
            assert answer.status_code == 405
            found = {name.strip() for name in answer.headers["allow"].split(",")}
            assert found - {"HEAD"} == allowed
            assert answer.json()["error"].startswith(f"This address does not answer {method}")
