"""The HTTP API: submitting, looking at what became of it, results; and that its document tells the truth."""

import errno
import io
import json
import tempfile
import zipfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from tests.databases import database_of
from tests.web_played import open_played
from tests.web_site import World, open_world
from tournaments.bots.storage import ContentError, content_digest
from tournaments.bots.upload.limits import Upload
from tournaments.course.model import Checked, Version, VersionState
from tournaments.database.base import Location
from tournaments.web.api.documentation import OPERATIONS
from tournaments.web.api.submissions import LINES


@dataclass
class Log:
    """A check's log as the service gives it."""

    lines: list[str] = field(default_factory=list)
    over: bool = False


class FakeService:
    """Keeps versions in the course, and nothing else."""

    def __init__(self) -> None:
        self.world: World
        self.logs: dict[int, Log] = {}

    async def submit(self, upload: Upload, team: int, account: int, origin: str) -> tuple[Version, bool]:
        size = sum(len(file.content) for file in upload.files)
        digest = content_digest(upload.files)
        now = self.world.clock()
        return self.world.course.versions.add(team, digest, len(upload.files), size, account, origin, now)

    async def check_log(self, version_id: int) -> Log:
        return self.logs.setdefault(version_id, Log())


@contextmanager
def served(place: Location, data: Path) -> Iterator[World]:
    service = FakeService()
    with open_world(place, data, service) as made:
        service.world = made
        yield made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with served(database_of(tmp_path).course(), tmp_path) as made:
        yield made


@pytest.fixture
def world_on_each(place: Location, tmp_path: Path) -> Iterator[World]:
    """On both databases."""
    with served(place, tmp_path) as made:
        yield made


class Program:
    """Uses the API with the token of one role, and holds each answer against the document."""

    def __init__(self, world: World, browser: httpx2.AsyncClient, role: str | None) -> None:
        self._browser = browser
        self._headers = {}
        if role is not None:
            secret, _ = world.course.tokens.make(world.accounts[role].id, "test", world.clock(), None)
            self._headers = {"authorization": f"Bearer {secret}"}

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        answer = await self._browser.request(method, path, headers=self._headers, **more)
        document = (await self._browser.get("/api/openapi.json")).json()
        found = answer.json()
        told = _operation(document, method, path)["responses"][str(answer.status_code)]
        schema = told["content"]["application/json"]["schema"]
        jsonschema_rs.validate({**schema, "components": document["components"]}, found)
        return answer.status_code, found


def _operation(document: dict[str, Any], method: str, path: str) -> Any:
    parts = path.partition("?")[0].split("/")
    for template, methods in document["paths"].items():
        wanted = template.split("/")
        if len(parts) == len(wanted) and all(
            one == other or other.startswith("{") for one, other in zip(parts, wanted, strict=True)
        ):
            return methods[method.lower()]
    raise AssertionError(f"{path} is not in the document")


