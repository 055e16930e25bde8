"""The server as a process, its end, and its connections with clients that misbehave."""

import contextlib
import errno
import itertools
import os
import re
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
import trio.testing
from sqlalchemy import URL

from tests.server.served_course import served_course
from tests.server.server_process import admin_link, served
from tests.support.builders import invoke
from tests.support.databases import address, database_of
from tests.web.site import open_world
from tournaments.course.course import Course
from tournaments.web import server, server_main
from tournaments.web.data_directory import recorded_database
from tournaments.web.http import connections
from tournaments.web.http.connections import MOST_CONNECTIONS, SPARE_DESCRIPTORS
from tournaments.web.server_config import ServerFile
from tournaments.web.server_main import open_host

END_LIMIT_S = 2.0
"""The documented time for the server to end."""
LIMIT_S = 120
"""Bound for events on a busy machine."""
LAST_LINES = ("The server has ended.", "is done again after the next start")
"""Ends of the last line: a busy machine may not have done all by the limit of the server's end."""
get = partial(httpx2.get, timeout=LIMIT_S)

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def refused(data: Path, *options: str) -> str:
    """Return the message of a server that does not start."""
    result = invoke("serve", "--data", str(data), *options)
    assert (result.exit_code, result.stdout) == (2, ""), result
    return result.stderr


