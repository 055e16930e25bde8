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
from sqlalchemy import URL

from referee.process.subreaper import reap_orphans
from tournaments.course.course import Course
from tournaments.course.people.roster import invite_first_admin
from tournaments.database.base import StoreError
from tournaments.database.location import Database
from tournaments.database.server_lock import ServerLock, TakenError
from tournaments.processes.process_settings import stopping_signals
from tournaments.server.config import ServiceConfig
from tournaments.server.demo import set_up_demo
from tournaments.server.service import Service, open_service
from tournaments.web import server
from tournaments.web.app import Application
from tournaments.web.data_directory import DataDirectory, DataDirectoryError
from tournaments.web.http.connections import GRACE_S
from tournaments.web.http.request_context import Site
from tournaments.web.http.routing import in_thread
from tournaments.web.metrics_page import PATH as METRICS_PATH
from tournaments.web.metrics_page import MetricsPage
from tournaments.web.routes import ROUTES
from tournaments.web.server_config import ServerFile, address_and_port

LOG = logging.getLogger("kalarena.web")

END_LIMIT_S = 1.8
"""Seconds from a signal to the end of this process; the documentation promises two."""
LOCK_CHECK_S = 15.0
"""Seconds between two checks of the connection with the database's lock.  As a rule its end is noticed at
once, but a network can drop a connection without a message."""
LOCK_RETRY_S = 1.0
"""Seconds between two attempts to take the lock again while the database is away."""
PURGE_S = 3600.0
"""Seconds between removals of old mails, and of expired sessions and links, which are refused before that,
too."""

METRICS_KEY = "the key metrics of server.toml"
"""The place of the metrics' address, in messages."""


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
    metrics: Sequence[socket.socket]
    """Sockets for the metrics; empty if there are no metrics."""
    key: bytes
    demo: bool = False
    lock: ServerLock | None = None
    """Lock of a PostgreSQL database."""

    async def run(self, ready: Callable[[Ready], None]) -> None:
        """Serve until SIGTERM, SIGINT or SIGHUP; ``ready`` is called once requests are answered.

        Raises TakenError if the lock of the database was lost, and another server has taken it.
        """
        taken: list[TakenError] = []
        serving = trio.CancelScope()
        config = ServiceConfig(slots=self.file.places, cluster=self.file.cluster, mail=self.file.mailing)
        with (
            trio.open_signal_receiver(*stopping_signals()) as signals,
            contextlib.ExitStack() as end,
        ):
            async with open_service(self.data.path, self.course, self.database, config) as service:
                site = self._site(service)
                async with trio.open_nursery() as requests, trio.open_nursery() as nursery:
                    await requests.start(
                        server.serve, Application(site), self.sockets, site.closing, self.file.networks
                    )
                    if self.metrics:
                        service.metrics.watch_streams(lambda: site.streams.number)
                        page = MetricsPage(service.metrics)
                        await requests.start(server.serve, page, self.metrics, site.closing)
                        LOG.info("metrics are at %s%s", server.url_of(self.metrics), METRICS_PATH)
                    nursery.start_soon(delete_expired, self.course)
                    nursery.start_soon(_reap_orphans)
                    ready(await self._ready(service))
                    if self.lock is not None:
                        nursery.start_soon(_keep_lock, self.lock, taken, serving)
                    with serving:
                        number = await anext(aiter(signals))
                        LOG.info("shutting down: %s", signal.Signals(number).name)
                    if self.file.cluster is None:
                        end.enter_context(_ending_by(END_LIMIT_S))
                    site.closing.set()
                    requests.cancel_scope.deadline = trio.current_time() + GRACE_S
                    nursery.cancel_scope.cancel()
        for error in taken:
            raise error

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
    metrics: list[socket.socket] = []
    try:
        if file.metrics is not None:
            metrics = _listen_for_metrics(file.metrics)
        directory = DataDirectory(data)
        with directory.locked():
            if not directory.is_private:  # for example, made by hand with mkdir
                LOG.warning(
                    "other users of this machine can read the bots in %s: run chmod 700 %s", data, data
                )
            key = directory.key()
            database = Database.at(file.database or directory.path)
            with contextlib.ExitStack() as opened:
                lock = None
                if isinstance(database.address, URL):
                    lock = opened.enter_context(ServerLock(database.address))
                    lock.claim(directory.identity())
                mail = None if file.mail is None else directory.mail_home()
                course = opened.enter_context(Course(database.course(), mail=mail))
                _record_database(directory, database)
                yield Host(directory, course, database, file, sockets, metrics, key, demo, lock)
    finally:
        server.close([*sockets, *metrics])


def _record_database(directory: DataDirectory, database: Database) -> None:
    """Record the kind of the database, which ``kalarena admin`` checks.

    An error is only logged: the server itself does not need the record.
    """
    try:
        directory.record_database(database.kind)
    except DataDirectoryError as error:
        LOG.warning("%s", error)


def _listen_for_metrics(text: str) -> list[socket.socket]:
    try:
        return server.listen(*address_and_port(text), METRICS_KEY, METRICS_KEY)
    except server.ListenError as error:
        raise server.ListenError(f"no metrics: {error}") from error


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


async def _keep_lock(lock: ServerLock, taken: list[TakenError], serving: trio.CancelScope) -> None:
    """Take the database's lock again if its connection is lost.

    If another server has taken it, the error is added to ``taken``, and ``serving`` is cancelled.
    """
    while True:
        with trio.move_on_after(LOCK_CHECK_S):
            await trio.lowlevel.wait_readable(lock.descriptor)
        if await in_thread(lock.is_held):
            continue
        LOG.warning("%s: the connection with the lock was lost", lock.name)
        while True:
            try:
                await in_thread(lock.take)
                break
            except TakenError as error:
                LOG.error("%s", error)
                taken.append(error)
                serving.cancel()
                return
            except StoreError as error:
                LOG.debug("the lock cannot be taken again yet: %s", error)
            await trio.sleep(LOCK_RETRY_S)
        LOG.warning("%s: the lock was taken again", lock.name)


async def _reap_orphans() -> None:
    """Reap processes that this one adopts, such as the sandbox reaper of a check that has ended."""
    with trio.open_signal_receiver(signal.SIGCHLD) as signals:
        reap_orphans()
        async for _ in signals:
            reap_orphans()


async def delete_expired(course: Course) -> None:
    """Delete expired sessions, expired links and old mails every PURGE_S.

    Errors are logged, and the other deletions go on.
    """
    message = "old sessions, links or mails could not be deleted: %s"
    while True:
        for purge in (course.sessions.purge, course.links.purge, course.outbox.purge):
            try:
                await in_thread(purge, utc_now())
            except StoreError as error:
                # A database that is away is no fault of this program; a value that cannot be stored is one.
                LOG.error(message, error, exc_info=isinstance(error.__cause__, ValueError | TypeError))
            except Exception as error:
                LOG.exception(message, error)
        await trio.sleep(PURGE_S)
