"""The application around the pages: routes, errors, forms, headers, bodies."""

import logging
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
import trio
from starlette.background import BackgroundTask
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.databases import database_of
from tests.web_site import CSRF, ORIGIN, World, open_world
from tournaments.course.model import CourseError
from tournaments.web.http import request_body, static_files
from tournaments.web.http.errors import BadInput, Conflict
from tournaments.web.http.rendering import path_for, see_other
from tournaments.web.http.routing import Access, Route
from tournaments.web.http.security import security_headers
from tournaments.web.pages import signing_in
from tournaments.web.routes import ROUTES

BROWSER = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}


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
    "group": BaseExceptionGroup("several", [ValueError("a secret"), SystemExit(1)]),
}


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


async def noted(request: Request) -> Response:
    return see_other(request, "/sign-in", "Saved <b>it</b>.")


async def cleans_up(_request: Request) -> Response:
    """Like a download, whose file is removed when it was sent."""
    return Response("a file", background=BackgroundTask(CLEANED.append, True))


CLEANED: list[bool] = []


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
    Route("GET", "/number/{number:int}", number, Access.EVERYBODY, "number"),
    Route("GET", "/endless", endless, Access.EVERYBODY, "endless"),
    Route("GET", "/cleans-up", cleans_up, Access.EVERYBODY, "cleans-up"),
    Route("GET", "/breaks-off", breaks_off, Access.EVERYBODY, "breaks-off"),
    Route("POST", "/noted", noted, Access.EVERYBODY, "noted"),
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(database_of(tmp_path).course(), tmp_path, routes=SPECIAL) as made:
        yield made


async def csrf(browser: httpx2.AsyncClient) -> str:
    pages = [(await browser.get(path)).text for path in ("/nope", "/sign-in")]
    found = CSRF.search("".join(pages))  # of the button to sign out, or of the form to sign in
    assert found
    return found[1]


def test_routes_are_unambiguous() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        assert route.method in ("GET", "POST")
        assert route.api == route.path.startswith("/api/"), route.path


async def test_nothing_here(world: World) -> None:
    async with world.browser() as browser:
        for path in ("/nope", "/assets/nope.css", "/assets/../app.py", "/sign-in/", "//sign-in", "/number/x",
                     "/number/99999999999999999999", "/fails/a%00b"):  # fmt: skip
            answer = await browser.get(path)
            assert answer.status_code == 404, path
            assert "<h1>Nothing here <small>404</small></h1>" in answer.text
        assert (await browser.get("/number/2147483647")).json() == 2**31 - 1


async def test_a_number_with_more_digits_than_python_reads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("starlette.convertors.IntegerConvertor.convert", too_many_digits)
    async with world.browser() as browser:
        assert (await browser.get("/number/" + "9" * 5_000)).status_code == 404


def too_many_digits(_self: object, value: str) -> int:
    """What int() does in a server's process; in tests, Hypothesis lifts the limit."""
    raise ValueError(f"Exceeds the limit (4300 digits) for integer string conversion: {len(value)} digits")


async def test_other_methods(world: World) -> None:
    async with world.browser() as browser:
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
        with trio.fail_after(5):
            assert (await browser.head("/endless")).status_code == 200
        CLEANED.clear()
        await browser.get("/cleans-up")
        await browser.head("/cleans-up")
        assert CLEANED == [True, True]


@pytest.mark.parametrize(
    ("how", "status", "sentence"),
    [
        ("bad", 400, "the number is none"),
        ("conflict", 409, "it runs already"),
        ("course", 400, "the login is taken"),
    ],
)
async def test_what_users_can_put_right(world: World, how: str, status: int, sentence: str) -> None:
    async with world.browser() as browser:
        page = await browser.get(f"/fails/{how}")
        assert page.status_code == status
        assert f"<p>{sentence}</p>" in page.text
        told = await browser.get(f"/api/v1/fails/{how}")
        assert (told.status_code, told.json()) == (status, {"error": sentence})


