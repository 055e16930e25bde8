"""Store of built bots, made from submissions.

Below the store's directory::

    ab12.../bot/       a copy of the submission with its build's products; named by the submission's digest
    ab12.../digest     the digest of the bot, as ``tournaments.bots.resolve`` computes it
    incoming/          builds in progress

A bot is compared with its digest before each use, and a bot that was changed is built again: see
``tournaments.bots.digest_store``.

Submissions themselves are never run or written: see ``tournaments.bots.storage``.
"""

import contextlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from tournaments.bots.build import OTHERS_NS, make_sources_newest
from tournaments.bots.digest_store import DigestStore
from tournaments.bots.errors import BotError, ManifestError
from tournaments.bots.manifest import load_manifest
from tournaments.bots.resolve import resolve_bot
from tournaments.bots.storage import ContentStore, write_files
from tournaments.files.durable import FileLock, os_errors_as
from tournaments.server.checks.bot_job import BotJob, Task

BOT, DIGEST_FILE = "bot", "digest"
MODE, EXECUTABLE_MODE = 0o644, 0o755
"""Permissions like those of a student's own files: a build may write them."""
PRODUCTS_NS = OTHERS_NS - 10**9
"""Modification time of uploaded products, in nanoseconds since 1970: they may depend on all other files."""
BLOCK_BYTES = 512
"""Unit of st_blocks (stat(2)): a sparse file needs less than its size."""
THE_UPLOAD = "the upload"


class NotBuiltError(Exception):
    """The bot is not built, or was changed since; it has to be built first."""


class BotStorageError(Exception):
    """The store's directory cannot be used, which is the server's fault; the message gives the reason."""


class BotStorage(DigestStore):
    """Built bots below one directory.  Several processes and threads may use it at the same time."""

    def __init__(self, contents: ContentStore, root: Path) -> None:
        """``root`` is created if needed.  Raises BotStorageError."""
        self.contents = contents
        """Submissions that the bots are built from."""
        self._failure = f"{root.resolve()}: bots cannot be kept here"
        with os_errors_as(BotStorageError, self._failure):
            super().__init__(root.resolve())

    def job(self, task: Task, content: str, name: str, game: str) -> BotJob:
        """Return a worker's job for the bot of a submission."""
        return BotJob(task, name, game, str(self.contents.root.absolute()), str(self.root), content)

    def player(self, content: str, name: str, game: str) -> Player:
        """Return the bot of a submission as a player with a name.

        Raises NotBuiltError if the bot is missing or was changed; BotError if it does not play the game.
        """
        bot = self.bot(content)
        if not self.is_sound(content):
            raise NotBuiltError(f"{content} is not built, or was changed since")
        with naming_the_upload(bot):
            return resolve_bot(str(bot), bot, name, game, may_build=False)

    def bot(self, content: str) -> Path:
        """Return the directory of a submission's bot, which exists if the bot is built."""
        return self.entry(content) / BOT

    def size(self, contents: Iterable[str]) -> int:
        """Return the bytes on the disk of the bots that are built from some submissions."""
        return sum(_bytes_of(self.entry(content)) for content in set(contents))

    def is_sound(self, digest: str) -> bool:
        """Return whether the bot of a submission is built, and unchanged since."""
        bot = self.bot(digest)
        try:
            return resolve_bot(str(bot), bot).digest == (bot.parent / DIGEST_FILE).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError, BotError):
            return False

    def build(self, content: str, game: str, sandbox: Sandbox, within_s: float | None = None) -> None:
        """Build the bot of a submission, unless it exists.

        The build command is run in the sandbox if that confines.  If it does not, the bot itself is not
        confined either, and the build is run without one.  It may take ``within_s``.  Raises BotError, whose
        ``is_ours`` is true if this host failed; ContentError, BotStorageError.
        """
        with contextlib.suppress(NotBuiltError):
            self.player(content, THE_UPLOAD, game)
            return
        with os_errors_as(BotStorageError, self._failure), self.adding(content) as new:
            bot = new / BOT
            self._copy(content, bot)
            confining = sandbox if sandbox.tier.confines else None
            with naming_the_upload(bot):
                player = resolve_bot(
                    str(bot),
                    new,
                    THE_UPLOAD,
                    game,
                    build_in=confining,
                    build_within_s=within_s,
                    rebuild=True,  # whatever its products' times: an upload has none
                )
            (new / DIGEST_FILE).write_text(player.digest, encoding="ascii")

    def sweep(self, keep: Collection[str]) -> int:
        """Remove the bots of all other submissions and leftovers of killed builders; return their number.

        Raises BotStorageError.
        """
        with os_errors_as(BotStorageError, self._failure):
            return self._sweep(keep)

    def set_aside(self, contents: Iterable[str]) -> bool:
        """Move bots away, without waiting; ``remove_leftovers`` removes their files.

        Returns False, and moves none, if another process is adding a bot just now.  Raises BotStorageError.
        """
        with os_errors_as(BotStorageError, self._failure):
            try:
                lock = FileLock(self.root, wait=False)
            except BlockingIOError:
                return False
            with lock:
                for content in contents:
                    with contextlib.suppress(FileNotFoundError):
                        self._set_aside(content)
            return True

    def remove_leftovers(self) -> int:
        """Remove what was set aside, and what killed builders left; return the number of directories.

        Raises BotStorageError.
        """
        with os_errors_as(BotStorageError, self._failure):
            return self._sweep()

    def _copy(self, content: str, bot: Path) -> None:
        """Copy a submission into a new directory, with times that make ``make`` build everything anew."""
        files = self.contents.read(content)
        write_files(bot, files, MODE, EXECUTABLE_MODE)
        make_sources_newest(bot)
        products: list[str] = []
        with contextlib.suppress(ManifestError):  # reported when the bot is resolved
            manifest = load_manifest(bot)
            if manifest is not None and manifest.build is not None:
                products = [os.path.normpath(name) for name in manifest.products]
        for file in files:
            if any(Path(file.path).is_relative_to(product) for product in products):
                os.utime(bot / file.path, ns=(PRODUCTS_NS, PRODUCTS_NS))


def _bytes_of(folder: Path) -> int:
    """Return the bytes on the disk of a directory, which may be removed meanwhile, and of its contents."""
    size = 0
    for parent, _, names in os.walk(folder):
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            with contextlib.suppress(OSError):  # removed meanwhile, or made unreadable by an unconfined bot
                size += path.lstat().st_blocks * BLOCK_BYTES
    return size


@contextlib.contextmanager
def naming_the_upload(bot: Path) -> Iterator[None]:
    """Reword a bot's errors for its author, without the path of the server's copy."""
    try:
        yield
    except BotError as error:
        raise type(error)(
            without_paths(str(error), bot),
            is_ours=error.is_ours,
            printed=without_paths(error.printed, bot),
        ) from error


def without_paths(text: str, bot: Path) -> str:
    """Return the text without the paths of a bot's directory and of the server's Python interpreter."""
    return text.replace(f"{bot}/", "").replace(str(bot), THE_UPLOAD).replace(sys.executable, "python3")
