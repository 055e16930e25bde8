"""The application around the pages: routes, errors, headers, assets, forms, bodies, the API's tokens."""

import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.support.databases import database_of
from tests.support.paths import REPOSITORY_ROOT
from tests.web.site import BROWSER, ORIGIN, World, open_world
from tournaments.course.model import CourseError
from tournaments.database.base import StoreError
from tournaments.server.competitions.tournament_spec import free_slug
from tournaments.web import app
from tournaments.web.api import remote
from tournaments.web.http import request_body, static_files
from tournaments.web.http.errors import BadInput, Conflict
from tournaments.web.http.rendering import path_for, see_other
from tournaments.web.http.routing import Access, Route
from tournaments.web.http.security import security_headers
from tournaments.web.pages import signing_in
from tournaments.web.routes import ROUTES

pytestmark = pytest.mark.any_database

ASSETS = REPOSITORY_ROOT / "tournaments/reporting/site/assets"


class DreadfulError(BaseException):
    """Not even an Exception."""


RAISED: dict[str, BaseException] = {
    "bad": BadInput("the number is none"),
    "conflict": Conflict("it runs already"),
    "course": CourseError("the login is taken"),
    "bug": RuntimeError("a secret of the database"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "dreadful": DreadfulError("what"),
    "newer": StoreError("secret/results.db was written by a newer version: upgrade"),
    "damaged": StoreError("secret/results.db is damaged: restore a backup", is_ours=True),
    "group": BaseExceptionGroup("several", [ValueError("a secret"), SystemExit(1)]),
}
CLEANED: list[bool] = []


async def fails(request: Request) -> Response:
    raise RAISED[request.path_params["how"]]


async def echo(request: Request) -> Response:
    async with request.form() as form:
        texts = {name: value for name, value in form.items() if isinstance(value, str) and name != "csrf"}
        sizes = {name: value.size for name, value in form.items() if isinstance(value, UploadFile)}
    return JSONResponse({"texts": texts, "sizes": sizes})


async def raw(request: Request) -> Response:
    return JSONResponse({"bytes": len(await request.body())})


async def number(request: Request) -> Response:
    return JSONResponse(request.path_params["number"])


async def endless(_request: Request) -> Response:
    async def lines() -> AsyncIterator[str]:
        while True:
            yield "data: x\n\n"
            await trio.lowlevel.checkpoint()

    return StreamingResponse(lines(), media_type="text/event-stream")


async def saved(request: Request) -> Response:
    return see_other(request, "/sign-in", "Saved <b>it</b>.")


async def cleans_up(_request: Request) -> Response:
    """Like a download, whose file is removed after it was sent."""
    return Response("a file", background=BackgroundTask(CLEANED.append, True))


async def breaks_off(_request: Request) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        yield b"the beginning"
        raise RuntimeError("in the middle")

    return StreamingResponse(parts())


SPECIAL = (
    *static_files.ROUTES,
    *signing_in.ROUTES,
    Route("GET", "/fails/{how}", fails, Access.EVERYBODY, "fails"),
    Route("GET", "/api/v1/fails/{how}", fails, Access.EVERYBODY, "api.fails", api=True),
    Route("POST", "/echo", echo, Access.EVERYBODY, "echo"),
    Route("POST", "/large", echo, Access.SIGNED_IN, "large", body_limit=1 << 30),
    Route("POST", "/raw", raw, Access.EVERYBODY, "raw"),
    Route("POST", "/api/v1/raw", raw, Access.SIGNED_IN, "api.raw", api=True, body_limit=1000),
    Route("POST", "/upload", raw, Access.SIGNED_IN, "upload", body_limit=1000, is_upload=True),
    Route("GET", "/number/{number:int}", number, Access.EVERYBODY, "number"),
    Route("GET", "/endless", endless, Access.EVERYBODY, "endless"),
    Route("GET", "/cleans-up", cleans_up, Access.EVERYBODY, "cleans-up"),
    Route("GET", "/breaks-off", breaks_off, Access.EVERYBODY, "breaks-off"),
    Route("POST", "/saved", saved, Access.EVERYBODY, "saved"),
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(database_of(tmp_path).course(), tmp_path, routes=SPECIAL) as made:
        yield made


# Routes.


def test_routes_are_unambiguous() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        assert route.method in ("GET", "POST")
        assert route.api == route.path.startswith("/api/"), route.path


def test_no_tournament_has_the_address_of_another_page() -> None:
    fixed = [route.path.split("/") for route in ROUTES]
    for route in ROUTES:
        before, slug, _ = route.path.partition("{slug}")
        if slug:
            start = before.split("/")[:-1]
            siblings = [parts for parts in fixed if len(parts) > len(start) and parts[: len(start)] == start]
            words = {parts[len(start)] for parts in siblings} - {"{slug}"}
            assert all(free_slug(word, set()) != word for word in words), route.path


def test_addresses_are_made_from_names() -> None:
    routes = (
        Route("GET", "/references/{name}", fails, Access.PUBLIC, "reference"),
        Route("GET", "/number/{number:int}/x", number, Access.PUBLIC, "number"),
    )
    assert path_for(routes, "reference", {"name": "a/b c?"}) == "/references/a%2Fb%20c%3F"
    assert path_for(routes, "number", {"number": 3}) == "/number/3/x"
    for name in ("nope", "number"):
        with pytest.raises(KeyError):
            path_for(routes, name, {})


def refuse_digits(_self: object, value: str) -> int:
    """Do what int() does in a server's process; in tests, Hypothesis lifts the limit."""
    raise ValueError(f"Exceeds the limit (4300 digits) for integer string conversion: {len(value)} digits")


async def test_addresses_and_methods_without_a_route(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world.browser() as browser:
        for path in (
            "/nope",
            "/assets/nope.css",
            "/assets/../app.py",
            "/sign-in/",
            "//sign-in",
            "/number/x",
            "/number/99999999999999999999",
            "/fails/a%00b",
        ):
            assert "<h1>Nothing here <small>404</small></h1>" in await browser.text(path, 404)
        assert await browser.text("/number/2147483647") == "2147483647"
        monkeypatch.setattr("starlette.convertors.IntegerConvertor.convert", refuse_digits)
        await browser.text("/number/" + "9" * 5_000, 404)
        answer = await browser.request("DELETE", "/sign-in")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
        answer = await browser.get("/echo")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert "does not answer GET, only POST" in answer.text


async def test_head_is_get_without_its_body(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.head("/sign-in")
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        with trio.fail_after(30):
            assert (await browser.head("/endless")).status_code == 200
        CLEANED.clear()
        await browser.get("/cleans-up")
        await browser.head("/cleans-up")
        assert CLEANED == [True, True]


async def test_other_protocols_are_refused(world: World) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/", "headers": [], "query_string": b""}
    await world.app(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": ""}]
    with pytest.raises(ValueError, match="'lifespan' are not supported"):
        await world.app({"type": "lifespan"}, receive, send)


async def connect(world: World, path: str, headers: list[tuple[bytes, bytes]]) -> list[Any]:
    """Open a WebSocket, and return the messages of the server."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    scope = {
        "type": "websocket",
        "path": path,
        "headers": headers,
        "query_string": b"",
        "extensions": {"websocket.http.response": {}},
    }
    await world.app(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    ("headers", "status", "sentence"),
    [
        ([(b"host", b"other.example")], 400, "This server does not go by that name."),
        (
            [(b"host", b"kalah.example"), (b"origin", b"https://evil.example")],
            403,
            "This connection was made from another site.",
        ),
        ([(b"host", b"kalah.example")], 404, ""),
    ],
)
async def test_a_connection_of_another_host_or_site_is_refused(
    tmp_path: Path, headers: list[tuple[bytes, bytes]], status: int, sentence: str
) -> None:
    url = "https://kalah.example"
    with open_world(database_of(tmp_path).course(), tmp_path, routes=SPECIAL, public_url=url) as world:
        start, body = await connect(world, "/api/v1/other", headers)
    assert start["status"] == status
    assert sentence in json.loads(body["body"])["error"]


@pytest.mark.parametrize(
    ("error", "status"),
    [(StoreError("a newer version wrote it"), 500), (StoreError("it is away", is_ours=True), 503)],
)
async def test_a_connection_without_a_database_is_refused(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(world.course.settings, "load", fail)
    start, body = await connect(world, remote.PATH, [(b"host", b"testserver")])
    assert start["status"] == status
    sentence = json.loads(body["body"])["error"]
    assert str(error) not in sentence
    faults = re.findall(r"noted as (fault [0-9a-f]{8})", sentence)
    assert re.findall(r"(fault [0-9a-f]{8}): WebSocket /api", caplog.text) == faults
    assert len(faults) == (status == 500)


async def test_a_mistake_ends_one_connection_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("no such case")

    with monkeypatch.context() as patch:
        patch.setattr(world.course.settings, "load", fail)
        assert await connect(world, remote.PATH, [(b"host", b"testserver")]) == []
    assert "ZeroDivisionError: no such case" in caplog.text
    assert "Sign in" in await world.page("visitor", "/sign-in")


# Errors.


@pytest.mark.parametrize(("how", "status"), [("bad", 400), ("conflict", 409), ("course", 400)])
async def test_errors_of_users_have_a_sentence(world: World, how: str, status: int) -> None:
    async with world.browser() as browser:
        assert f"<p>{RAISED[how]}</p>" in await browser.text(f"/fails/{how}", status)
        answer = await browser.get(f"/api/v1/fails/{how}")
    assert (answer.status_code, answer.json()) == (status, {"error": str(RAISED[how])})


@pytest.mark.parametrize("how", ["bug", "exit", "interrupt", "dreadful", "group"])
async def test_faults_of_the_server_are_numbered_and_logged(
    world: World, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.browser() as browser:
        page = await browser.text(f"/fails/{how}", 500)
        answer = await browser.get(f"/api/v1/fails/{how}")
        assert answer.status_code == 500
        for text in (page, answer.json()["error"]):
            assert "secret" not in text
            (fault,) = re.findall(r"noted as (fault [0-9a-f]{8})", text)
            (record,) = [record for record in caplog.records if record.getMessage().startswith(fault)]
            assert record.exc_info
        await browser.text("/sign-in")  # the server goes on


@pytest.mark.parametrize(("how", "status"), [("newer", 500), ("damaged", 503)])
async def test_lecturers_read_why_a_store_cannot_be_used(world: World, how: str, status: int) -> None:
    for role, is_named in (("lecturer", True), ("student", False)):
        page = await world.page(role, f"/fails/{how}", status)
        assert (str(RAISED[how]) in page) is is_named


async def test_an_error_whose_page_cannot_be_shown_keeps_its_sentence(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of the template")

    monkeypatch.setattr(app, "render", fail)
    async with world.browser() as browser:
        text = await browser.text("/fails/conflict", 409)
    assert text.startswith(f"{RAISED['conflict']}\n(The page for this cannot be shown: fault ")
    assert "secret" not in text
    assert "a secret of the template" in caplog.text


async def test_a_response_that_breaks_off_ends_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with world.browser() as browser:
        with pytest.raises(Exception):  # noqa: B017 - httpx2's transport notices in its own way
            await browser.get("/breaks-off")
        assert "fault " in caplog.text
        await browser.text("/sign-in")


async def test_cancellation_is_not_swallowed(world: World) -> None:
    async with world.browser() as browser:
        with trio.move_on_after(0.05) as scope:
            await browser.get("/endless")
        assert scope.cancelled_caught


async def test_requests_are_logged_without_secrets(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kalarena.web")
    async with world.browser() as browser:
        await browser.get("/links/very-secret?x=1")
    assert "GET /links/... 404" in caplog.text
    assert "very-secret" not in caplog.text


# Headers and assets.


async def test_every_response_has_the_headers_of_security(world: World) -> None:
    async with world.browser() as browser:
        for path in ("/sign-in", "/nope", "/fails/bug", "/assets/site.css", "/api/v1/fails/bad", "/links/x"):
            answer = await browser.get(path)
            expected = security_headers(https=False)
            if not path.startswith("/assets"):
                expected = {**expected, "cache-control": "no-store"}
            for name, value in expected.items():
                assert answer.headers[name] == value, path
        page = await browser.text("/sign-in")
        assert not re.search(r"<style|<script(?![^>]* src=)| style=| on\w+=", page)


async def test_assets_are_cached_under_their_version(world: World) -> None:
    async with world.browser() as browser:
        found = re.findall(r'(?:href|src)="(/assets/[^"]+)"', await browser.text("/sign-in"))
        assert len(found) >= 4
        for address in found:
            answer = await browser.get(address)
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            bare = await browser.get(address.partition("?")[0])
            assert bare.headers["cache-control"] == "no-cache"
            again = await browser.get(address, headers={"if-none-match": bare.headers["etag"]})
            assert (answer.status_code, again.status_code, again.content) == (200, 304, b"")
        for name in ("replay.js", "replay.css", "report.css"):
            assert (await browser.get(f"/assets/{name}")).content == (ASSETS / name).read_bytes()


async def test_behind_tls(tmp_path: Path) -> None:
    location, public_url = database_of(tmp_path).course(), "https://kalah.example.org"
    with open_world(location, tmp_path, routes=SPECIAL, public_url=public_url) as world:
        async with world.browser() as browser:
            await browser.text("/sign-in", 400)  # "testserver" is not its name
            answer = await browser.get("/sign-in", headers={"host": "kalah.example.org"})
    assert answer.status_code == 200
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert answer.headers["set-cookie"].startswith("__Host-kalarena-form=")
    assert "; Secure" in answer.headers["set-cookie"]


# Forms.


async def test_a_form_of_this_site_is_accepted(world: World) -> None:
    async with world.browser() as browser:
        for files, sizes in ((None, {}), ({"f": b"12345"}, {"f": 5})):
            answer = await browser.submit("/sign-in", {"a": "1", "b": "ä"}, to="/echo", files=files)
            assert answer.json() == {"texts": {"a": "1", "b": "ä"}, "sizes": sizes}
        answer = await browser.submit("/sign-in", {"a": "x\0y"}, to="/echo")
        assert (answer.status_code, "NUL" in answer.text) == (400, True)
        headers = {"x-csrf": await browser.csrf("/sign-in"), "content-type": "application/octet-stream"}
        answer = await browser.post("/raw", content=b"12345", headers=BROWSER | headers)
        assert answer.json() == {"bytes": 5}


async def test_a_form_of_another_site_is_refused(world: World) -> None:
    async with world.browser() as browser:
        data = {"csrf": await browser.csrf("/sign-in")}
        for headers in (
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
        ):
            assert (await browser.post("/echo", data=data, headers=headers)).status_code == 403
        assert (await browser.post("/echo", data=data, headers=BROWSER)).status_code == 200


async def test_a_form_needs_the_text_of_its_session(world: World) -> None:
    async with world.browser() as one, world.browser() as another, world.browser("student") as student:
        of_another = await another.csrf("/sign-in")
        await one.get("/sign-in")
        for browser in (one, student):
            for data in ({}, {"csrf": ""}, {"csrf": of_another}, {"csrf": "ä"}):
                answer = await browser.post("/echo", data=data, headers=BROWSER)
                assert (answer.status_code, "load it again" in answer.text) == (403, True)
        before = await one.csrf("/sign-in")
        await one.sign_in("student-1")
        assert (await one.post("/large", data={"csrf": before}, headers=BROWSER)).status_code == 403
    async with world.browser() as browser:  # without any cookie
        assert (await browser.post("/echo", data={"csrf": of_another}, headers=BROWSER)).status_code == 403


async def test_malformed_forms_are_refused(world: World) -> None:
    async with world.browser() as browser:
        await browser.get("/sign-in")
        for content, kind in (
            (b"--x\r\nno header", "multipart/form-data; boundary=x"),
            (b"anything", "multipart/form-data"),
            (b"anything", "multipart/form-data; boundary="),
            (b"{}", "application/json"),
            (b"\xff\xfe=%zz&&&=", "application/x-www-form-urlencoded"),
            (b"a=1", ""),
        ):
            answer = await browser.post("/echo", content=content, headers=BROWSER | {"content-type": kind})
            assert answer.status_code in (400, 403), kind


@pytest.mark.parametrize("charset", ["punycode", "undefined", "unicode_escape", "latin-1", '"utf-16"', "x\0"])
async def test_a_form_in_another_encoding_is_refused_before_it_is_decoded(world: World, charset: str) -> None:
    """The decoder of punycode takes seconds for the bytes of a small form."""
    async with world.browser() as browser:
        csrf = await browser.csrf("/sign-in")
        fields = (f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
                  for name, text in (("csrf", csrf), ("a", "b")))  # fmt: skip
        content = ("".join(fields) + "--x--\r\n").encode()
        for given, status in (("", 200), ("; charset=UTF-8", 200), (f"; charset={charset}", 400)):
            kind = {"content-type": f"multipart/form-data; boundary=x{given}"}
            answer = await browser.post("/echo", content=content, headers=BROWSER | kind)
            assert (answer.status_code, "UTF-8" in answer.text) == (status, status == 400)


async def test_a_message_is_shown_once_and_as_text(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.submit("/sign-in", to="/saved")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert "Saved &lt;b&gt;it&lt;/b&gt;." in await browser.text("/sign-in")
        assert "Saved" not in await browser.text("/sign-in")


# Bodies.


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 1000


async def test_a_body_that_is_too_large_is_refused_declared_or_not(world: World) -> None:
    async with world.browser() as browser:
        headers = BROWSER | {"x-csrf": await browser.csrf("/sign-in")}
        assert (await browser.post("/raw", content=chunks(60), headers=headers)).json() == {"bytes": 60_000}
        contents: list[Any] = [b"x" * 70_000, chunks(70), chunks(1000)]
        for content in contents:
            answer = await browser.post("/raw", content=content, headers=headers)
            assert (answer.status_code, "at most 65,536 bytes" in answer.text) == (413, True)
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = await browser.post("/echo", content=chunks(70), headers=headers | kind)
        assert answer.status_code == 413


async def test_the_limit_of_uploads_is_a_setting(world: World) -> None:
    world.course.settings.change(upload_mb=0.5)
    async with world.browser("student") as browser:
        headers = BROWSER | {"x-csrf": await browser.csrf("/nope")}
        for size, status in ((2 << 20, 200), (3 << 20, 413)):
            answer = await browser.post("/large", files={"f": b"x" * size}, headers=headers)
            assert answer.status_code == status
    async with world.browser() as browser:
        answer = await browser.post("/large", content=chunks(2000), headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_a_body_that_does_not_arrive_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "PATIENCE_S", -10.0)
    monkeypatch.setattr(app, "DRAIN_S", 0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await trio.sleep_forever()

    async with world.browser() as browser:
        headers = BROWSER | {"x-csrf": await browser.csrf("/sign-in")}
        assert (await browser.post("/raw", content=slow(), headers=headers)).status_code == 408


@pytest.mark.parametrize(("path", "is_read"), [("/upload", True), ("/large", False)])
async def test_a_refused_upload_is_received_for_longer(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, is_read: bool
) -> None:
    """For a client that still sends does not see the reason."""
    monkeypatch.setattr(app, "DRAIN_S", 0.0)
    was_read = False

    async def content() -> AsyncIterator[bytes]:
        nonlocal was_read
        for _ in range(10):
            await trio.testing.wait_all_tasks_blocked()
            yield b"x" * 1000
        was_read = True

    async with world.browser() as browser:
        answer = await browser.post(path, content=content(), headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert was_read == is_read


# The API's tokens.


async def test_the_api_accepts_a_token_and_no_cookie(world: World) -> None:
    path, secret = "/api/v1/raw", world.token("student", days=1)
    async with world.browser("student") as browser:
        answer = await browser.post(path, content=b"12")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "needs a token" in answer.json()["error"]
    async with world.browser() as program:

        async def ask(authorization: str) -> Any:
            return await program.post(path, content=b"12", headers={"authorization": authorization})

        for scheme in ("Bearer", "bearer"):
            assert (await ask(f"{scheme} {secret}")).json() == {"bytes": 2}
        for wrong in (f"Bearer {secret}x", "Bearer ", "Basic eDp5", f"Token {secret}"):
            assert (await ask(wrong)).status_code == 401
        world.clock.advance(days=2)
        answer = await ask(f"Bearer {secret}")
        assert (answer.status_code, "not valid" in answer.json()["error"]) == (401, True)


async def test_the_rate_of_api_requests_is_limited(world: World) -> None:
    async with world.browser() as program:
        headers = world.bearer("student")
        statuses = [(await program.post("/api/v1/raw", headers=headers)).status_code for _ in range(62)]
        assert statuses == [200] * 60 + [429] * 2
        answer = await program.post("/api/v1/raw", headers=headers)
        assert answer.headers["retry-after"] == "1"
        assert (await program.post("/api/v1/raw", headers=world.bearer("other"))).status_code == 200
        world.clock.advance(seconds=1)
        assert (await program.post("/api/v1/raw", headers=headers)).status_code == 200


async def test_a_disabled_account_is_locked_out_at_once(world: World) -> None:
    headers = world.bearer("student")
    async with world.browser("student") as browser:
        await browser.text("/sign-in", 303)
        world.course.accounts.set_disabled(world.accounts["student"].id, True)
        await browser.text("/sign-in")
        assert (await browser.post("/api/v1/raw", headers=headers)).status_code == 401
