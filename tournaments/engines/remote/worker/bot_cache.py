"""Cache of bots on this host: their files, and the products of builds on this host.

Below its folder::

    ab12.../files/     the contents of an archive with that digest, and the products of its build
    ab12.../ready      marks a complete bot; its modification time is that of the last game
    ab12....lock       held while the bot is prepared, so that the workers of a host prepare it once

A bot is built where it stays, unlike in a ``DigestStore``: a build may write its directory into its products.
Bots that no game has used for a week are removed when a worker starts.
"""

import contextlib
import math
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from sample_bots.strong import kernels
from tournaments.bots.build import build, make_sources_newest
from tournaments.bots.errors import BotError
from tournaments.bots.manifest import load_manifest
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import missing_programs
from tournaments.engines.remote.packed_bot import PackedBot, pack, player_here, unpack
from tournaments.files.durable import FileLock, os_errors_as, sync_tree

FILES, READY = "files", "ready"
KEPT_S = 7 * 24 * 3600.0
"""Seconds after its last game at which a bot is removed; later games need it sent and built again."""
NO_FILES = "none"
"""Folder of bots that have no files of their own."""
PRIVATE = 0o700


class ProgramsMissingError(ClusterError):
    """This host lacks programs that a bot needs; the message completes a sentence after the host's name."""

    def __init__(self, bot: str, programs: list[str]) -> None:
        """``programs`` are those of ``PackedBot.programs`` that are missing."""
        names = ", ".join(sorted({Path(program).name for program in programs}))
        super().__init__(f"lacks {names}, and {bot} needs that: install it there")
        self.programs = programs


class BotCache:
    """Cache of bots below a folder.  Several processes and threads may use it at the same time."""

    def __init__(self, folder: Path, building: threading.Lock) -> None:
        """``building`` is held while a build runs, so that its processes are not killed as orphans."""
        self._folder = folder
        self._building = building
        self._known: dict[PackedBot, Player] = {}

    def cached(self, packed: PackedBot) -> Player | None:
        """Return the player for this host if it is ready; None if its bot has to be prepared or checked."""
        place = self._place(packed)
        if packed.digest and _age_s(place) > KEPT_S / 2:  # or it is not there at all
            return None
        _use(place)
        return self._known.get(packed)

    def prepare(self, packed: PackedBot, sandbox: Sandbox, fetch: Callable[[str], bytes]) -> Player:
        """Return the player for this host, preparing its bot if needed.

        Its archive is made from the head's path, if that path leads to the same files on this host, else
        returned by ``fetch``, which is called with the digest.  A build is confined if ``sandbox`` confines.
        Raises ClusterError if the bot cannot be started here, ProgramsMissingError if that is the reason.
        """
        found = self.cached(packed)
        if found is not None:
            return found
        if missing := missing_programs(packed.programs):
            raise ProgramsMissingError(packed.player.name, missing)
        place = self._place(packed)
        if packed.digest:
            with self._lock(packed.digest):  # without the lock, an old bot might be removed just now
                if not (place / READY).exists():
                    self._make(place, packed, sandbox, fetch)
                _use(place)
        self._known[packed] = found = player_here(packed, place / FILES, _prepare_kernels)
        return found

    def _place(self, packed: PackedBot) -> Path:
        return self._folder / (packed.digest or NO_FILES)

    def remove_old(self) -> None:
        """Remove incomplete bots and those unused for KEPT_S, but none that is being prepared."""
        for place in self._folder.glob("*/"):
            if place.name != NO_FILES and _age_s(place) > KEPT_S:
                with contextlib.suppress(ClusterError, OSError), self._lock(place.name, wait=False):
                    if _age_s(place) > KEPT_S:  # no other worker has used it meanwhile
                        (place / READY).unlink(missing_ok=True)
                        shutil.rmtree(place, ignore_errors=True)

    def _make(self, place: Path, packed: PackedBot, sandbox: Sandbox, fetch: Callable[[str], bytes]) -> None:
        archive = _archive_here(packed)
        if archive is None:
            archive = fetch(packed.digest)
        with os_errors_as(ClusterError, f"{place}: a bot's files cannot be kept"):
            if place.exists():  # left by a worker that was killed
                shutil.rmtree(place)
            unpack(archive, packed.digest, place / FILES)
            make_sources_newest(place / FILES)
            for _, name in packed.folders:
                self._build(place / FILES / name, sandbox)
            sync_tree(place / FILES)
            (place / READY).touch()

    def _build(self, folder: Path, sandbox: Sandbox) -> None:
        confining = sandbox if sandbox.tier.confines else None
        try:
            manifest = load_manifest(folder)
            if manifest is not None and manifest.build is not None:
                with self._building:
                    build(folder, manifest.build, manifest.products, confining)
        except BotError as error:
            raise ClusterError(str(error)) from error

    def _lock(self, digest: str, *, wait: bool = True) -> FileLock:
        """Lock a bot.  Raises ClusterError, also if another holder has the lock and ``wait`` is false."""
        with os_errors_as(ClusterError, f"{self._folder}: bots cannot be kept here"):
            self._folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            return FileLock(self._folder / f"{digest}.lock", create=PRIVATE, wait=wait)


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


def _archive_here(packed: PackedBot) -> bytes | None:
    """Return the archive made from the files at the same paths here; None if they differ."""
    try:
        there, archive = pack(packed.player)
    except (ClusterError, OSError):  # also for unreadable paths
        return None
    return archive if there.digest == packed.digest else None


def _prepare_kernels() -> Path:
    if not kernels.can_compile():
        raise ClusterError("its search is compiled, and numba is not installed on this host")
    try:
        return kernels.prepare()
    except kernels.NotPreparedError as error:
        raise ClusterError(f"its search could not be compiled on this host: {error}") from error
