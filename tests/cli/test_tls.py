"""Servers with which no TLS connection can be made, as the commands that use a server report them."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from tests.support.mail_server import make_certificate
from tournaments.cli.remote.api_client import Client, SubmitError
from tournaments.cli.remote.websocket import ConnectionLostError, open_websocket

ACCEPT_S = 30.0
"""Seconds for the connection, so that a test that makes none ends."""


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a server that handles one connection; yield its address, with https."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(ACCEPT_S)

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):  # the other side ends it
                handle(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()


def failure_of_upload(base: str) -> str:
    with pytest.raises(SubmitError) as failed:
        Client(base, "kal_x").version(1)
    assert failed.value.is_ours
    return str(failed.value).removeprefix(f"{base} cannot be reached: ")


def failure_of_connection(base: str) -> str:
    async def connect() -> None:
        async with open_websocket(base, "/target", "kal_x"):
            pass

    with pytest.raises(ConnectionLostError) as lost:
        trio.run(connect)
    return str(lost.value)


FAILURES = pytest.mark.parametrize("failure", [failure_of_upload, failure_of_connection])


@FAILURES
def test_an_untrusted_certificate_is_named(tmp_path: Path, failure: Callable[[str], str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path / "server.pem"))

    def handle(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True):
            pass

    with serving(handle) as base:
        assert failure(base) == "its TLS certificate was not accepted (self-signed certificate)"


@FAILURES
def test_a_server_without_tls_is_not_blamed_for_its_certificate(failure: Callable[[str], str]) -> None:
    def handle(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with serving(handle) as base:
        assert failure(base).startswith("no TLS connection could be made (")
