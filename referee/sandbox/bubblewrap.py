"""The sandbox of bots: the command line that runs a player within its limits.

referee/sandbox/detection.py finds the best tier of a host by running it, and each record contains the tier.
A tier is never lowered silently: if a bot cannot be confined as requested, that is the host's fault.

bubblewrap puts the bot into namespaces of its own: it sees /usr, its own files and its interpreter,
read-only; no network, no other processes; /tmp and a scratch directory in memory, bounded.  All of its
processes end with the namespace's first process.  System calls that a player of a board game does not need
are refused (referee/sandbox/seccomp.py), and setrlimit bounds each process; the memory of all processes
together is bounded by a control group where one is delegated (referee/sandbox/cgroup.py), else it is checked
every 50 ms.

An ordinary user's sandbox is a user namespace.  Root's sandbox has none: bubblewrap itself runs as root, so
that it reaches files below directories that are closed to others, and setpriv runs the bot's program as
another user without any privilege, a different one for each bot at a time.  No program of a bot ever runs as
root, not even with its capabilities dropped: root owns too much of /proc.
"""

import os
import platform
import resource
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from threading import Lock

from referee.adapters.command import adapter_reads, adapter_words
from referee.errors import RefereeError
from referee.judge.limits import MIB, Limits
from referee.judge.results import Player
from referee.sandbox.cgroup import BotGroup, CgroupError, group_name
from referee.sandbox.host_resources import core_count
from referee.sandbox.runtime_paths import SHOWN_ALWAYS, needed_paths, program_directories
from referee.sandbox.runtime_settings import merged, runtime_settings
from referee.sandbox.seccomp import program as seccomp_program
from referee.sandbox.working_directory import Placement, WorkingDirectory, is_readable_for_all


class Tier(StrEnum):
    """Tiers of confinement, from the best to none."""

    CGROUP = "bubblewrap+cgroup"
    """Namespaces, and a control group for each bot that bounds its memory exactly."""
    BUBBLEWRAP = "bubblewrap"
    """Namespaces; the memory of several processes together is checked every 50 ms."""
    WEAK = "weak"
    """Limits for each process only: for bots that are trusted."""
    OFF = "off"
    """No confinement."""

    @property
    def confines(self) -> bool:
        """True if a hostile bot is held."""
        return self in (Tier.CGROUP, Tier.BUBBLEWRAP)


SCRATCH = "/scratch"
"""A confined bot's own directory for files, its HOME and TMPDIR."""
TMP_BYTES = 16 * MIB
SHM_BYTES = 1 * MIB
"""Sizes of /tmp and /dev/shm: enough for an interpreter's own files."""
STACK_BYTES = 8 * MIB
"""Linux's usual stack, which each thread reserves as well."""
MAX_STACK_BYTES = 64 * MIB
"""Stack size to which a bot may raise its own limit, for a deep recursion."""
DATA_PER_MEMORY, SPARE_DATA_BYTES = 4, 2 << 30
"""Factor and offset of the limit of a process's address space for data, relative to its memory.  Virtual
machines commit memory that they never touch, the more the larger the heap, and 60 threads commit 8 MB of
stack each.  Memory that is touched is counted, by the control group or every 50 ms; a process can touch some
250 MB in that time, so that this limit matters only where a check is late."""
OPEN_FILES = 256
LOCKED_BYTES = 64 * 1024
"""Linux's usual bound (include/uapi/linux/resource.h, MLOCK_LIMIT was 64 KiB)."""

MAX_BOTS = 32
"""Most confined bots of one process at a time: each has a number, from which its user follows."""
FIRST_USER = 1_900_000_000
"""First number of the users for bots, as root: a range that nothing uses (systemd's list of user numbers
leaves 1879048192 to 2147483647 free)."""
FEW_USERS_FIRST, FEW_USERS = 20_000, 40_000
"""First number and range if only 65536 users exist (in a container); two bots may then rarely share a
number."""