@pytest.mark.parametrize("how", ["bug", "exit", "interrupt", "dreadful", "group"])
async def test_faults_of_ours_are_numbered_and_logged(
    world: World, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.browser() as browser:
        page = await browser.get(f"/fails/{how}")
        told = await browser.get(f"/api/v1/fails/{how}")
        assert (page.status_code, told.status_code) == (500, 500)
        assert "secret" not in page.text + told.text
        for text in (page.text, told.json()["error"]):
            (fault,) = re.findall(r"noted as (fault [0-9a-f]{8})", text)
            (record,) = [record for record in caplog.records if record.getMessage().startswith(fault)]
            assert record.exc_info
        assert (await browser.get("/sign-in")).status_code == 200  # the server lives


async def test_an_answer_that_breaks_off_ends_itself_alone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.browser() as browser:
        with pytest.raises(Exception):  # noqa: B017 - httpx2's transport notices in its own way
            await browser.get("/breaks-off")
        assert "fault " in caplog.text
        assert (await browser.get("/sign-in")).status_code == 200


async def test_cancellation_is_not_swallowed(world: World) -> None:
    async with world.browser() as browser:
        with trio.move_on_after(0.05) as scope:
            await browser.get("/endless")
        assert scope.cancelled_caught


async def test_every_answer_has_the_headers(world: World) -> None:
    async with world.browser() as browser:
        for path in ("/sign-in", "/nope", "/fails/bug", "/assets/site.css", "/api/v1/fails/bad", "/links/x"):
            answer = await browser.get(path)
            for name, value in security_headers(https=False).items():
                assert answer.headers[name] == value, path
            if not path.startswith("/assets"):
                assert answer.headers["cache-control"] == "no-store", path


async def test_pages_hold_nothing_inline(world: World) -> None:
    async with world.browser() as browser:
        page = (await browser.get("/sign-in")).text
    assert not re.search(r"<style|<script(?![^>]* src=)| style=| on\w+=", page)


async def test_assets_are_kept_for_ever_under_their_version(world: World) -> None:
    async with world.browser() as browser:
        found = re.findall(r'(?:href|src)="(/assets/[^"]+)"', (await browser.get("/sign-in")).text)
        assert len(found) >= 4
        for address in found:
            answer = await browser.get(address)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            bare = await browser.get(address.partition("?")[0])
            assert bare.headers["cache-control"] == "no-cache"
            again = await browser.get(address, headers={"if-none-match": bare.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")


async def test_the_viewer_of_reports_is_served_as_it_is(world: World) -> None:
    async with world.browser() as browser:
        for name in ("replay.js", "replay.css", "report.css"):
            answer = await browser.get(f"/assets/{name}")
            assert answer.content == (Path("tournaments/reporting/site/assets") / name).read_bytes()


# Forms.


async def test_a_form_of_ours_is_taken(world: World) -> None:
    async with world.browser() as browser:
        data = {"csrf": await csrf(browser), "a": "1", "b": "ä"}
        answer = await browser.post("/echo", data=data, headers=BROWSER)
        assert answer.json() == {"texts": {"a": "1", "b": "ä"}, "sizes": {}}
        answer = await browser.post("/echo", data=data, files={"f": b"12345"}, headers=BROWSER)
        assert answer.json() == {"texts": {"a": "1", "b": "ä"}, "sizes": {"f": 5}}


async def test_the_text_may_come_in_a_header(world: World) -> None:
    async with world.browser() as browser:
        headers = BROWSER | {"x-csrf": await csrf(browser), "content-type": "application/octet-stream"}
        answer = await browser.post("/raw", content=b"12345", headers=headers)
        assert answer.json() == {"bytes": 5}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_form_of_another_site_is_not(world: World, headers: dict[str, str]) -> None:
    async with world.browser() as browser:
        data = {"csrf": await csrf(browser)}
        assert (await browser.post("/echo", data=data, headers=headers)).status_code == 403
        assert (await browser.post("/echo", data=data, headers=BROWSER)).status_code == 200


async def test_a_form_without_its_text_is_not_taken(world: World) -> None:
    async with world.browser() as one, world.browser() as another, world.browser("student") as student:
        other = await csrf(another)
        for browser in (one, student):
            await csrf(browser)
            for data in ({}, {"csrf": ""}, {"csrf": other}, {"csrf": "ä"}):
                answer = await browser.post("/echo", data=data, headers=BROWSER)
                assert answer.status_code == 403
                assert "load it again" in answer.text
    async with world.browser() as browser:  # that was on no page of ours
        assert (await browser.post("/echo", data={"csrf": other}, headers=BROWSER)).status_code == 403


async def test_the_text_before_signing_in_is_worth_nothing_after(world: World) -> None:
    async with world.browser() as browser:
        before = await csrf(browser)
        await browser.sign_in("student-1")
        answer = await browser.post("/large", data={"csrf": before}, headers=BROWSER)
        assert answer.status_code == 403


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"--x\r\nno header", "multipart/form-data; boundary=x"),
        (b"anything", "multipart/form-data"),
        (b"anything", "multipart/form-data; boundary="),
        (b"{}", "application/json"),
        (b"\xff\xfe=%zz&&&=", "application/x-www-form-urlencoded"),
        (b"a=1", ""),
    ],
)
async def test_a_form_that_is_none(world: World, content: bytes, kind: str) -> None:
    async with world.browser() as browser:
        await csrf(browser)
        answer = await browser.post("/echo", content=content, headers=BROWSER | {"content-type": kind})
        assert answer.status_code in (400, 403)


