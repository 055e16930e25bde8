"""The HTTP API: submissions, versions, pairings; each answer has the shape that the document promises."""

import errno
import io
import tempfile
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.web.played_course import BOTS, Played, open_played
from tests.web.site import Browser, World
from tournaments.bots.storage import ContentError
from tournaments.server.checks.check_log import CheckLog
from tournaments.web.api.documentation import OPERATIONS
from tournaments.web.api.submissions import LINES
from tournaments.web.http.rate_limits import TokenAccounts

SUBMISSIONS = "/api/v1/submissions"
UPLOAD = f"{SUBMISSIONS}?name=bot.py"
PAIRINGS = "/api/v1/competitions/cup/pairings"


@dataclass
class Program:
    """A program with a token of the API, which validates each answer by the document."""

    browser: Browser
    headers: dict[str, str]
    document: dict[str, Any]

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        answer = await self.browser.request(method, path, headers=self.headers, **more)
        responses = self._operation(method, path)["responses"]
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        jsonschema_rs.validate({**schema, "components": self.document["components"]}, answer.json())
        return answer.status_code, answer.json()

    def _operation(self, method: str, path: str) -> Any:
        parts = path.partition("?")[0].split("/")
        for template, methods in self.document["paths"].items():
            wanted = template.split("/")
            if len(parts) == len(wanted) and all(
                one == other or other.startswith("{") for one, other in zip(parts, wanted, strict=True)
            ):
                return methods[method.lower()]
        raise AssertionError(f"{path} is not in the document")


@asynccontextmanager
async def program(world: World, role: str) -> AsyncIterator[Program]:
    async with world.browser() as browser:
        document = (await browser.get("/api/openapi.json")).json()
        yield Program(browser, world.bearer(role), document)


async def test_a_version_from_upload_to_report(played: Played) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("bot.py", "print()\n")
        archive.writestr("Thumbs.db", "x")
    content = packed.getvalue()
    async with program(played.world, "student") as student:
        status, first = await student.ask("POST", f"{SUBMISSIONS}?name=bot.zip", content=content)
        assert (status, first["new"], first["passed_over"]) == (201, True, ["Thumbs.db"])
        made = first["version"]
        expected = {"number": 2, "state": "queued", "is_over": False, "current": False}
        assert expected.items() <= made.items()
        assert (made["origin"], made["files"], made["size"]) == ("api", 1, 8)
        status, again = await student.ask("POST", f"{SUBMISSIONS}?name=other.zip", content=content)
        assert (status, again["new"], again["version"]["id"]) == (200, False, made["id"])
        own = f"{SUBMISSIONS}/{made['id']}"
        assert await student.ask("GET", own) == (200, {"version": made, "report": None})
        version = played.world.course.versions.get(made["id"])
        assert version is not None
        played.qualify(version)
        _, found = await student.ask("GET", own)
        assert (found["version"]["state"], found["version"]["current"]) == ("qualified", True)
        assert [item["id"] for item in found["report"]["items"]] == ["starts"]
        _, found = await student.ask("GET", SUBMISSIONS)
        assert [version["number"] for version in found["versions"]] == [2, 1]
    async with program(played.world, "other") as other:
        for path in (own, f"{own}/log", f"{SUBMISSIONS}/99999"):
            assert await other.ask("GET", path) == (404, {"error": "Your team has no such version."})
        _, found = await other.ask("GET", SUBMISSIONS)
        assert made["id"] not in [version["id"] for version in found["versions"]]


async def test_a_log_comes_in_pieces(played: Played) -> None:
    version = played.add_version()
    log = played.service.logs[version.id] = CheckLog()
    path = f"{SUBMISSIONS}/{version.id}/log"
    async with program(played.world, "student") as student:
        assert (await student.ask("GET", path))[1] == {"lines": [], "next": 0, "is_over": False}
        log.lines += [f"line {number}" for number in range(LINES + 2)]
        log.close()
        _, piece = await student.ask("GET", path)
        assert (len(piece["lines"]), piece["next"], piece["is_over"]) == (LINES, LINES, False)
        _, rest = await student.ask("GET", f"{path}?after={LINES}")
        assert rest == {"lines": log.lines[LINES:], "next": LINES + 2, "is_over": True}
        played.service.logs[version.id] = CheckLog(["again"])  # a second check, whose log is shorter
        assert (await student.ask("GET", f"{path}?after=9"))[1] == {"lines": [], "next": 1, "is_over": False}
        for wrong in ("after=-1", "after=x", "after=", "after=1&after=2", f"after={'9' * 5000}"):
            status, found = await student.ask("GET", f"{path}?{wrong}")
            assert (status, found["error"].startswith("after=")) == (400, True)


