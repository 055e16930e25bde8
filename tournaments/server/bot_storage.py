"""Store of built bots: submissions turned into bots that can be started.

Below the workshop's directory::

    ab12.../bot/       a copy of the submission with its build's products; named by the submission's digest
    ab12.../digest     the digest of the bot, as ``tournaments.bots.resolve`` computes it
    incoming/          builds in progress

A bot appears by one rename, when all of it is on the disk.  It is compared with its digest before each use: a
bot that was changed since is built again.  A builder holds a lock on its directory in ``incoming`` for as
long as it lives, so that the leftovers of a killed builder can be recognized and removed.

Submissions themselves are never run from, and never written: see ``tournaments.bots.storage``.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from tournaments.bots.manifest import ManifestError, load_manifest
from tournaments.bots.resolve import BotError, resolve_bot
from tournaments.bots.storage import DIGEST, ContentStore

BOT, DIGEST_FILE, INCOMING = "bot", "digest", "incoming"
MODE, EXECUTABLE_MODE = 0o644, 0o755
"""Permissions like those of a student's own files: a build may write them."""
SOURCES_NS, PRODUCTS_NS = 1_000_000_000, 0
"""Modification times of copies, in nanoseconds since 1970.

An upload has no times; uploaded products are made older than the sources, so that the bot that plays is built
from its sources.
"""
THE_UPLOAD = "the upload"


class NotBuiltError(Exception):
    """The bot does not exist or is not the one that was built; it has to be built first."""


class BotStorageError(Exception):
    """The workshop's directory cannot be used, which is the server's fault; the message says why."""


class BotStorage:
    """Store of bots below one directory.  Several processes and threads may use it at the same time."""

    def __init__(self, contents: ContentStore, root: Path) -> None:
        """``root`` is created if needed.  Raises WorkshopError."""
        self._contents = contents
        self.root = root.resolve()
        with self._explained():
            for folder in (self.root, self.root / INCOMING):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o755)  # a confined bot has a user of its own, whatever the umask is

    def player(self, content: str, name: str, game: str) -> Player:
        """Return the bot of a submission as a player with a name.

        Raises NotBuiltError if the bot is missing or was changed; BotError if it does not play the game.
        """
        bot = self.bot(content)
        if not self._is_sound(content):
            raise NotBuiltError(f"{content} is not built, or was changed since")
        with told_of_the_upload(bot):
            return resolve_bot(str(bot), bot, name, game, may_build=False)

    def bot(self, content: str) -> Path:
        """Return the directory of a submission's bot, which exists if it is built."""
        return self.root / content / BOT

    def build(self, content: str, game: str, sandbox: Sandbox, within_s: float | None = None) -> None:
        """Build the bot of a submission, unless it exists.

        The build command is run in the sandbox if that confines.  If it does not, the bot itself is not
        confined either, and the build is run without one.  It may take ``within_s``.  Raises BotError, whose
        ``is_ours`` says whose fault it is; ContentError, WorkshopError.
        """
        with contextlib.suppress(NotBuiltError):
            self.player(content, THE_UPLOAD, game)
            return
        with self._explained(), self._incoming() as new:
            bot = new / BOT
            self._copy(content, bot)
            confining = sandbox if sandbox.tier.confines else None
            with told_of_the_upload(bot):
                player = resolve_bot(
                    str(bot), new, THE_UPLOAD, game, build_in=confining, build_within_s=within_s
                )
            (new / DIGEST_FILE).write_text(player.digest, encoding="ascii")
            _finish(new)
            self._move_in(new, content)

    def sweep(self, keep: Collection[str]) -> int:
        """Remove the bots of all other submissions and leftovers of killed builders; return their number.

        Raises WorkshopError.
        """
        swept = 0
        with self._explained():
            for path in self.root.iterdir():
                if DIGEST.fullmatch(path.name) and path.name not in keep:
                    # It is moved away first: a partly removed bot must not be found under its name.
                    aside = self._aside(path)
                    shutil.rmtree(aside)
                    swept += 1
            for path in (self.root / INCOMING).iterdir():
                with contextlib.suppress(BlockingIOError, FileNotFoundError), _locked(path):
                    shutil.rmtree(path)
                    swept += 1
        return swept

    def _copy(self, content: str, bot: Path) -> None:
        bot.mkdir()
        for file in self._contents.read(content):
            path = bot / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(EXECUTABLE_MODE if file.executable else MODE)
            os.utime(path, ns=(SOURCES_NS, SOURCES_NS))
        with contextlib.suppress(ManifestError):  # reported when the bot is resolved
            manifest = load_manifest(bot)
            for product in manifest.products if manifest is not None and manifest.build is not None else ():
                path = Path(os.path.normpath(bot / product))
                if not path.is_relative_to(bot):
                    continue  # products named by the bot may be any path of this host
                with contextlib.suppress(OSError, ValueError):
                    os.utime(path, ns=(PRODUCTS_NS, PRODUCTS_NS), follow_symlinks=False)

    @contextlib.contextmanager
    def _incoming(self) -> Iterator[Path]:
        path = self.root / INCOMING / secrets.token_hex(16)
        path.mkdir()
        with _locked(path):
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)

    def _move_in(self, new: Path, content: str) -> None:
        """Move a complete bot into place, replacing a changed one, unless another builder was faster."""
        place = self.root / content
        with _locked(self.root, wait=True):
            if self._is_sound(content):
                return
            if place.exists():
                shutil.rmtree(self._aside(place))
            new.rename(place)
            _sync(self.root)

    def _aside(self, place: Path) -> Path:
        return place.rename(self.root / INCOMING / secrets.token_hex(16))

    def _is_sound(self, content: str) -> bool:
        bot = self.bot(content)
        try:
            return resolve_bot(str(bot), bot).digest == (bot.parent / DIGEST_FILE).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError, BotError):
            return False

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BotStorageError(f"{self.root}: bots cannot be kept here: {error.strerror}") from error


@contextlib.contextmanager
def told_of_the_upload(bot: Path) -> Iterator[None]:
    """Reword a bot's errors for its author, without the path of the server's copy."""
    try:
        yield
    except BotError as error:
        raise BotError(
            without_place(str(error), bot),
            is_ours=error.is_ours,
            printed=without_place(error.printed, bot),
        ) from error


def without_place(text: str, bot: Path) -> str:
    """Return the text without the paths of a bot's directory and of the server's Python interpreter."""
    return text.replace(f"{bot}/", "").replace(str(bot), THE_UPLOAD).replace(sys.executable, "python3")


@contextlib.contextmanager
def _locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a directory; the lock ends with the process, too.

    Raises BlockingIOError if another holder has it and ``wait`` is false; OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def _finish(top: Path) -> None:
    """Make all files below a directory readable for others, whatever the umask, and sync them to the disk.

    Links are not followed.
    """
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o444)
                _sync(path)
        Path(folder).chmod(0o755)
        _sync(Path(folder))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
