"""Sockets of the site: opened before anything else is started, and closed in time."""

import errno
import resource
import socket
from collections.abc import Sequence
from functools import partial

import trio
from hypercorn.typing import ASGIFramework

from tournaments.web.http.connections import GRACE_S, MOST_CONNECTIONS, SPARE_DESCRIPTORS, Connections
from tournaments.web.http.security import Network

BACKLOG = 256
"""Connections that may wait to be accepted: a lecture hall that opens the page at once."""


class ListenError(Exception):
    """The server cannot listen at the address; the message gives the reason and a remedy."""


def listen(host: str, port: int, host_key: str = "--host", port_key: str = "--port") -> list[socket.socket]:
    """Return listening sockets at all addresses of a host; port 0 is any free one.

    Args:
        host: A name or an address of this machine.
        port: The port at each of its addresses.
        host_key: Name of the option for the host, for error messages.
        port_key: Name of the option for the port, for error messages.

    Raises:
        ListenError: The address is in use, not of this machine, or invalid.

    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise ListenError(
            f"there is no address {host!r}: choose another with {host_key}, such as 127.0.0.1"
        ) from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(BACKLOG)
            if port == 0:
                break  # a second one would have another port
    except OSError as error:
        close(sockets)
        raise ListenError(_bind_problem(error, host, port, host_key, port_key)) from error
    return sockets


def _bind_problem(error: OSError, host: str, port: int, host_key: str, port_key: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: end what uses it, or choose another with {port_key}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"port {port} of {host} is for the system's administrator: choose one above 1023 with {port_key}"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine: choose another with {host_key}, such as 127.0.0.1"
    return f"cannot listen at port {port} of {host}: {error.strerror}"


def close(sockets: Sequence[socket.socket]) -> None:
    """Close the sockets."""
    for one in sockets:
        one.close()


def url_of(sockets: Sequence[socket.socket]) -> str:
    """Return the sockets' address for a browser on this machine."""
    host, port = sockets[0].getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    app: ASGIFramework,
    sockets: Sequence[socket.socket],
    closing: trio.Event,
    trusted: Sequence[Network] = (),
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``closing`` is set, and then for a second at most, whatever clients do.

    ``trusted`` are our own proxies, to which the limit of connections per address does not apply.
    """
    listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in sockets]
    connections = Connections(app, most_connections(), trusted)
    async with trio.open_nursery() as clients:
        async with trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(trio.serve_listeners, connections.handle, listeners, handler_nursery=clients)
            )
            task_status.started()
            await closing.wait()
            accepting.cancel_scope.cancel()
        deadline = trio.current_time() + GRACE_S
        clients.cancel_scope.deadline = deadline
        await connections.end(deadline)


def most_connections() -> int:
    """Return the number of connections that the limit of open files allows; it is raised where possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, soft - SPARE_DESCRIPTORS))
