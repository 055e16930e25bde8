"""The HTTP API under schemathesis: requests made of its document, right ones and wrong ones, by everybody.

Nothing that is sent makes a fault of ours, every answer is one of those that the document promises, in the
shape that it promises; what it says is wrong is refused, and what it says is right is taken.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.site_thread import running_site
from tests.web_played import Played, open_played
from tournaments.web.api.documentation import OPERATIONS
from tournaments.web.api.responses import TEXT
from tournaments.web.http.rate_limits import Rate, RateLimit

Case = schemathesis.Case[Any]

EXAMPLES = {"student": 12, "lecturer": 5, "nobody": 5}
"""Requests of each operation, right and wrong ones each; who may do nothing is refused before the rest."""
ACCEPTED = ["2xx", 401, 403, 404]
CONFIG = {
    # Who asks is ours to say, and a query may have more than the document knows: servers of a later version.
    "generation": {"with-security-parameters": False, "allow-extra-parameters": False},
    "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
    # Whether some bytes are a bot is no question of their shape.
    "operations": [
        {
            "include-name": "POST /api/v1/submissions",
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 422]}},
        },
        {  # nor whether there are such bots
            "include-name": "POST /api/v1/competitions/{slug}/pairings",
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 409]}},
        },
    ],
}
KNOWN: dict[str, list[Any]] = {"slug": ["practice", "cup"], "key": ["p0000001-1", "r001-1v2"], "id": [1, 2]}
"""What is there; what is made up is mostly not."""
UNLIMITED = Rate(10**9, 10**9)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
LABELS = [f"{operation.route.method} {operation.path}" for operation in OPERATIONS]
WITH_WRONG_ONES = [
    f"{operation.route.method} {operation.path}"
    for operation in OPERATIONS
    if operation.body or any(parameter.schema != TEXT for parameter in operation.parameters)
]
"""Where a request can break the document: a path of texts alone cannot."""


@dataclass
class Api:
    """A server, its document, and the tokens that people have for it."""

    url: str
    schema: Any
    headers: dict[str, dict[str, str]]
    """By role."""
    session: requests.Session


@contextmanager
def tokens(played: Played) -> Iterator[dict[str, dict[str, str]]]:
    world = played.world
    world.site.limits.api = world.site.limits.uploads = RateLimit(UNLIMITED)
    headers: dict[str, dict[str, str]] = {"nobody": {}}
    for role in ("student", "lecturer"):
        secret, _ = world.course.tokens.make(world.accounts[role].id, "test", world.clock(), None)
        headers[role] = {"Authorization": f"Bearer {secret}"}
    yield headers


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with (
        open_played(tmp_path_factory.mktemp("played")) as played,
        tokens(played) as headers,
        running_site(played.world) as site,
        requests.Session() as session,
    ):
        session.trust_env = False
        schema = schemathesis.openapi.from_url(
            f"{site.url}/api/openapi.json", config=schemathesis.Config.from_dict(CONFIG)
        )
        yield Api(site.url, schema, headers, session)


@pytest.mark.slow
@pytest.mark.parametrize("role", EXAMPLES)
@pytest.mark.parametrize("label", LABELS)
def test_answers_are_as_the_document_says(api: Api, label: str, role: str) -> None:
    method, _, path = label.partition(" ")
    operation = api.schema[path][method]
    headers = api.headers[role]
    seen: set[int] = set()

    def ask(case: Case) -> None:
        response = case.call_and_validate(session=api.session, headers=headers)
        seen.add(response.status_code)

    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    _each(role, right)(ask)
    if "{" in path:
        _each(role, right, st.integers(0, 1))(lambda case, which: ask(_of_what_is_there(case, which)))
    if label in WITH_WRONG_ONES:
        _each(role, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))(ask)
    # The requests came as far as the answers that they were made for.
    assert max(seen) < 500
    if label.endswith("/pairings"):
        assert (409 in seen) == (role == "lecturer")
        return
    may = role == "student" or (role == "lecturer" and "/submissions" not in label)
    assert bool(seen & {200, 201}) == may


def _each(role: str, *strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
    """Calls a function with values of the strategies, the same ones in each run."""
    bounded = settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=EXAMPLES[role],
        suppress_health_check=list(HealthCheck),
    )
    return lambda function: bounded(given(*strategies)(function))()


def _of_what_is_there(case: Case, which: int) -> Case:
    """The same request, of something that is there."""
    case.path_parameters |= {name: KNOWN[name][which] for name in case.path_parameters}
    return case


@pytest.mark.parametrize("role", EXAMPLES)
def test_other_methods_are_told_so(api: Api, role: str) -> None:
    for path in {operation.path for operation in OPERATIONS}:
        address = path.format(id=1, slug="cup", key="r001-1v2")
        allowed = {operation.route.method for operation in OPERATIONS if operation.path == path}
        for method in set(METHODS) - allowed:
            answer = api.session.request(method, api.url + address, headers=api.headers[role])
            assert answer.status_code == 405
            told = {name.strip() for name in answer.headers["allow"].split(",")}
            assert told - {"HEAD"} == allowed
            assert answer.json()["error"].startswith(f"This address does not answer {method}")