@pytest.mark.parametrize(
    ("query", "content", "status", "words"),
    [
        ("", b"x", 400, "The query needs name="),
        ("?name=a&name=b", b"x", 400, "name= is in the query twice"),
        ("?name=" + "a" * 300, b"x", 400, "longer than 255 characters"),
        ("?name=a%00b", b"x", 400, "NUL character"),
        ("?name=bot.zip", b"", 422, "is empty"),
        ("?name=bot.zip", b"PK\3\4 and no more", 422, "is cut off or damaged"),
        ("?name=bot.tar.gz", b"\x1f\x8b", 422, "make it a zip archive"),
        ("?name=../bot.py", b"print()", 422, "has a / in its name"),
        ("?name=bot.zip", b"x" * 5000, 413, "An upload may have 0.001 MiB"),
    ],
)
async def test_an_upload_is_refused_with_a_reason(
    played: Played, query: str, content: bytes, status: int, words: str
) -> None:
    played.world.course.settings.change(upload_mb=0.001)
    async with program(played.world, "student") as student:
        found = await student.ask("POST", f"{SUBMISSIONS}{query}", content=content)
    assert found[0] == status
    assert words in found[1]["error"]
    assert len(played.world.course.versions.of_team(1)) == 1


async def test_an_upload_of_undeclared_size_is_refused_when_it_is_too_large(played: Played) -> None:
    played.world.course.settings.change(upload_mb=0.001)

    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    async with program(played.world, "student") as student, aclosing(pieces()) as content:
        assert (await student.ask("POST", UPLOAD, content=content))[0] == 413


class FullDisk(io.BytesIO):
    def write(self, _data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


async def refuse_content(*_: object) -> None:
    raise ContentError("/srv/x: the submission cannot be kept")


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [("service", "submit", refuse_content), ("tempfile", "SpooledTemporaryFile", lambda _most: FullDisk())],
)
async def test_an_upload_that_cannot_be_stored_is_a_fault_of_the_server(
    played: Played, monkeypatch: pytest.MonkeyPatch, owner: str, name: str, fault: Any
) -> None:
    monkeypatch.setattr(played.service if owner == "service" else tempfile, name, fault)
    async with program(played.world, "student") as student:
        status, found = await student.ask("POST", UPLOAD, content=b"x")
    assert (status, "could not keep" in found["error"], "/srv/x" in found["error"]) == (503, True, False)


async def test_a_token_speaks_for_its_account(played: Played) -> None:
    for role, status in (("visitor", 401), ("lecturer", 403), ("admin", 403)):
        async with program(played.world, role) as someone:
            assert (await someone.ask("POST", UPLOAD, content=b"x"))[0] == status
    async with program(played.world, "student") as student:
        _, found = await student.ask("GET", "/api/v1/me")
        assert found["account"] == {
            "login": "student-1",
            "name": "student-1",
            "role": "student",
            "team": "Team 1",
        }
        student.headers = {"authorization": "Bearer kal_nobodys"}
        assert (await student.ask("GET", "/api/v1/me"))[0] == 401
    async with program(played.world, "admin") as admin:
        assert (await admin.ask("GET", "/api/v1/me"))[1]["account"]["team"] is None
    async with played.world.browser("student") as browser:  # a session of a browser is no token
        assert (await browser.get("/api/v1/me")).status_code == 401
        assert (await browser.post(UPLOAD, content=b"x")).status_code == 401


def test_the_accounts_of_few_tokens_are_kept() -> None:
    kept = TokenAccounts(2)
    kept.keep("a", 1)
    kept.keep("b", 2)
    assert kept.get("a") == 1  # used last
    kept.keep("c", 3)
    assert [kept.get(digest) for digest in ("a", "b", "c", None)] == [1, None, 3, None]