SHELL = "/bin/sh"
IF_PARENT_LIVES = (
    '[ "$PPID" = "$0" ] || exit 1; [ -z "$1" ] || echo 0 > "$1" || exit 1; shift; exec {redirections}"$@"'
)
"""Shell script that continues only if its parent is still the given process, after joining a control group if
one is given.  The process has just set its parent-death signal, and the parent may have died before that."""
SAVE_STREAMS = "{input}<&0 {output}>&1 </dev/null >/dev/null "
"""Redirections for bubblewrap.  Its own processes keep their standard input and output until they end, and
would keep the bot's streams open after the bot has closed them.  They are given /dev/null, and the bot's
streams are passed on as other descriptors."""
START_ON_GO = 'exec <&{input} >&{output} {input}<&- {output}>&- && echo ready && read -r go && exec "$@"'
"""Shell script that restores standard input and output, sends READY, waits for the line GO, and then starts
the command.  It starts nothing if the input ends before GO.  (A shell reads no more than the line from a
pipe.)"""
READY = b"ready\n"
"""First bytes of a confined bot's standard output, sent when bubblewrap has mounted everything."""
GO = b"go\n"
"""First bytes of a confined bot's standard input, read by the shell that starts the bot.  They are sent when
the referee has opened the sandbox's first process and its directories: if the referee is killed before that,
no program of the bot is started."""

GAMES = b"KALARENA_GAMES"
PASSED_ON = (b"KALARENA_GAME", b"KALARENA_OPENING", b"KALARENA_TIME", GAMES)
"""Environment variables that are passed to a bot (docs/protocol.md)."""
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
SYSTEM_DIRECTORIES = tuple(map(Path, ("/dev", "/proc", "/sys", "/etc", SCRATCH)))
REPLACED_DIRECTORIES = {*SYSTEM_DIRECTORIES, *SHOWN_ALWAYS, Path("/"), Path("/tmp")}
ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the programs that confine bots; the path of a missing program is empty."""

    bwrap: str = ""
    setpriv: str = ""
    prlimit: str = ""
    host_name: str = "bot"
    """Host name in the sandbox.  Empty to keep the name of this host where no other name can be set: Podman's
    filter of system calls refuses ``sethostname``."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The confinement of a game's bots, as detected by referee/sandbox/detection.py; it can be pickled."""

    tier: Tier = Tier.OFF
    tools: Tools = Tools()
    cgroup: str = ""
    """The control group in which each bot's own is made; empty below tier CGROUP."""
    own_core: bool = False
    """True if the game has cores of its own, which a confined bot cannot leave."""

    def confine(self, player: Player, limits: Limits, environment: Mapping[bytes, bytes]) -> "Confinement":
        """Return the confined command of a player.  Raises RefereeError if it cannot be confined."""
        command = (*adapter_words(player.protocol, own_network=self.tier.confines), *player.command)
        if self.tier is Tier.OFF:
            return Confinement(command, player.cwd, environment)
        command = (*limiting(self.tools, limits, confined=self.tier.confines), *command)
        if not self.tier.confines:
            inherited = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
            settings = runtime_settings(player.command, limits, core_count(), inherited)
            return Confinement(
                (*self._bound_to_parent(), *command),
                player.cwd,
                merged(settings, environment),
                settings=settings,
            )
        number = _numbers.take()
        try:
            return self._confined(command, number, player, limits, environment)
        except BaseException:
            _numbers.give_back(number)
            raise

    def _confined(
        self,
        command: tuple[str, ...],
        number: int,
        player: Player,
        limits: Limits,
        environment: Mapping[bytes, bytes],
    ) -> "Confinement":
        """Return the command of the bot with this number in a sandbox that confines it."""
        settings = runtime_settings(player.command, limits, core_count())
        confined = _bubblewrapped(
            self.tools,
            command,
            number,
            player,
            limits,
            environment,
            counted=self.tier is Tier.CGROUP,
            own_core=self.own_core,
        )
        confined = replace(
            confined, environment=merged(settings, confined.environment), settings=settings, number=number
        )
        redirections = SAVE_STREAMS.format(**_free_descriptors(confined.descriptors))
        group, members = None, ""
        if self.tier is Tier.CGROUP:
            try:
                group = BotGroup(self.cgroup, group_name(number), limits)
            except CgroupError as error:
                confined.close()
                confined.close_status_pipe()
                raise RefereeError(str(error)) from error
            members = str(group.path / "cgroup.procs")
        command = (*self._bound_to_parent(members, redirections), *confined.command)
        return replace(confined, command=command, group=group)

    def _bound_to_parent(self, group: str = "", redirections: str = "") -> tuple[str, ...]:
        """Return the words before a command by which the kernel kills it when this process dies.

        bubblewrap's own --die-with-parent takes effect some milliseconds too late.
        """
        if not self.tools.setpriv:
            return ()
        setpriv = (self.tools.setpriv, "--pdeathsig", "KILL", "--")
        script = IF_PARENT_LIVES.format(redirections=redirections)
        return (*setpriv, SHELL, "-c", script, str(os.getpid()), group)


