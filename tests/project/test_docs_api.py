"""docs/api.md agrees with the API and with `kalarena submit`."""

import json
import re
import shlex
from urllib.parse import urlsplit

import pytest
from starlette.routing import Match, Route

from tests.project.test_docs import TEXTS, blocks
from tests.support.builders import invoke
from tournaments.cli.main import INTERRUPTED
from tournaments.cli.remote import challenge, connect, submit
from tournaments.cli.remote.server_options import SERVER_VARIABLE, TOKEN_VARIABLE, UNDECIDED
from tournaments.course.challenges import MOST_PAIRS
from tournaments.course.model import VersionState
from tournaments.course.people.credentials import MOST
from tournaments.course.settings import Settings
from tournaments.server.remote import remote_bots
from tournaments.web.api.documentation import OPERATIONS
from tournaments.web.http.rate_limits import Limits, Rate
from tournaments.web.http.uploads import MOST_UNDER_WAY

TEXT = TEXTS["api.md"]


def test_each_operation_is_in_the_table() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \|", TEXT, re.MULTILINE)
    assert rows == [(operation.route.method, operation.path) for operation in OPERATIONS]
    for operation in OPERATIONS:
        (row,) = re.findall(
            rf"^\| `{operation.route.method} {re.escape(operation.path)}` \|.*$", TEXT, re.MULTILINE
        )
        given = {parameter.name for parameter in operation.parameters if parameter.where == "query"}
        assert set(re.findall(r"`\?([a-z]+)=`", row)) == given


def test_each_example_is_an_operation() -> None:
    lines = [line for block in blocks(TEXT, "sh") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("curl ")]
    assert len(commands) == 6
    for command in commands:
        method = "POST" if "--data-binary" in command else "GET"
        address = urlsplit(command[-1].removeprefix("$KALARENA_SERVER"))
        scope = {"type": "http", "method": method, "path": address.path}
        (operation,) = [
            operation
            for operation in OPERATIONS
            if operation.route.method == method
            and Route(operation.route.path, operation.route.handler, methods=[method]).matches(scope)[0]
            is Match.FULL
        ]
        given = {pair.partition("=")[0] for pair in address.query.split("&") if pair}
        assert given <= {parameter.name for parameter in operation.parameters}


def test_the_pairings_of_the_example_have_the_right_shape() -> None:
    (body,) = re.findall(r"^BODY='(.*)'$", TEXT, re.MULTILINE)
    (operation,) = [one for one in OPERATIONS if one.route.name == "api_pairings"]
    assert operation.body_model is not None
    assert set(operation.body_model.model_fields) - set(json.loads(body)) == {"undo"}
    operation.body_model.model_validate_json(body)


def test_each_status_is_documented() -> None:
    rows = re.findall(r"^\| ((?:\d{3}(?:, )?)+) \|", TEXT, re.MULTILINE)
    documented = {int(status) for row in rows for status in row.split(", ")}
    assert {status for each in OPERATIONS for status in (*each.answers, *each.refusals)} <= documented
    assert all(f"`{state}`" in TEXT for state in VersionState)


def test_exit_statuses_and_options() -> None:
    rows = re.findall(r"^\| ([0-9]) \|", TEXT, re.MULTILINE)
    assert [int(row) for row in rows] == [0, submit.FAILED, 2, UNDECIDED]
    shown = invoke("submit", "--help").stdout
    documented = set(re.findall(r"`(--[a-z-]+)`", TEXT.partition("## The HTTP API")[0]))
    assert {option for option in documented if option not in shown} == set()
    assert documented >= {"--no-wait", "--json"}
    for name in (SERVER_VARIABLE, TOKEN_VARIABLE):
        assert f"export {name}=" in TEXT


@pytest.mark.parametrize("name", ["server.md", "students.md", "submissions.md", "README.md"])
def test_other_pages_lead_to_it(name: str) -> None:
    assert "api.md" in TEXTS[name]
    assert name not in ("README.md", "students.md") or "kalarena submit " in TEXTS[name]


CHALLENGES = TEXTS["challenges.md"]


def test_the_page_of_challenges_has_statuses_options_and_numbers() -> None:
    of_challenge, of_connect = CHALLENGES.split("## Remote bots")
    statuses = [
        [int(row) for row in re.findall(r"^\| ([0-9]+) \|", part, re.MULTILINE)]
        for part in (of_challenge, of_connect)
    ]
    assert statuses == [[0, challenge.FAILED, 2, UNDECIDED], [1, 2, UNDECIDED, INTERRUPTED]]
    for name, part in (("challenge", of_challenge), ("connect", of_connect)):
        shown = invoke(name, "--help").stdout
        own = part.replace("kalarena challenge ladder:3 --bot mybot", "")
        assert {option for option in re.findall(r"(--[a-z][a-z-]*)", own) if option not in shown} == set()
    for text in (
        f"up to {MOST_PAIRS} pairs",
        f"{Settings().challenge_pairs_per_day} pairs a day",
        f"and {remote_bots.NETWORK_S:g} s for each move, twice the course's and "
        f"{remote_bots.GAME_NETWORK_S:g} s",
        f"{remote_bots.SILENCE_S:g} s without a message; the command sends one every {connect.ALIVE_S:g} s",
        f"A team has {remote_bots.MOST_OF_TEAM} remote bots at most",
        f"More than {remote_bots.MESSAGES_PER_S:g} messages a second",
        f"more than {remote_bots.MOST_MESSAGE_BYTES >> 10} KiB",
    ):
        assert text in " ".join(CHALLENGES.split()), text


def test_numbers_are_right() -> None:
    limits = Limits()
    assert limits.api._rate == Rate(burst=60, per_s=2)
    assert limits.uploads._rate == Rate(burst=10, per_s=4 / 60)
    assert "Two requests a second are taken for long, 60 at once; four uploads a minute, ten at once." in TEXT
    assert MOST_UNDER_WAY == 8
    assert "Eight uploads of an account are received at a time." in TEXT
    assert f"An account has {MOST} at most" in TEXT