@pytest.mark.slow
def test_first_start_link_and_next_start(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    with served(data, lines=3) as one:
        assert one.printed[1] == "Open this link once, and choose the admin's password:"
        link = admin_link(one.printed)
        assert link.startswith(one.url + "/links/")
        assert get(one.url + "/health").json()["status"] == "ok"
        assert "another server is at work in" in refused(data, "--port", "0")
        assert f"port {one.port} of 127.0.0.1 is in use" in refused(tmp_path / "b", "--port", str(one.port))
        assert get(link).status_code == 200
        status, seconds, errors = one.end()
        assert (status, seconds < END_LIMIT_S) == (0, True), (seconds, errors)
        assert errors.splitlines()[-1].endswith(LAST_LINES)
        assert link.rpartition("/")[2] not in errors
    assert (data.stat().st_mode & 0o777, (data / "secret").stat().st_mode & 0o777) == (0o700, 0o600)
    key = (data / "secret").read_bytes()
    with served(data, lines=3) as two:  # the first link was not used, so there is a new one
        new = admin_link(two.printed)
        assert get(two.url + "/links/" + link.rpartition("/")[2]).status_code == 404
        with httpx2.Client(base_url=two.url, timeout=LIMIT_S) as browser:
            page = browser.get(new).text
            (csrf,) = re.findall(r'name="csrf" value="([^"]+)"', page)
            fields = {"csrf": csrf, "password": "a long password", "again": "a long password"}
            answer = browser.post(new, data=fields, headers={"origin": two.url})
            assert answer.status_code == 303
            cookies = dict(browser.cookies)
        assert two.end(signal.SIGINT)[0] == 0
    with served(data) as three:
        assert (data / "secret").read_bytes() == key
        # The session goes on; no link is printed.
        assert get(three.url + "/account", cookies=cookies).status_code == 200
        three.process.send_signal(signal.SIGTERM)
        output, _ = three.process.communicate(timeout=LIMIT_S)
        assert output == ""


@pytest.mark.slow
@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="started with nohup")
def test_a_closed_terminal_ends_it_as_well(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with Course(database_of(data).course()) as course:
        course.settings.change(practice_on=False)  # no work is under way
    with served(data) as one:
        status, _, errors = one.end(signal.SIGHUP)
    assert (status, errors.splitlines()[-1]) == (0, "The server has ended.")


@pytest.mark.slow
def test_repeated_signals_end_it_as_well(tmp_path: Path) -> None:
    with served(tmp_path / "data") as one:
        for number in itertools.cycle((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            one.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(0.002)
                break
        errors = one.log.read_text()
    assert one.process.returncode == 0
    assert errors.splitlines()[-1].endswith(LAST_LINES)


@pytest.mark.attack
def test_it_ends_in_time_with_all_kinds_of_clients(tmp_path: Path) -> None:
    with Course(database_of(tmp_path).course()) as course:
        course.settings.change(standings_for="named", practice_on=False)
    with served(tmp_path, "--host", "127.0.0.1") as one, contextlib.ExitStack() as clients:

        def client(sent: bytes) -> socket.socket:
            made = clients.enter_context(one.connect())
            made.sendall(sent)
            return made

        host = f"Host: 127.0.0.1:{one.port}\r\n".encode()
        streams = [client(b"GET /events HTTP/1.1\r\n" + host + b"\r\n") for _ in range(3)]
        for stream in streams:
            assert stream.recv(4096).startswith(b"HTTP/1.1 200")
        for _ in range(50):
            client(b"GET /sign-in HT")
        client(b"POST /sign-in HTTP/1.1\r\n" + host + b"Content-Length: 500\r\n\r\nlogin=")
        client(b"POST /sign-in HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n" + b"x" * 400_000)
        client(b"")
        idle = client(b"GET /health HTTP/1.1\r\n" + host + b"\r\n")
        assert idle.recv(4096).startswith(b"HTTP/1.1 200")
        # Requests much and reads nothing, until the server can send no more.
        greedy = socket.socket()
        clients.enter_context(greedy)
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.connect(("127.0.0.1", one.port))
        greedy.sendall((b"GET /assets/replay.js HTTP/1.1\r\n" + host + b"\r\n") * 400)
        assert get(one.url + "/health").status_code == 200  # the others are still served
        status, seconds, errors = one.end()
        assert status == 0, errors
        assert seconds < END_LIMIT_S
        assert "Traceback" not in errors


@pytest.mark.any_database
@pytest.mark.slow
def test_it_ends_in_time_while_a_thread_waits_for_the_database(tmp_path: Path) -> None:
    """Another program holds the database: a thread that waits for it cannot be cancelled."""
    with served_course(tmp_path / "data") as course, course.client(course.student()) as browser:
        student, one = course.students[0], course.server

        def make_token() -> None:
            headers = {"origin": one.url, "x-csrf": student.csrf}
            with contextlib.suppress(httpx2.HTTPError):  # the server ends before it answers
                browser.post("/account/tokens", data={"name": "x", "days": "30"}, headers=headers)

        with course.course.transaction():
            request = threading.Thread(target=make_token)
            request.start()
            for _ in range(20):
                assert get(f"{one.url}/health").status_code == 200
            status, _, errors = one.end()
        request.join()
        assert (status, "Traceback" in errors) == (0, False), errors
        # The second line is that of its own limit, which is held by a timer.
        assert errors.splitlines()[-1].endswith(LAST_LINES)
        assert server_main.END_LIMIT_S < END_LIMIT_S


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--host", "no.such.host.invalid"),
            "there is no address 'no.such.host.invalid': choose another with --host",
        ),
        (("--host", "192.0.2.1"), "192.0.2.1 is no address of this machine"),
        (("--config", "missing.toml"), "missing.toml: cannot be read: No such file or directory"),
        (("--data", "/dev/null/data"), "/dev/null/data cannot be made: Not a directory"),
    ],
)
def test_it_does_not_start_with_wrong_options(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refused(tmp_path, "--port", "0", *options)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_data_directory_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be written to: Permission denied" in refused(tmp_path, "--port", "0")


def test_a_data_directory_that_others_can_read_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for mode, is_named in ((0o755, True), (0o700, False)):
        caplog.clear()
        tmp_path.chmod(mode)
        with open_host(tmp_path, ServerFile(port=0)):
            pass
        assert (f"can read the bots in {tmp_path}: run chmod 700 {tmp_path}" in caplog.text) is is_named


def test_the_kind_of_the_database_is_recorded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = database_of(tmp_path)
    where, kind = database.address, database.kind
    file = ServerFile(port=0, database=address(where) if isinstance(where, URL) else None)
    path = tmp_path / "database"
    assert recorded_database(tmp_path) is None
    for content in (None, "", "another\n"):
        if content is not None:
            path.write_text(content)
            assert recorded_database(tmp_path) is None
        with open_host(tmp_path, file):
            assert recorded_database(tmp_path) == kind
    path.unlink()
    path.mkdir()  # it cannot be written
    with open_host(tmp_path, file):
        assert f"{path} cannot be read: Is a directory" in caplog.text


def test_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text('database = "postgresql://kalarena:pass-word@127.0.0.1:1/course"\n')
    result = invoke("serve", "--data", str(tmp_path), "--port", "0")
    assert result.exit_code in (1, 2)
    assert "127.0.0.1" in result.stderr
    assert "pass-word" not in result.stderr


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EACCES, "port 80 of 127.0.0.1 is for the system's administrator: choose one above 1023"),
        (errno.ENOBUFS, "cannot listen at port 80 of 127.0.0.1: No buffer space available"),
    ],
)
def test_an_address_at_which_it_cannot_listen(
    monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
) -> None:
    class Refused(socket.socket):
        def bind(self, _address: object) -> None:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket, "socket", Refused)
    with pytest.raises(server.ListenError, match=re.escape(sentence)):
        server.listen("127.0.0.1", 80)


UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "most"),
    [
        (UNLIMITED, UNLIMITED, None, MOST_CONNECTIONS),
        (256, UNLIMITED, MOST_CONNECTIONS + SPARE_DESCRIPTORS, MOST_CONNECTIONS),
        (256, SPARE_DESCRIPTORS + 300, SPARE_DESCRIPTORS + 300, 300),
        (8, 8, 8, 16),
    ],
)
def test_the_limit_of_open_files_bounds_the_connections(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None, most: int
) -> None:
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, limits: changed.append(limits))
    assert server.most_connections() == most
    assert changed == ([] if raised is None else [(raised, hard)])


# Connections, in this process.


@contextlib.asynccontextmanager
async def serving(app: Any, *trusted: Any) -> AsyncIterator[tuple[int, trio.Event]]:
    """Serve an application; yield the port, and the event that ends the server."""
    sockets = server.listen("127.0.0.1", 0)
    closing = trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(server.serve, app, sockets, closing, trusted))
            yield sockets[0].getsockname()[1], closing
            closing.set()
    finally:
        server.close(sockets)


async def answer(status: int, body: bytes, send: Any) -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def fine(_scope: Any, _receive: Any, send: Any) -> None:
    await answer(200, b"fine", send)


async def is_answered(stream: trio.SocketStream) -> bool:
    with contextlib.suppress(trio.BrokenResourceError):
        await stream.send_all(REQUEST)
        return (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    return False


async def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SEND_S", 0.2)
    monkeypatch.setattr(connections, "SLOWEST", 10**9)
    ended = trio.Event()

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await answer(200, b"x" * 50_000_000, send)
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    with trio.fail_after(LIMIT_S):
        async with serving(app) as (port, _):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            async with stream:
                await stream.send_all(REQUEST)
                await ended.wait()
                with contextlib.suppress(trio.BrokenResourceError):
                    async for _ in stream:
                        pass


async def test_it_ends_although_a_client_does_not_read() -> None:
    sending, ended = trio.Event(), trio.Event()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        sending.set()
        try:
            await answer(200, b"x" * 50_000_000, send)
        finally:
            ended.set()

    end = trio.CancelScope(deadline=trio.current_time() + LIMIT_S)
    with end:
        async with serving(app) as (port, closing), await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(REQUEST)
            await sending.wait()
            await trio.testing.wait_all_tasks_blocked(0.05)  # nothing more goes into the socket
            end.deadline = trio.current_time() + connections.SEND_S / 2
            closing.set()
            await ended.wait()
    assert not end.cancelled_caught


async def test_an_unread_body_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LINGER_S", 0.1)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(413, b"too much", send)

    with trio.fail_after(LIMIT_S):
        async with serving(app) as (port, _):
            for _ in range(3):
                stream = await trio.open_tcp_stream("127.0.0.1", port)
                async with stream:
                    await stream.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\n")
                    with contextlib.suppress(trio.BrokenResourceError):
                        for _ in range(90):
                            await stream.send_all(b"x" * 1_000_000)
                tasks = trio.lowlevel.current_statistics().tasks_living
            while trio.lowlevel.current_statistics().tasks_living >= tasks:  # noqa: ASYNC110
                await trio.sleep(0.01)


async def test_a_connection_that_breaks_ends_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(_self: Any, _most: int) -> bytes:
        raise RuntimeError("a fault of the protocol")

    with trio.fail_after(LIMIT_S):
        async with serving(fine) as (port, _):
            with monkeypatch.context() as patch:
                patch.setattr(connections.ClientStream, "receive_some", breaks)
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    with contextlib.suppress(trio.BrokenResourceError):
                        assert await stream.receive_some() == b""
            assert "a fault of the protocol" in caplog.text
            async with httpx2.AsyncClient() as client:
                assert (await client.get(f"http://127.0.0.1:{port}/")).text == "fine"


async def test_a_send_while_the_connection_is_closed_fails() -> None:
    """Which is no fault: a client may go, or be cut off, just before a message is sent."""
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    client = connections.ClientStream(ours, lambda: None)
    closing = client.send_eof()
    closing.send(None)  # as far as its first checkpoint
    with pytest.raises(trio.BrokenResourceError, match="being closed"):
        await client.send_all(b"an answer")
    closing.close()
    await client.aclose()
    await theirs.aclose()


async def test_the_number_of_connections_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "most_connections", lambda: 2)
    with trio.fail_after(LIMIT_S):
        async with serving(fine, ip_network("127.0.0.1")) as (port, _):
            streams = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(3)]
            assert await streams[2].receive_some() == b""
            await streams[0].aclose()
            assert await is_answered(streams[1])
            for stream in streams:
                await stream.aclose()


