"""Builds of bots in the sandbox that bots play in.

A build cannot write to the host: the bot's directory is copied into the sandbox's own memory, the command is
run in the copy, and the products are returned through a pipe.  A build can therefore leave nothing outside,
and all processes that it started end with the sandbox.
"""

import contextlib
import os
import select
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from referee.errors import RefereeError
from referee.judge.events import LimitPassed
from referee.judge.faults import classified
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.process.bot import Bot
from referee.process.launch import NotRunnableError
from referee.sandbox.bubblewrap import SHELL, Sandbox
from referee.sandbox.build_artifacts import Artifact, ArtifactError, Unpacker
from referee.sandbox.visible_files import SCRATCH

BUILD_LIMITS = Limits(memory_mb=1024, processes=256, file_mb=64, scratch_mb=512, directory_mb=0)
"""Limits of a build.  A compiler uses more than a bot: javac and g++ some 100 to 300 MB of memory, and a Go
compiler without a cache builds its whole library, in the sandbox's files.  256 processes are four times a
bot's: make -j."""
MAX_PRINTED_BYTES = 16 << 20
"""Most bytes that a build may print.  A build that prints more has failed, and would take time to read."""
MAX_PRODUCT_BYTES = 64 << 20
"""Most bytes of all products together; they are held in memory until all are there."""
MAX_PRODUCTS = 1000
LIMITS_POLL_S = 0.05
"""Seconds between two checks of the memory, as in a game."""
NICENESS = 10
"""Nice value of builds: lower priority than games and interactive requests.  (The processes of a build
inherit it, and the filter of system calls prevents a change.)  Where the system shares processors between
sessions (sched_autogroup_enabled), a build counts as one session, however many processes it has."""
LEFT_OPEN_S = 5.0
"""Seconds to wait for the end of the streams when the build has ended; it comes within milliseconds."""
READ_BYTES = 1 << 16

WORK = f"{SCRATCH}/build"
BEGAN = f"{SCRATCH}/began"
"""File that was written when the build began."""
MAX_UNDECLARED = 5
"""Maximum number of undeclared files whose names are sent."""
# CMake refuses to build where its cache is of another directory, such as a student's own.
_BUILD = """\
PATH={path}$PATH
cp -pR . {work} && chmod -R u+rwX {work} && cd {work} || exit
find . -name CMakeCache.txt -exec {shell} -c 'rm -rf "$1" "${{1%/*}}/CMakeFiles"' sh {{}} \\; 2>/dev/null
touch {began}
printf 'copied\\0'
"$@" </dev/null >&2 || exit
printf 'built\\0'
{sending}
printf 'end\\0'
"""
_SENDING = """\
for f; do
  if [ -L "$f" ]; then printf 'link 0 %s\\0' "$f"
  elif [ -f "$f" ]; then
    kind=file; [ ! -x "$f" ] || kind=program
    size=$(wc -c <"$f") && printf '%s %d %s\\0' "$kind" "$size" "$f" && head -c "$size" "$f"
  else printf 'other 0 %s\\0' "$f"; fi
done
"""
"""Shell script that sends products.  Its exit status is ignored: a product that is missing or incomplete is
noticed by the receiver."""
_SENDING_UNDECLARED = """\
[ -n "$(find {products} -type f -newer {began} 2>/dev/null)" ] ||
  find . -name __pycache__ -prune -o -type f ! -name '*.o' ! -name '*.log' -newer {began} -print |
  head -n {most} | while IFS= read -r f; do printf 'undeclared 0 %s\\0' "$f"; done
"""
"""Shell commands that send the names of some files that the build wrote, if it wrote none of its products.

Caches, object files and logs are no files that a bot needs."""


class NotBuiltError(Exception):
    """The build failed by its own fault; the message completes a sentence, after ``its build command``."""

    def __init__(self, message: str, printed: str = "") -> None:
        super().__init__(message)
        self.printed = printed
        """The beginning and the end of the build's output."""


@dataclass(frozen=True, slots=True)
class Toolchains:
    """Paths of the host that a build can read beside /usr and its own directory."""

    seen: tuple[Path, ...] = ()
    on_path: tuple[str, ...] = ()
    """Directories searched for programs before those of /usr."""


def build_confined(
    directory: Path,
    command: Sequence[str],
    products: Sequence[str],
    sandbox: Sandbox,
    *,
    within_s: float,
    toolchains: Toolchains = Toolchains(),
    limits: Limits = BUILD_LIMITS,
) -> list[Artifact]:
    """Run a build command in a copy of the directory, and return the products that it made.

    The first word of ``command`` is a path.  ``products`` are paths relative to the directory; a directory
    stands for all that is in it, and a name that ends in ``.class`` for all class files, since a Java
    compiler writes one for each class.  Raises NotBuiltError; RefereeError if the host is to blame.

    The build has a user and a control group of its own, as a bot has.
    """
    if not sandbox.tier.confines:
        raise RefereeError("no sandbox holds a build here")
    script = _BUILD.format(
        path="".join(shlex.quote(folder) + ":" for folder in toolchains.on_path),
        work=WORK,
        shell=SHELL,
        began=BEGAN,
        sending=_sending(products),
    )
    # The sandbox copies what the build's user could not read.  It looks for that in the player's own paths
    # alone: in a large installation, that takes half a second.
    private = tuple(path for path in toolchains.seen if _is_private(path))
    player = Player(
        directory.name,
        (SHELL, "-c", script, "build", *command),
        str(directory),
        reads=(str(directory), *map(str, private)),
    )
    public = tuple(path for path in toolchains.seen if path not in private)
    try:
        bot = Bot(0, player, {}, sandbox=replace(sandbox, installations=public), limits=limits)
    except NotRunnableError as error:
        raise NotBuiltError(f"cannot be run: {error}") from error
    unpacker = Unpacker(MAX_PRODUCT_BYTES, MAX_PRODUCTS)
    try:
        bot.wait_ready()
        _run(bot, unpacker, within_s, limits)
        _check_result(bot, unpacker)
    except ArtifactError as error:
        raise NotBuiltError(str(error), bot.stderr.text()) from error
    finally:
        bot.kill()
        bot.close()
    return unpacker.artifacts


