"""Cache of bots on this host: their files, and the products of builds on this host.

Below its folder::

    ab12.../files/     the contents of an archive of that digest, and the products of its build
    ab12.../ready      marks a complete bot; its modification time is that of the last game
    ab12....lock       held while the bot is prepared, so that the workers of a host do it once

Bots that no game has used for a week are removed when a worker starts.
"""

import contextlib
import fcntl
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from sample_bots.strong import kernels
from tournaments.bots.build import BuildError, build
from tournaments.engines.remote.errors import ClusterError
from tournaments.engines.remote.packed_bot import PackedBot, arrived, manifest_in, pack, unpack

FILES, READY = "files", "ready"
KEPT_S = 7 * 24 * 3600.0
"""Seconds for which an unused bot is kept, so that it is not sent and built again."""
NO_FILES = "none"
"""Folder of bots that have no files of their own."""
PRIVATE = 0o700


class BotCache:
    """Cache of bots below a folder.  Several processes and threads may use it at the same time."""

    def __init__(self, folder: Path, building: threading.Lock) -> None:
        """``building`` is held while a build runs, so that its processes are not killed as orphans."""
        self._folder = folder
        self._building = building
        self._known: dict[PackedBot, Player] = {}

    def at_hand(self, traveller: PackedBot) -> Player | None:
        """Return the player for this host if it is ready; None if its bot has to be prepared or checked."""
        place = self._place(traveller)
        if traveller.digest and _age_s(place) > KEPT_S / 2:  # or it is not there at all
            return None
        _use(place)
        return self._known.get(traveller)

    def ready(self, traveller: PackedBot, sandbox: Sandbox, fetch: Callable[[str], bytes]) -> Player:
        """Return the player for this host, preparing its bot if needed.

        Its archive is made from the head's path, if that path leads to the same files on this host, else
        returned by ``fetch``, which is called with the digest.  A build is confined if ``sandbox`` confines.
        Raises ClusterError if the bot cannot be started here.
        """
        found = self.at_hand(traveller)
        if found is not None:
            return found
        place = self._place(traveller)
        if traveller.digest:
            with self._locked(traveller.digest):  # without the lock, an old bot might be removed just now
                if not (place / READY).exists():
                    self._make(place, traveller, sandbox, fetch)
                _use(place)
        self._known[traveller] = found = arrived(traveller, place / FILES, _prepare_kernels)
        return found

    def _place(self, traveller: PackedBot) -> Path:
        return self._folder / (traveller.digest or NO_FILES)

    def remove_old(self) -> None:
        """Remove incomplete bots and those unused for KEPT_S, but none that is being prepared."""
        for place in self._folder.glob("*/"):
            if place.name != NO_FILES and _age_s(place) > KEPT_S:
                with contextlib.suppress(ClusterError, OSError), self._locked(place.name, wait=False):
                    if _age_s(place) > KEPT_S:  # no other worker has used it meanwhile
                        (place / READY).unlink(missing_ok=True)
                        shutil.rmtree(place, ignore_errors=True)

    def _make(
        self, place: Path, traveller: PackedBot, sandbox: Sandbox, fetch: Callable[[str], bytes]
    ) -> None:
        archive = _archive_here(traveller)
        if archive is None:
            archive = fetch(traveller.digest)
        try:
            if place.exists():  # left by a worker that was killed
                shutil.rmtree(place)
            unpack(archive, traveller.digest, place / FILES)
            for _, name in traveller.folders:
                self._build(place / FILES / name, sandbox)
            (place / READY).touch()
        except OSError as error:
            raise ClusterError(f"{place}: a bot's files cannot be kept: {error.strerror}") from error

    def _build(self, folder: Path, sandbox: Sandbox) -> None:
        manifest = manifest_in(folder)
        if manifest is None or manifest.build is None:
            return
        try:
            with self._building:
                confining = sandbox if sandbox.tier.confines else None
                build(folder, manifest.build, manifest.products, confining)
        except BuildError as error:
            raise ClusterError(str(error)) from error

    @contextlib.contextmanager
    def _locked(self, digest: str, *, wait: bool = True) -> Iterator[None]:
        """Hold the lock of a bot; the lock ends with this process, too.

        Raises ClusterError; BlockingIOError if another holder has it and ``wait`` is false.
        """
        try:
            self._folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            descriptor = os.open(
                self._folder / f"{digest}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE
            )
        except OSError as error:
            raise ClusterError(f"{self._folder}: bots cannot be kept here: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(descriptor)


def _use(place: Path) -> None:
    """Record that a game uses the bot."""
    with contextlib.suppress(OSError):
        os.utime(place / READY)


def _age_s(place: Path) -> float:
    """Return the seconds since the bot's last use; infinity if it is not ready."""
    try:
        return time.time() - (place / READY).stat().st_mtime
    except OSError:
        return math.inf


def _archive_here(traveller: PackedBot) -> bytes | None:
    """Return the archive made from the files at the same paths here; None if they differ."""
    try:
        there, archive = pack(traveller.player)
    except (ClusterError, OSError):  # also for unreadable paths
        return None
    return archive if there.digest == traveller.digest else None


def _prepare_kernels() -> Path:
    if not kernels.can_compile():
        raise ClusterError("its search is compiled, and numba is not installed on this host")
    try:
        return kernels.prepare()
    except kernels.NotPreparedError as error:
        raise ClusterError(f"its search could not be compiled on this host: {error}") from error