@dataclass(frozen=True, slots=True)
class Confinement:
    """The full command of a confined bot.  The caller must ``close`` it when the command was started."""

    command: tuple[str, ...]
    cwd: str
    environment: Mapping[bytes, bytes]
    descriptors: tuple[int, ...] = ()
    """Descriptors passed on to the command; ``close`` closes them."""
    status: int | None = None
    """The referee's end of the pipe for bubblewrap's reports; the program that starts the command closes
    it."""

    group: BotGroup | None = None
    """The control group that the command joins."""
    number: int | None = None
    """The bot's number among the confined ones of this process; None where it is not confined."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables of ``environment`` that pass limits to the runtime (referee/sandbox/runtime_settings.py)."""
    working_directory: WorkingDirectory | None = None
    """The bot's working directory, where it can be written."""
    options: tuple[str, ...] = ()
    """bubblewrap's options, which are in a file: a bot can read the command line, and they have paths of the
    host."""

    def close(self) -> None:
        """Close the descriptors that were passed on."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def close_status_pipe(self) -> None:
        """Close the referee's end of the status pipe, if there is one."""
        if self.status is not None:
            os.close(self.status)

    def release(self) -> None:
        """Remove the control group, and free the bot's number.  Its processes must have ended."""
        if self.group is not None:
            self.group.remove()
        if self.number is not None:
            _numbers.give_back(self.number)


class _Numbers:
    """The numbers of the confined bots that this process runs now, from all of its games and threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: set[int] = set()

    def take(self) -> int:
        """Return the lowest free number.  Raises RefereeError if there is none."""
        with self._lock:
            number = next((number for number in range(MAX_BOTS) if number not in self._taken), None)
            if number is None:
                raise RefereeError(f"this process runs {MAX_BOTS} confined bots already, as many as it can")
            self._taken.add(number)
        return number

    def give_back(self, number: int) -> None:
        with self._lock:
            self._taken.discard(number)


_numbers = _Numbers()


def _bubblewrapped(
    tools: Tools,
    command: tuple[str, ...],
    number: int,
    player: Player,
    limits: Limits,
    environment: Mapping[bytes, bytes],
    *,
    counted: bool,
    own_core: bool,
) -> Confinement:
    """Return the command of a bot in bubblewrap.

    ``counted``: whether a control group counts all memory, also memory that no process shows.
    ``own_core``: see ``Sandbox.own_core``.
    """
    as_root = can_assign_users()
    descriptors: list[int] = []
    status, report_fd = os.pipe()
    try:
        descriptors.append(report_fd)
        filter_descriptor = _memory_file(_seccomp(counted, own_core))
        descriptors.append(filter_descriptor)
        game_files = [
            Path(path) for path in os.fsdecode(environment.get(GAMES, b"")).split(os.pathsep) if path
        ]
        user = bot_user(number) if as_root else None
        own_files, directory = _own_files(player, game_files, limits, descriptors, user)
        options = [
            *("--seccomp", str(filter_descriptor)),
            *_namespaces(tools.host_name, as_root=as_root),
            *_system(),
            *_file_systems(limits),
            *_names(bot_user(number) if as_root else os.getuid(), descriptors),
            *own_files,
            *("--chdir", player.cwd, "--remount-ro", "/dev"),
            # In /proc a bot could change the scheduling of its own processes (autogroup).
            *("--remount-ro", "/proc", "--remount-ro", "/"),
        ]
        options_file = _memory_file(b"".join(os.fsencode(option) + b"\0" for option in options))
        descriptors.append(options_file)
        words = [tools.bwrap, "--json-status-fd", str(report_fd), "--args", str(options_file), "--"]
        if as_root:
            words += [tools.setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups"]
            words += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
        words += [SHELL, "-c", START_ON_GO.format(**_free_descriptors(descriptors)), SHELL]
        path = ":".join([*program_directories(Path(player.command[0])), "/usr/local/bin", "/usr/bin", "/bin"])
        shown = {
            **{key: value for key, value in environment.items() if key in PASSED_ON},
            b"PATH": os.fsencode(path),
            b"HOME": SCRATCH.encode(),
            b"TMPDIR": SCRATCH.encode(),
            b"USER": b"bot",
            b"LANG": b"C.UTF-8",
        }
        return Confinement(
            (*words, *command),
            "/",
            shown,
            tuple(descriptors),
            status,
            working_directory=directory,
            options=tuple(options),
        )
    except BaseException:
        os.close(status)
        for descriptor in descriptors:
            os.close(descriptor)
        raise


def _namespaces(host_name: str, *, as_root: bool) -> Iterable[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if host_name:
        yield from ("--hostname", host_name)
    if as_root:  # setpriv needs these to give them up itself
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    else:
        yield from ("--unshare-user", "--disable-userns")


def _system() -> Iterable[str]:
    """Yield the words that show the system's programs and libraries, read-only."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ROOT_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))  # noqa: PTH115 - the unchanged text
        elif path.is_dir():  # a system whose /usr is not merged
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--perms", "0755", "--dir", "/etc")
    for name in (*ETC, *_java_settings()):
        yield from ("--ro-bind-try", name, name)