def zipped(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return made.getvalue()


async def test_a_version_from_upload_to_report(world_on_each: World) -> None:
    world = world_on_each
    async with world.browser() as browser:
        student = Program(world, browser, "student")
        content = zipped(bot_py="print()\n", Thumbs_db="x")
        status, first = await student.ask("POST", "/api/v1/submissions?name=bot.zip", content=content)
        assert (status, first["new"], first["passed_over"]) == (201, True, ["Thumbs.db"])
        made = first["version"]
        assert (made["number"], made["state"], made["is_over"], made["current"]) == (
            1,
            "queued",
            False,
            False,
        )
        assert (made["origin"], made["files"], made["size"]) == ("api", 1, 8)
        status, again = await student.ask("POST", "/api/v1/submissions?name=other.zip", content=content)
        assert (status, again["new"], again["version"]["id"]) == (200, False, made["id"])

        own = f"/api/v1/submissions/{made['id']}"
        assert await student.ask("GET", own) == (200, {"version": made, "report": None})
        versions = world.course.versions
        versions.begin_check(made["id"])
        report = {"schema": 1, "ok": True}
        versions.decide(
            made["id"], VersionState.QUALIFIED, Checked(report, "log"), "ab" * 32, 0, world.clock()
        )
        status, found = await student.ask("GET", own)
        assert (found["version"]["state"], found["version"]["current"]) == ("qualified", True)
        assert found["report"] == report
        status, found = await student.ask("GET", "/api/v1/submissions")
        assert [each["id"] for each in found["versions"]] == [made["id"]]


async def test_another_teams_versions_are_not_there(world: World) -> None:
    async with world.browser() as browser:
        content = zipped(bot_py="print()\n")
        student, other = Program(world, browser, "student"), Program(world, browser, "other")
        _, made = await student.ask("POST", "/api/v1/submissions?name=bot.zip", content=content)
        own = f"/api/v1/submissions/{made['version']['id']}"
        for path in (own, f"{own}/log", "/api/v1/submissions/99999"):
            status, found = await other.ask("GET", path)
            assert (status, found) == (404, {"error": "Your team has no such version."})
        assert (await other.ask("GET", "/api/v1/submissions"))[1] == {"versions": []}


async def test_a_log_comes_in_pieces(world: World) -> None:
    async with world.browser() as browser:
        student = Program(world, browser, "student")
        _, made = await student.ask("POST", "/api/v1/submissions?name=bot.py", content=b"print()")
        path = f"/api/v1/submissions/{made['version']['id']}/log"
        log = await world.site.service.check_log(made["version"]["id"])
        assert (await student.ask("GET", path))[1] == {"lines": [], "next": 0, "is_over": False}
        log.lines += [f"line {number}" for number in range(LINES + 2)]
        log.over = True
        _, piece = await student.ask("GET", path)
        assert (len(piece["lines"]), piece["next"], piece["is_over"]) == (LINES, LINES, False)
        _, rest = await student.ask("GET", f"{path}?after={LINES}")
        assert rest == {"lines": log.lines[LINES:], "next": LINES + 2, "is_over": True}
        log.lines[:], log.over = ["anew"], False  # checked again: shorter than what was seen
        assert (await student.ask("GET", f"{path}?after=9"))[1] == {"lines": [], "next": 1, "is_over": False}
        for wrong in ("after=-1", "after=x", "after=", "after=1&after=2", "after=99999999999"):
            status, found = await student.ask("GET", f"{path}?{wrong}")
            assert status == 400
            assert found["error"].startswith("after=")


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
    ],
)
async def test_what_is_not_taken(world: World, query: str, content: bytes, status: int, words: str) -> None:
    async with world.browser() as browser:
        student = Program(world, browser, "student")
        found = await student.ask("POST", f"/api/v1/submissions{query}", content=content)
        assert found[0] == status
        assert words in found[1]["error"]
    assert world.course.versions.of_team(world.teams[0].id) == []


async def test_an_upload_that_we_cannot_keep_is_our_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    async def full(*_: object) -> None:
        raise ContentError("/srv/x: the submission cannot be kept")

    path = "/api/v1/submissions?name=bot.py"
    async with world.browser() as browser:
        student = Program(world, browser, "student")
        with monkeypatch.context() as patch:
            patch.setattr(world.site.service, "submit", full)
            found = [await student.ask("POST", path, content=b"x")]
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "SpooledTemporaryFile", lambda _most: Full())
            found.append(await student.ask("POST", path, content=b"x"))
    for status, told in found:
        assert (status, "could not keep" in told["error"], "/srv/x" in told["error"]) == (503, True, False)


async def test_too_large_declared_or_not(world: World) -> None:
    world.course.settings.change(upload_mb=0.001)

    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    async with world.browser() as browser, aclosing(pieces()) as undeclared:
        student = Program(world, browser, "student")
        for content in (b"x" * 5000, undeclared):
            status, found = await student.ask("POST", "/api/v1/submissions?name=bot.zip", content=content)
            assert status == 413
            assert found["error"].startswith("An upload may have 0.001 MiB")
    assert world.course.versions.of_team(world.teams[0].id) == []


async def test_who_may_not_submit(world: World) -> None:
    async with world.browser() as browser:
        for role, status in ((None, 401), ("lecturer", 403), ("admin", 403)):
            program = Program(world, browser, role)
            found, _ = await program.ask("POST", "/api/v1/submissions?name=bot.py", content=b"x")
            assert found == status
        wrong = await browser.get("/api/v1/me", headers={"authorization": "Bearer kal_nobodys"})
        assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, "Bearer")
        _, found = await Program(world, browser, "student").ask("GET", "/api/v1/me")
        assert found["account"] == {
            "login": "student-1", "name": "student-1", "role": "student", "team": "Team 1"
        }  # fmt: skip
        assert (await Program(world, browser, "admin").ask("GET", "/api/v1/me"))[1]["account"]["team"] is None