async def test_nul_characters_are_refused(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.post("/echo", data={"csrf": await csrf(browser), "a": "x\0y"}, headers=BROWSER)
        assert answer.status_code == 400
        assert "NUL" in answer.text


async def test_a_note_is_shown_once_and_as_text(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.post("/noted", data={"csrf": await csrf(browser)}, headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert "Saved &lt;b&gt;it&lt;/b&gt;." in (await browser.get("/sign-in")).text
        assert "Saved" not in (await browser.get("/sign-in")).text


# Bodies.


async def chunks(count: int, size: int = 1000) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * size


async def test_too_large_a_body_is_refused_declared_or_not(world: World) -> None:
    async with world.browser() as browser:
        headers = BROWSER | {"x-csrf": await csrf(browser)}
        assert (await browser.post("/raw", content=chunks(60), headers=headers)).json() == {"bytes": 60_000}
        for content in (b"x" * 70_000, chunks(70), chunks(1000)):
            answer = await browser.post("/raw", content=content, headers=headers)
            assert answer.status_code == 413
            assert "at most 65,536 bytes" in answer.text
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = await browser.post("/echo", content=chunks(70), headers=headers | kind)
        assert answer.status_code == 413


async def test_uploads_are_as_large_as_the_lecturer_allows(world: World) -> None:
    world.course.settings.change(upload_mb=0.5)
    async with world.browser("student") as browser:
        headers = BROWSER | {"x-csrf": await csrf(browser)}
        for size, status in ((2 << 20, 200), (3 << 20, 413)):
            answer = await browser.post("/large", files={"f": b"x" * size}, headers=headers)
            assert answer.status_code == status


async def test_visitors_do_not_upload(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.post("/large", content=chunks(2000), headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_a_body_that_does_not_arrive_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "PATIENCE_S", -10.0)
    monkeypatch.setattr(request_body, "DRAIN_S", 0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await trio.sleep_forever()

    async with world.browser() as browser:
        headers = BROWSER | {"x-csrf": await csrf(browser)}
        answer = await browser.post("/raw", content=slow(), headers=headers)
        assert answer.status_code == 408


# Hosts, proxies and the API.


@pytest.fixture
def behind_a_proxy(tmp_path: Path) -> Iterator[World]:
    with open_world(
        database_of(tmp_path).course(), tmp_path, routes=SPECIAL, public_url="https://kalah.example.org"
    ) as made:
        yield made


async def test_behind_tls(behind_a_proxy: World) -> None:
    async with behind_a_proxy.browser() as browser:
        assert (await browser.get("/sign-in")).status_code == 400  # "testserver" is not its name
        answer = await browser.get("/sign-in", headers={"host": "kalah.example.org"})
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert answer.headers["set-cookie"].startswith("__Host-kalarena-form=")
        assert "; Secure" in answer.headers["set-cookie"]


def token_of(world: World, role: str = "student", days: int | None = 1) -> str:
    secret, _ = world.course.tokens.make(world.accounts[role].id, "laptop", world.clock(), days)
    return secret


async def test_the_api_takes_a_token_and_no_cookie(world: World) -> None:
    async with world.browser("student") as browser:
        answer = await browser.post("/api/v1/raw", content=b"12")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "needs a token" in answer.json()["error"]
    async with world.browser() as program:
        secret = token_of(world)
        for scheme in ("Bearer", "bearer"):
            answer = await program.post(
                "/api/v1/raw", content=b"12", headers={"authorization": f"{scheme} {secret}"}
            )
            assert answer.json() == {"bytes": 2}
        for wrong in (f"Bearer {secret}x", "Bearer ", "Basic eDp5", f"Token {secret}"):
            answer = await program.post("/api/v1/raw", content=b"12", headers={"authorization": wrong})
            assert answer.status_code == 401
        world.clock.advance(days=2)
        answer = await program.post(
            "/api/v1/raw", content=b"12", headers={"authorization": f"Bearer {secret}"}
        )
        assert answer.status_code == 401
        assert "not valid" in answer.json()["error"]


async def test_the_api_is_not_asked_too_often(world: World) -> None:
    async with world.browser() as program:
        headers = {"authorization": f"Bearer {token_of(world)}"}
        statuses = [(await program.post("/api/v1/raw", headers=headers)).status_code for _ in range(62)]
        assert statuses == [200] * 60 + [429] * 2
        answer = await program.post("/api/v1/raw", headers=headers)
        assert answer.headers["retry-after"] == "1"
        other = {"authorization": f"Bearer {token_of(world, 'other')}"}
        assert (await program.post("/api/v1/raw", headers=other)).status_code == 200
        world.clock.advance(seconds=1)
        assert (await program.post("/api/v1/raw", headers=headers)).status_code == 200


async def test_a_disabled_account_is_out_at_once(world: World) -> None:
    account = world.accounts["student"]
    headers = {"authorization": f"Bearer {token_of(world)}"}
    async with world.browser("student") as browser:
        assert (await browser.get("/sign-in")).status_code == 303
        world.course.accounts.set_disabled(account.id, True)
        assert (await browser.get("/sign-in")).status_code == 200
        assert (await browser.post("/api/v1/raw", headers=headers)).status_code == 401


async def test_websockets_are_refused(world: World) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    await world.app({"type": "websocket", "path": "/"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    with pytest.raises(NotImplementedError):
        await world.app({"type": "lifespan"}, receive, send)


async def test_requests_are_logged_without_secrets(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kalarena.web")
    async with world.browser() as browser:
        await browser.get("/links/very-secret?x=1")
    assert "GET /links/... 404" in caplog.text
    assert "very-secret" not in caplog.text


def test_addresses_are_made_from_names() -> None:
    routes = (
        Route("GET", "/references/{name}", fails, Access.PUBLIC, "reference"),
        Route("GET", "/number/{number:int}/x", number, Access.PUBLIC, "number"),
    )
    assert path_for(routes, "reference", {"name": "a/b c?"}) == "/references/a%2Fb%20c%3F"
    assert path_for(routes, "number", {"number": 3}) == "/number/3/x"
    with pytest.raises(KeyError):
        path_for(routes, "nope", {})
    with pytest.raises(KeyError):
        path_for(routes, "number", {})