@lru_cache(maxsize=1)
def _java_settings() -> tuple[str, ...]:
    """Return the directories in which Debian keeps Java's settings, without which it does not start."""
    return tuple(map(str, sorted(Path("/etc").glob("java*"))))


def _file_systems(limits: Limits) -> Iterable[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    # A shared mapping of /dev/zero would be memory that no process shows after releasing it.
    yield from ("--ro-bind", "/dev/null", "/dev/zero")
    for path, size in (("/dev/shm", SHM_BYTES), ("/tmp", TMP_BYTES), (SCRATCH, limits.scratch_mb * MIB)):
        yield from ("--size", str(size), "--perms", "1777", "--tmpfs", path)


def _own_files(
    player: Player, game_files: list[Path], limits: Limits, descriptors: list[int], user: int | None
) -> tuple[list[str], WorkingDirectory | None]:
    """Return the words that show the bot's files and its interpreter, and its writable working directory.

    Each file is shown under its own name.  ``user`` is the user that the bot runs as where that is not the
    current one.  A working directory that is not part of the bot is empty but for the bot's files.  The
    directory is None if it is read-only.
    """
    own = [*map(Path, player.reads), *adapter_reads(player.protocol), *game_files]
    needed = needed_paths(Path(player.command[0]), own)
    if player.protocol:
        needed += needed_paths(Path(sys.executable), own, trusted=True)
    shown = _outermost([*own, *needed])
    writable = _writable_directory(player, own, needed) if limits.directory_mb else None
    first = [] if writable is None else [writable]
    outside = [path for path in shown if writable is None or not path.is_relative_to(writable)]
    words: list[str] = []
    made = {Path("/"), Path("/tmp"), Path("/etc"), Path(SCRATCH)}
    for path in dict.fromkeys([*outside, *first, Path(player.cwd)]):
        for folder in [*reversed(path.parents), *([path] if path not in (*shown, *first) else [])]:
            if folder not in made and not _is_inside(folder, (*shown, *first)):
                made.add(folder)
                words += ("--perms", "0755", "--dir", str(folder))
        if path in outside:
            if user is not None and path in own and not is_readable_for_all(path):
                copies = Placement(user is not None)
                copies.add(path)
                words += copies.read_only_words(descriptors)
            else:
                words += ("--ro-bind", str(path), str(path))
    if writable is None:
        return words, None
    copies = Placement(user is not None)
    for path in shown:
        if path.is_relative_to(writable) and path in own:
            copies.add(path)
    if writable in copies.whole:
        return words + copies.read_only_words(descriptors), None
    words += copies.writable_words(writable, limits.directory_mb * MIB)
    if Path(player.cwd) != writable:
        words += ("--perms", "0777", "--dir", player.cwd)  # bubblewrap starts the bot there
    for path in shown:
        if path.is_relative_to(writable) and path not in own:
            words += ("--ro-bind", str(path), str(path))
    return words, copies.make_writable(writable, user)


def _writable_directory(player: Player, own: list[Path], needed: list[Path]) -> Path | None:
    """Return the bot's own directory that holds its start directory, else the start directory itself.

    None if that is a directory of the system, which the sandbox shows or replaces.
    """
    cwd = Path(player.cwd)
    holders = [path for path in own if cwd.is_relative_to(path) and path.is_dir()]
    found = min(holders, key=lambda path: len(path.parts), default=cwd)
    is_system = any(found.is_relative_to(path) for path in SYSTEM_DIRECTORIES) or _is_inside(found, needed)
    if ".." in found.parts or found in REPLACED_DIRECTORIES or (is_system and not holders):
        return None
    return found


def _names(user: int, descriptors: list[int]) -> Iterable[str]:
    """Yield the words for /etc/passwd and /etc/hosts: some runtimes look up their user and host."""
    for path, text in (
        ("/etc/passwd", f"bot:x:{user}:{user}:bot:{SCRATCH}:/bin/sh\n"),
        ("/etc/hosts", "127.0.0.1 localhost bot\n::1 localhost\n"),
    ):
        descriptors.append(_memory_file(text.encode()))
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptors[-1]), path)