@pytest.mark.attack
async def test_one_address_does_not_take_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "most_connections", lambda: 4)
    monkeypatch.setattr(connections, "IDLE_S", 3600.0)  # a connection ends with its client

    with trio.fail_after(LIMIT_S):
        async with serving(fine) as (port, _), contextlib.AsyncExitStack() as stack:

            async def open_from(address: str) -> trio.SocketStream:
                stream = await trio.open_tcp_stream("127.0.0.1", port, local_address=address)
                return await stack.enter_async_context(stream)

            greedy = [await open_from("127.0.0.1") for _ in range(3)]
            assert [await is_answered(stream) for stream in greedy] == [True, True, False]
            assert await is_answered(await open_from("127.0.0.2"))
            await greedy[0].aclose()
            is_free = False
            while not is_free:
                async with await trio.open_tcp_stream("127.0.0.1", port) as again:
                    is_free = await is_answered(again)


@pytest.mark.parametrize(
    "request_", [b"\x00\xff\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9000]
)
async def test_malformed_requests_are_refused(request_: bytes) -> None:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError

    with trio.fail_after(LIMIT_S):
        async with serving(app) as (port, _), await trio.open_tcp_stream("127.0.0.1", port) as stream:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(request_)
                received = b"".join([bytes(part) async for part in stream])
                assert re.match(rb"HTTP/1.1 4\d\d|$", received)


def test_the_address_in_the_message_of_the_start() -> None:
    for host, shown in (("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")):
        try:
            sockets = server.listen(host, 0)
        except server.ListenError:
            assert ":" in host  # a machine without IPv6
            continue
        try:
            assert server.url_of(sockets) == f"http://{shown}:{sockets[0].getsockname()[1]}"
        finally:
            server.close(sockets)


# Requests that are refused before they are looked at.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"X-Long: " + b"x" * 15_000, 404),
        (b"X-Long: " + b"x" * 16_500, 431),
        (b"\r\n".join(b"X-%d: %s" % (number, b"x" * 500) for number in range(40)), 431),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
    ],
)
async def test_large_headers_and_two_lengths_are_refused(tmp_path: Path, headers: bytes, status: int) -> None:
    with trio.fail_after(LIMIT_S), open_world(database_of(tmp_path).course(), tmp_path) as world:
        async with serving(world.app) as (port, _), await trio.open_tcp_stream("127.0.0.1", port) as client:
            body = b"0\r\n\r\n" if b"chunked" in headers else b""
            head = b"POST /nowhere HTTP/1.1\r\nHost: testserver\r\n" + headers
            await client.send_all(head + b"\r\n\r\n" + body)
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += await client.receive_some()
            assert answer.startswith(b"HTTP/1.1 %d" % status)
            if status != 404:
                while await client.receive_some():
                    pass  # the connection is closed, and no further request is read