async def test_guesses_of_tokens_are_refused_before_the_database_is_read(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, read = played.world, 0
    find = world.course.tokens.find

    def counted(*values: Any) -> Any:
        nonlocal read
        read += 1
        return find(*values)

    monkeypatch.setattr(world.course.tokens, "find", counted)
    async with world.browser() as browser:
        known, new = world.bearer("student"), world.bearer("other")
        assert (await browser.get("/api/v1/me", headers=known)).status_code == 200
        guesses = [
            (await browser.get("/api/v1/me", headers={"Authorization": f"Bearer kal_{number}"})).status_code
            for number in range(100)
        ]
        assert guesses == [401] * 60 + [429] * 40
        assert read == 1 + 60
        assert (await browser.get("/api/v1/me", headers=known)).status_code == 200
        assert (await browser.get("/api/v1/me", headers=new)).status_code == 429
        world.clock.advance(seconds=1)
        assert (await browser.get("/api/v1/me", headers=new)).status_code == 200
        world.course.tokens.revoke(world.course.tokens.of(world.accounts["student"].id)[0].id, 1)
        assert (await browser.get("/api/v1/me", headers=known)).status_code == 401


async def test_the_rate_of_uploads_is_limited(played: Played) -> None:
    async with program(played.world, "student") as student:
        found = [await student.ask("POST", UPLOAD, content=b"%d" % number) for number in range(11)]
    assert [status for status, _ in found] == [201] * 10 + [429]
    assert found[-1][1]["error"].startswith("You upload very often.")


async def test_every_operation_is_documented_once(played: Played) -> None:
    async with program(played.world, "visitor") as visitor:
        paths = visitor.document["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == {
        (operation.path, operation.route.method.lower()) for operation in OPERATIONS
    }
    for operation in OPERATIONS:
        parameters = paths[operation.path][operation.route.method.lower()].get("parameters", [])
        in_path = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
        assert in_path == {part[1:-1] for part in operation.path.split("/") if part.startswith("{")}


# Pairings that a lecturer fixes.


@pytest.fixture
def swiss(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path, cup_rounds=2, cup_format="swiss") as played:
        yield played


async def test_a_lecturer_fixes_pairings(swiss: Played) -> None:
    wanted = {"why": "the jury asks for it", "pairs": [BOTS[:2]], "byes": [BOTS[2]]}
    async with program(swiss.world, "student") as student:
        assert (await student.ask("POST", PAIRINGS, json=wanted))[0] == 403
    async with program(swiss.world, "lecturer") as lecturer:
        assert await lecturer.ask("POST", PAIRINGS, json=wanted) == (
            200,
            {
                "noted": [
                    "noted: pair Team 1 v1 (meets Team 2 v1 in round 2): the jury asks for it",
                    "noted: bye ladder:1 (has a bye in round 2): the jury asks for it",
                ]
            },
        )
        status, found = await lecturer.ask("POST", PAIRINGS, json=wanted)
        reason = "'Team 1 v1' has a fixed pairing in round 2 already: take it back first"
        assert (status, found["error"]) == (409, reason)
        assert (await lecturer.ask("POST", PAIRINGS, json={**wanted, "undo": True}))[0] == 200
    summary = await swiss.service.tournaments.summary(swiss.cup.id)
    assert summary.rulings.manual.fixed == {2: []}
    assert {entry.by for entry in summary.journal} == {"lecturer"}


async def test_pairings_of_a_wrong_shape_are_refused(swiss: Played) -> None:
    async with program(swiss.world, "lecturer") as lecturer:
        for body, words in {
            "": "Invalid JSON",
            "[]": "must be a table of keys, not []",
            "{}": "why: is missing",
            '{"why": "x", "pair": []}': "pair: unknown key; did you mean 'pairs'?",
            '{"why": "x", "pairs": [["a"]]}': "pairs[1][2]: is missing",
            '{"why": "x", "round": 0}': "round: must be greater than or equal to 1, not 0",
            '{"why": "x\\u0000"}': "why: must not contain a NUL character",
            '{"why": ""}': "why: must not be empty",
            f'{{"why": "{"x" * 1001}"}}': "why: must be a text of at most 1000 characters",
            f'{{"why": "x", "byes": ["{"x" * 256}"]}}': "byes[1]: must be a text of at most 255 characters",
            f'{{"why": "x", "pairs": {[[1, 2]] * 1001}}}': "pairs: at most 1000 items, not 1001",
        }.items():
            status, found = await lecturer.ask("POST", PAIRINGS, content=body.encode())
            assert (status, words in found["error"]) == (400, True), found