def _is_inside(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in (*SHOWN_ALWAYS, *others))


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the outermost of the paths, without those that every sandbox shows or replaces."""
    found: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not _is_inside(path, found):
            found.append(path)
    return found


def limiting(tools: Tools, limits: Limits, *, confined: bool) -> Iterable[str]:
    """Yield the words before a command that limit each process; none where prlimit is missing."""
    if not tools.prlimit:
        return
    yield tools.prlimit
    for name, wanted in (
        ("data", DATA_PER_MEMORY * limits.memory_mb * MIB + SPARE_DATA_BYTES),
        ("fsize", limits.file_mb * MIB),
        # A core of 1 byte is none, and unlike 0 it also keeps the core from a program that the host may give
        # it to (Linux, fs/coredump.c).
        ("core", 1),
        ("nofile", OPEN_FILES),
        ("memlock", LOCKED_BYTES),
        ("msgqueue", 0),
        # Without confinement, all other processes of the same user would count, too.
        *([("nproc", limits.processes)] if confined else []),
    ):
        yield f"--{name}={_allowed(name, wanted)}"
    yield f"--stack={_allowed('stack', STACK_BYTES)}:{_allowed('stack', MAX_STACK_BYTES)}"
    yield "--"


def _allowed(name: str, wanted: int) -> int:
    """Return a limit, reduced to this process's own hard limit."""
    number = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if number is None:
        return wanted
    hard = resource.getrlimit(number)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def bot_user(number: int) -> int:
    """Return the user that the bot with this number in this process runs as, when the referee is root.

    No two bots of a host have the same user at a time: Linux has at most 2**22 process numbers.
    """
    bot = MAX_BOTS * os.getpid() + number
    if _has_all_users():
        return FIRST_USER + bot
    return FEW_USERS_FIRST + bot % FEW_USERS


def can_assign_users() -> bool:
    """Return True if this process is root of enough users to give each bot one of its own.

    Root of a user namespace with fewer users is an ordinary user outside, and confines bots as one.
    """
    return os.geteuid() == 0 and _users() >= FEW_USERS_FIRST + FEW_USERS


def _has_all_users() -> bool:
    return _users() >= 2**31


@lru_cache(maxsize=1)
def _users() -> int:
    """Return the number of users, from 0 upwards, in this process's user namespace."""
    try:
        first = [int(word) for word in Path("/proc/self/uid_map").read_text().split()[:3]]
    except (OSError, ValueError):
        return 0
    return first[2] if first[:1] == [0] else 0


def _free_descriptors(descriptors: Iterable[int]) -> dict[str, int]:
    """Return two unused descriptor numbers of one digit, the only ones that a shell can name."""
    free = [number for number in range(9, 2, -1) if number not in descriptors]
    return {"input": free[0], "output": free[1]}


@lru_cache(maxsize=4)
def _seccomp(counted: bool, own_core: bool) -> bytes:
    return seccomp_program(platform.machine(), shared_memory=counted, own_core=own_core)


def _memory_file(content: bytes) -> int:
    """Return a descriptor of a memory file with this content."""
    assert sys.platform == "linux"
    try:
        descriptor = os.memfd_create("kalarena", os.MFD_CLOEXEC)
    except OSError as error:
        raise RefereeError(f"no memory file could be made: {error}") from error
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