def _is_private(path: Path) -> bool:
    """Return whether only its owner can read a program or a directory."""
    try:
        return not path.stat().st_mode & 0o004
    except OSError:
        return False


def _sending(products: Sequence[str]) -> str:
    """Return the shell commands that send the products."""
    each = f"! -type d -exec {SHELL} -c {shlex.quote(_SENDING)} {SHELL} {{}} + 2>/dev/null"
    named = [f"./{name}" for name in products]
    lines = [f"find {shlex.join(named)} {each}"] if named else []
    if named:
        products_text = shlex.join(named)
        lines.append(_SENDING_UNDECLARED.format(products=products_text, began=BEGAN, most=MAX_UNDECLARED))
    if any(name.endswith(".class") for name in products):
        lines.append(f"find . -name '*.class' {each}")
    return "\n".join(lines)


def _run(bot: Bot, unpacker: Unpacker, within_s: float, limits: Limits) -> None:
    """Read the build's streams until it has ended.

    Raises NotBuiltError if the build exceeds a limit, ArtifactError if the stream of products is invalid.
    """
    poll = select.poll()
    open_streams = {bot.stdout, bot.errors}
    for descriptor in open_streams:
        poll.register(descriptor, select.POLLIN)
    if bot.exit_descriptor is not None:
        poll.register(bot.exit_descriptor, select.POLLIN)
    until = time.monotonic() + within_s
    checked_at = 0.0
    slowed: set[int] = set()
    while not bot.has_ended():
        at = time.monotonic()
        if at >= until:
            raise NotBuiltError(f"took over {within_s:g} s", bot.stderr.text())
        if at - checked_at >= LIMITS_POLL_S:
            checked_at = at
            _raise_if_passed(bot.limit_passed(), bot)
            _slow_down(bot, slowed)
        _read_streams(bot, unpacker, poll, open_streams, min(LIMITS_POLL_S, until - at))
    if bot.exit_descriptor is not None:  # it stays readable and would end every wait
        poll.unregister(bot.exit_descriptor)
    until = time.monotonic() + LEFT_OPEN_S
    while open_streams and (left_s := until - time.monotonic()) > 0:
        _read_streams(bot, unpacker, poll, open_streams, left_s)


def _slow_down(bot: Bot, slowed: set[int]) -> None:
    """Lower the priority of the processes that are not in ``slowed`` yet."""
    for pid in set(bot.tree.pids()) - slowed if bot.tree is not None else ():
        slowed.add(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpriority(os.PRIO_PROCESS, pid, NICENESS)


def _read_streams(
    bot: Bot, unpacker: Unpacker, poll: select.poll, open_streams: set[int], within_s: float
) -> None:
    """Wait for data or the process's end, and read once from each stream that has data."""
    ready = {descriptor for descriptor, _ in poll.poll(within_s * 1000)} & open_streams
    ended = set()
    if bot.errors in ready and not bot.read_errors():
        ended.add(bot.errors)
    if bot.stdout in ready:
        with contextlib.suppress(BlockingIOError):  # the build itself has read the pipe
            data = os.read(bot.stdout, READ_BYTES)
            unpacker.feed(data)
            if not data:
                ended.add(bot.stdout)
    for descriptor in ended:
        poll.unregister(descriptor)
        open_streams.remove(descriptor)
    if bot.stderr.total > MAX_PRINTED_BYTES:
        raise NotBuiltError(f"printed over {MAX_PRINTED_BYTES >> 20} MB", bot.stderr.text())


def _raise_if_passed(passed: object, bot: Bot) -> None:
    if isinstance(passed, LimitPassed):
        raise NotBuiltError(f"used over {bot.limits.memory_mb} MB of memory", bot.stderr.text())


def _check_result(bot: Bot, unpacker: Unpacker) -> None:
    """Raise NotBuiltError if the build failed, RefereeError if the sandbox or the host failed."""
    end = bot.exited_event()
    _raise_if_passed(classified(end, "the build command", bot.limits), bot)
    if end.host_kills and end.group_kills is None and not unpacker.ended:
        # A program such as make reports another status if its compiler was killed.
        raise RefereeError(
            "the build command failed when this host, its container or its batch job had no memory left"
        )
    printed = bot.stderr.text()
    if not unpacker.copied:
        raise NotBuiltError(
            f"was not run: its directory could not be copied ({bot.limits.scratch_mb} MB at most, and "
            f"{bot.limits.file_mb} MB a file)",
            printed,
        )
    if not unpacker.built:
        raise NotBuiltError(f"ended with {_status(bot.status)}", printed)
    if not unpacker.ended:
        raise NotBuiltError("was disturbed while its products were read", printed)


def _status(status: int | None) -> str:
    if status is not None and status < 0:
        return f"exit status {128 - status}"  # as a shell reports it; a shell ran the command
    return f"exit status {status}"
