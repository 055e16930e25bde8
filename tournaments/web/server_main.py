"""One server from its start to its end: sockets, data directory, database, service, pages."""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import trio

from referee.process.subreaper import reap_orphans
from tournaments.course.course import Course
from tournaments.course.roster import invite_first_admin
from tournaments.database.location import Database
from tournaments.server.config import ServiceConfig
from tournaments.server.demo import set_up_demo
from tournaments.server.service import Service, open_service
from tournaments.web import server
from tournaments.web.app import Application
from tournaments.web.data_directory import DataDirectory
from tournaments.web.http.connections import GRACE_S
from tournaments.web.http.request_context import Site
from tournaments.web.http.routing import in_thread
from tournaments.web.routes import ROUTES
from tournaments.web.server_config import ServerFile

LOG = logging.getLogger("kalarena.web")

END_LIMIT_S = 1.8
"""Seconds from a signal to the end of this process; the documentation promises two."""
PURGE_S = 3600.0
"""Seconds between removals of expired sessions and links, which are refused before that, too."""


def utc_now() -> datetime:
    """Return the time of a real server's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Ready:
    """Addresses to print once the server answers."""

    url: str
    """Address of the site."""
    admin_link: str | None
    """One-time link for the first admin; None once an admin has a password."""
    demo: Mapping[str, str] | None
    """The demo course's links; None if it was not requested."""


@dataclass(frozen=True)
class Host:
    """A server that is ready to run."""

    data: DataDirectory
    course: Course
    database: Database
    file: ServerFile
    sockets: Sequence[socket.socket]
    key: bytes
    demo: bool = False

    async def run(self, ready: Callable[[Ready], None]) -> None:
        """Serve until SIGTERM or SIGINT; ``ready`` is called once requests are answered."""
        config = ServiceConfig(slots=self.file.places, cluster=self.file.cluster)
        with (
            trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
            contextlib.ExitStack() as end,
        ):
            async with open_service(self.data.path, self.course, self.database, config) as service:
                site = self._site(service)
                async with trio.open_nursery() as requests, trio.open_nursery() as nursery:
                    await requests.start(
                        server.serve, Application(site), self.sockets, site.closing, self.file.networks
                    )
                    nursery.start_soon(_purge, self.course)
                    nursery.start_soon(_reap_orphans)
                    ready(await self._ready(service))
                    number = await anext(aiter(signals))
                    LOG.info("shutting down: %s", signal.Signals(number).name)
                    if self.file.cluster is None:
                        end.enter_context(_ending_by(END_LIMIT_S))
                    site.closing.set()
                    requests.cancel_scope.deadline = trio.current_time() + GRACE_S
                    nursery.cancel_scope.cancel()

    def _site(self, service: Service) -> Site:
        return Site(
            course=self.course,
            service=service,
            now=utc_now,
            data=self.data.path,
            secret=self.key,
            routes=ROUTES,
            public_url=self.file.public_url,
            trusted_proxies=self.file.networks,
        )

    async def _ready(self, service: Service) -> Ready:
        url = self.file.public_url or server.url_of(self.sockets)
        secret = await in_thread(invite_first_admin, self.course, utc_now())
        demo = await set_up_demo(self.course, service, utc_now()) if self.demo else None
        return Ready(url, None if secret is None else f"{url}/links/{secret}", demo)


@contextmanager
def open_host(data: Path, file: ServerFile, *, demo: bool = False) -> Iterator[Host]:
    """Open the listening sockets, the data directory and the database, in this order.

    Raises:
        ListenError: The server cannot listen at the address.
        DataDirectoryError: The directory is in use, or cannot be written to.
        StoreError: The database cannot be reached or used.

    """
    sockets = server.listen(file.host, file.port)
    try:
        directory = DataDirectory(data)
        with directory.locked():
            key = directory.key()
            database = Database.at(file.database or directory.path)
            with Course(database.course()) as course:
                yield Host(directory, course, database, file, sockets, key, demo)
    finally:
        server.close(sockets)


@contextmanager
def _ending_by(limit_s: float) -> Iterator[None]:
    """End this process if the block takes longer: a thread may wait for another writer of the database.

    That is safe at any moment, as SIGKILL is: changes are transactions, and workers end with this process.
    """

    def give_up() -> None:
        LOG.warning("ended with work under way, which is done again after the next start")
        logging.shutdown()
        os._exit(0)

    timer = threading.Timer(limit_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


async def _reap_orphans() -> None:
    """Reap processes that this one adopts, such as the guard of a sandbox that outlives its check."""
    with trio.open_signal_receiver(signal.SIGCHLD) as signals:
        reap_orphans()
        async for _ in signals:
            reap_orphans()


async def _purge(course: Course) -> None:
    while True:
        for forget in (course.sessions.purge, course.links.purge):
            try:
                await in_thread(forget, utc_now())
            except Exception:
                LOG.exception("what is too old could not be forgotten")
        await trio.sleep(PURGE_S)