async def test_a_browsers_cookie_is_no_token(world: World) -> None:
    async with world.browser("student") as browser:
        assert (await browser.get("/api/v1/me")).status_code == 401
        answer = await browser.post("/api/v1/submissions?name=bot.py", content=b"x")
        assert answer.status_code == 401


async def test_uploads_are_limited(world: World) -> None:
    async with world.browser() as browser:
        student = Program(world, browser, "student")
        for number in range(1000):
            status, found = await student.ask(
                "POST", "/api/v1/submissions?name=bot.py", content=b"%d" % number
            )
            if status != 201:
                break
        assert (status, found["error"].startswith("You upload very often.")) == (429, True)


async def test_every_operation_is_documented_once(world: World) -> None:
    async with world.browser() as browser:
        document = (await browser.get("/api/openapi.json")).json()
    told = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert told == {(each.path, each.route.method.lower()) for each in OPERATIONS}
    for operation in OPERATIONS:
        found = document["paths"][operation.path][operation.route.method.lower()]
        in_path = {each["name"] for each in found.get("parameters", []) if each["in"] == "path"}
        assert in_path == {part[1:-1] for part in operation.path.split("/") if part.startswith("{")}
    assert json.dumps(document)


PAIRINGS = "/api/v1/competitions/cup/pairings"


async def test_a_lecturers_program_fixes_pairings(tmp_path: Path) -> None:
    with open_played(tmp_path, cup_rounds=2, cup_format="swiss") as played:
        world = played.world
        names = ["Team 1 v1", "Team 2 v1", "ladder:1"]
        async with world.browser() as browser:
            lecturer = Program(world, browser, "lecturer")
            wanted = {"why": "the jury asks for it", "pairs": [names[:2]], "byes": [names[2]]}
            status, found = await lecturer.ask("POST", PAIRINGS, json=wanted)
            assert (status, found["noted"]) == (
                200,
                [
                    "noted: pair Team 1 v1 (meets Team 2 v1 in round 2): the jury asks for it",
                    "noted: bye ladder:1 (has a bye in round 2): the jury asks for it",
                ],
            )
            status, found = await lecturer.ask("POST", PAIRINGS, json=wanted)
            assert (status, found["error"]) == (
                409,
                "'Team 1 v1' has a fixed pairing in round 2 already: take it back first",
            )
            status, _ = await lecturer.ask("POST", PAIRINGS, json={**wanted, "undo": True})
            assert status == 200
        summary = await played.service.contests.summary(played.cup.id)
        assert summary.rulings.manual.fixed == {2: []}
        newest = world.course.journal.entries(1)[0]
        assert (newest.action, newest.subject) == ("tournament.pair", "cup")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "Invalid JSON"),
        ("[]", "must be a table of keys, not []"),
        ("{}", "why: is missing"),
        ('{"why": "x", "pair": []}', "pair: unknown key; did you mean 'pairs'?"),
        ('{"why": "x", "pairs": [["a"]]}', "pairs[1][2]: is missing"),
        ('{"why": "x", "round": 0}', "round: must be greater than or equal to 1, not 0"),
        ('{"why": "x\\u0000"}', "why: "),
    ],
)
async def test_pairings_of_another_shape(tmp_path: Path, body: str, words: str) -> None:
    with open_played(tmp_path, cup_format="swiss") as played:
        async with played.world.browser() as browser:
            lecturer = Program(played.world, browser, "lecturer")
            status, found = await lecturer.ask("POST", PAIRINGS, content=body.encode())
    assert status == 400
    assert words in found["error"]


async def test_a_student_fixes_no_pairings(tmp_path: Path) -> None:
    with open_played(tmp_path, cup_format="swiss") as played:
        async with played.world.browser() as browser:
            wanted = {"why": "x", "byes": ["Team 1 v1"]}
            student = Program(played.world, browser, "student")
            assert (await student.ask("POST", PAIRINGS, json=wanted))[0] == 403
