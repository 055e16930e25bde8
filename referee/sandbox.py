"""How a bot is confined: from a player and its limits to the command line that is really run.

There are tiers, found out at the start by running the real thing (referee/probe.py), and noted in each
record.  None is ever lowered silently: a bot that cannot be confined as asked is our host's fault.

bubblewrap puts the bot into namespaces of its own: it sees /usr, its own files and its interpreter,
read-only; no network, no processes but its own; /tmp and a scratch directory in memory, bounded.  All of it
dies with the namespace's first process, whatever it forked.  System calls that a player of a board game has
no use for are refused (referee/seccomp.py), and setrlimit bounds each process; what all of them hold together
is bounded by a control group where one is delegated to us (referee/cgroup.py), else it is looked at every
50 ms.

As an ordinary user the sandbox is a user namespace of that user.  As root there is none: bubblewrap itself is
run as root, so that it reaches files below directories that are closed to others, and the bot's program is
run by setpriv as another user without any privilege, a different one for each bot at a time.  No program of a
bot's ever runs as root, not even with its capabilities dropped: root owns too much of /proc.
"""

import os
import platform
import resource
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from referee.cgroup import BotGroup, CgroupError, group_name
from referee.errors import RefereeError
from referee.limits import MIB, Limits
from referee.needs import SHOWN_ALWAYS, needed_paths, program_directories
from referee.results import Player
from referee.seccomp import program as seccomp_program


class Tier(StrEnum):
    """How well bots are confined, from the best to none."""

    CGROUP = "bubblewrap+cgroup"
    """Namespaces, and a control group for each bot that bounds its memory exactly."""
    BUBBLEWRAP = "bubblewrap"
    """Namespaces; memory of several processes together is looked at every 50 ms."""
    WEAK = "weak"
    """Limits for each process only: for bots that are trusted."""
    OFF = "off"
    """Nothing at all."""

    @property
    def confines(self) -> bool:
        """Whether a hostile bot is held."""
        return self in (Tier.CGROUP, Tier.BUBBLEWRAP)


SCRATCH = "/scratch"
"""A confined bot's own directory for files, its HOME and TMPDIR."""
TMP_BYTES = 16 * MIB
SHM_BYTES = 1 * MIB
"""Bounds of /tmp and /dev/shm: enough for an interpreter's own files, which is all they are for."""
STACK_BYTES = 8 * MIB
"""Linux's usual stack, and what each thread reserves; more here would be more for each thread."""
MAX_STACK_BYTES = 64 * MIB
"""To this a bot may raise it for itself, for a deep recursion."""
SPARE_DATA_BYTES = 2 << 30
"""What a process may reserve beyond its memory: a Java virtual machine commits 1/64 of the host's memory, and
more for each core, without touching it.  What is touched is counted."""
OPEN_FILES = 256
LOCKED_BYTES = 64 * 1024
"""Linux's usual bound (include/uapi/linux/resource.h, MLOCK_LIMIT was 64 KiB)."""

FIRST_USER = 1_900_000_000
"""Users for bots, when we are root, are numbered from here: a range that nothing uses (systemd's list of user
numbers leaves 1879048192 to 2147483647 free)."""
FEW_USERS_FIRST, FEW_USERS = 20_000, 40_000
"""The same where only 65536 users exist (in a container): then with a small chance of two alike."""
MAX_COPIED_FILES = 200
"""Files of a bot that are copied into its sandbox because only root could read them; each is a descriptor."""

SHELL = "/bin/sh"
FROM_US = (
    '[ "$PPID" = "$0" ] || exit 1; [ -z "$1" ] || echo 0 > "$1" || exit 1; shift; exec {redirections}"$@"'
)
"""Goes on only if its parent is still the one that is named, and in the control group if one is named.  The
process has just asked to be killed when its parent dies, and the parent may have died before that."""
PUT_AWAY = "{input}<&0 {output}>&1 </dev/null >/dev/null "
"""bubblewrap's own processes keep their standard input and output for as long as they live, and would keep
the bot's open when it has closed them itself: they are given none, and the bot's are carried past them."""
WHEN_TOLD = 'exec <&{input} >&{output} {input}<&- {output}>&- && read -r go && exec "$@"'
"""Puts standard input and output back, waits for the word GO, and starts nothing if the input ends before it.
(A shell reads no more than the line from a pipe.)"""
GO = b"go\n"
"""What a confined bot's standard input begins with; the shell before the bot takes it.  It is sent when we
hold the sandbox's first process: should we be killed before that, no program of a bot's is started."""

PASSED_ON = (b"KALARENA_GAME", b"KALARENA_OPENING", b"KALARENA_TIME")
"""What of the environment a bot is told (docs/protocol.md)."""
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True, slots=True)
class Tools:
    """Where the programs are that confine; an empty path is one that is missing."""

    bwrap: str = ""
    setpriv: str = ""
    prlimit: str = ""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How bots are confined in a game; can be pickled, and is made by probing (referee/probe.py)."""

    tier: Tier = Tier.OFF
    tools: Tools = Tools()
    cgroup: str = ""
    """The control group that each bot's own is made in; empty below tier CGROUP."""

    def confine(
        self, index: int, player: Player, limits: Limits, environment: Mapping[bytes, bytes]
    ) -> "Confinement":
        """How to run this player.  Raises RefereeError if that cannot be done."""
        if self.tier is Tier.OFF:
            return Confinement(player.command, player.cwd, environment)
        command = (*limiting(self.tools, limits, confined=self.tier.confines), *player.command)
        if not self.tier.confines:
            return Confinement((*self._bound_to_us(), *command), player.cwd, environment)
        confined = _bubblewrapped(
            self.tools, command, index, player, limits, environment, counted=self.tier is Tier.CGROUP
        )
        redirections = PUT_AWAY.format(**_carriers(confined.descriptors))
        if self.tier is not Tier.CGROUP:
            return replace(confined, command=(*self._bound_to_us("", redirections), *confined.command))
        try:
            group = BotGroup(self.cgroup, group_name(index), limits)
        except CgroupError as error:
            confined.close()
            confined.close_status()
            raise RefereeError(str(error)) from error
        joining = self._bound_to_us(str(group.path / "cgroup.procs"), redirections)
        command = (*joining, *confined.command)
        return replace(confined, command=command, group=group)

    def _bound_to_us(self, group: str = "", redirections: str = "") -> tuple[str, ...]:
        """What is put before a command so that it is killed when this process dies, however and whenever.

        bubblewrap's own --die-with-parent comes some milliseconds too late for that.
        """
        if not self.tools.setpriv:
            return ()
        asking = (self.tools.setpriv, "--pdeathsig", "KILL", "--")
        script = FROM_US.format(redirections=redirections)
        return (*asking, SHELL, "-c", script, str(os.getpid()), group)


@dataclass(frozen=True, slots=True)
class Confinement:
    """A command as it is really run.  ``close`` it when it has been started."""

    command: tuple[str, ...]
    cwd: str
    environment: Mapping[bytes, bytes]
    descriptors: tuple[int, ...] = ()
    """Passed on to the command, and ours to close."""
    status: int | None = None
    """Our end of the pipe on which bubblewrap tells of itself; whoever starts the command closes it."""

    group: BotGroup | None = None
    """The control group that the command joins; whoever starts it removes it."""

    def close(self) -> None:
        """Close what was passed on."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def close_status(self) -> None:
        """Close our end of the pipe, if there is one."""
        if self.status is not None:
            os.close(self.status)


def _bubblewrapped(
    tools: Tools,
    command: tuple[str, ...],
    index: int,
    player: Player,
    limits: Limits,
    environment: Mapping[bytes, bytes],
    *,
    counted: bool,
) -> Confinement:
    """``counted``: whether a control group counts all memory, also such as no process shows."""
    as_root = can_give_users()
    descriptors: list[int] = []
    status, told = os.pipe()
    try:
        descriptors.append(told)
        filter_descriptor = _memory_file(_seccomp(counted))
        descriptors.append(filter_descriptor)
        words = [
            tools.bwrap,
            *("--json-status-fd", str(told), "--seccomp", str(filter_descriptor)),
            *_namespaces(as_root=as_root),
            *_system(),
            *_file_systems(limits),
            *_names(bot_user(index) if as_root else os.getuid(), descriptors),
            *_own_files(player, descriptors, as_root=as_root),
            *("--chdir", player.cwd, "--remount-ro", "/dev"),
            # Of its own processes a bot could change there how they are scheduled (autogroup).
            *("--remount-ro", "/proc", "--remount-ro", "/"),
            "--",
        ]
        if as_root:
            user = str(bot_user(index))
            words += [
                tools.setpriv,
                f"--reuid={user}",
                f"--regid={user}",
                "--clear-groups",
                "--inh-caps=-all",
            ]
            words += ["--bounding-set=-all", "--no-new-privs", "--"]
        words += [SHELL, "-c", WHEN_TOLD.format(**_carriers(descriptors)), SHELL]
        shown = {key: value for key, value in environment.items() if key in PASSED_ON}
        path = ":".join([*program_directories(Path(player.command[0])), "/usr/local/bin", "/usr/bin", "/bin"])
        shown |= {
            b"PATH": os.fsencode(path),
            b"HOME": SCRATCH.encode(),
            b"TMPDIR": SCRATCH.encode(),
            b"USER": b"bot",
            b"LANG": b"C.UTF-8",
        }
        return Confinement((*words, *command), "/", shown, tuple(descriptors), status)
    except BaseException:
        os.close(status)
        for descriptor in descriptors:
            os.close(descriptor)
        raise


def _namespaces(*, as_root: bool) -> Iterable[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--hostname", "bot", "--cap-drop", "ALL")
    if as_root:  # what setpriv needs to give them up itself
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    else:
        yield from ("--unshare-user", "--disable-userns")


def _system() -> Iterable[str]:
    """The system's programs and libraries, read-only."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ROOT_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))  # noqa: PTH115 - its text as it is
        elif path.is_dir():  # a system whose /usr is not merged
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--perms", "0755", "--dir", "/etc")
    for name in (*ETC, *_java_settings()):
        yield from ("--ro-bind-try", name, name)


@lru_cache(maxsize=1)
def _java_settings() -> tuple[str, ...]:
    """Debian keeps a Java's settings outside it, and it does not start without them."""
    return tuple(map(str, sorted(Path("/etc").glob("java*"))))


def _file_systems(limits: Limits) -> Iterable[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    # Mapped and shared, it would be memory that no process shows when it has let go of it.
    yield from ("--ro-bind", "/dev/null", "/dev/zero")
    for path, size in (("/dev/shm", SHM_BYTES), ("/tmp", TMP_BYTES), (SCRATCH, limits.scratch_mb * MIB)):
        yield from ("--size", str(size), "--perms", "1777", "--tmpfs", path)


def _own_files(player: Player, descriptors: list[int], *, as_root: bool) -> Iterable[str]:
    """What the bot is made of and its interpreter, each under its own name, and where it is started.

    That directory is there for names to be relative to; it is empty if it is no part of the bot.
    """
    own = [Path(path) for path in player.reads]
    shown = _outermost([*own, *needed_paths(Path(player.command[0]), own)])
    made = {Path("/"), Path("/tmp"), Path("/etc"), Path(SCRATCH)}
    for path in dict.fromkeys([*shown, Path(player.cwd)]):
        for folder in [*reversed(path.parents), *([path] if path not in shown else [])]:
            if folder not in made and not _is_inside(folder, shown):
                made.add(folder)
                yield from ("--perms", "0755", "--dir", str(folder))
        if path not in shown:
            continue
        if as_root and path in own and not _is_readable_for_all(path):
            yield from _copied(path, descriptors)
        else:
            yield from ("--ro-bind", str(path), str(path))


def _names(user: int, descriptors: list[int]) -> Iterable[str]:
    """Who and where a bot is: some runtimes ask, and fail where there is no answer."""
    for path, text in (
        ("/etc/passwd", f"bot:x:{user}:{user}:bot:{SCRATCH}:/bin/sh\n"),
        ("/etc/hosts", "127.0.0.1 localhost bot\n::1 localhost\n"),
    ):
        descriptors.append(_memory_file(text.encode()))
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptors[-1]), path)


def _is_inside(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in (*SHOWN_ALWAYS, *others))


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Those that are in none of the others, without what the sandbox shows or replaces anyway."""
    found: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not _is_inside(path, found):
            found.append(path)
    return found


def _is_readable_for_all(path: Path) -> bool:
    """Whether any user could read a file, or a directory and all that is in it, once he is there."""
    try:
        if not path.is_dir():
            return bool(path.stat().st_mode & 0o004)
        for folder, _, names in os.walk(path):
            if Path(folder).stat().st_mode & 0o005 != 0o005:
                return False
            for name in names:  # a link counts as itself: what it leads to is in here, too, or is not shown
                if not os.lstat(os.path.join(folder, name)).st_mode & 0o004:  # noqa: PTH118
                    return False
    except OSError:
        return False
    return True


def _copied(path: Path, descriptors: list[int]) -> Iterable[str]:
    """Copies in memory of files that only root can read.  Raises RefereeError if they are too many."""
    if path.is_dir():
        yield from ("--perms", "0755", "--dir", str(path))
    count = 0
    for folder, folders, names in os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]:
        for name in [*folders, *names]:
            inner = Path(folder, name)
            if inner.is_symlink():
                yield from ("--symlink", os.readlink(inner), str(inner))  # noqa: PTH115 - its text as it is
            elif inner.is_dir():
                yield from ("--perms", "0755", "--dir", str(inner))
            elif inner.is_file():
                count += 1
                if count > MAX_COPIED_FILES:
                    raise RefereeError(
                        f"{path}: as root, bots run as another user, who cannot read these files, and they "
                        f"are more than the {MAX_COPIED_FILES} that are copied for him: chmod -R o+rX {path}"
                    )
                descriptors.append(os.open(inner, os.O_RDONLY | os.O_CLOEXEC))
                mode = "0755" if inner.stat().st_mode & 0o111 else "0644"
                yield from ("--perms", mode, "--file", str(descriptors[-1]), str(inner))


def limiting(tools: Tools, limits: Limits, *, confined: bool) -> Iterable[str]:
    """What is put before a command to limit each process; nothing where there is no tool for it."""
    if not tools.prlimit:
        return
    yield tools.prlimit
    for name, wanted in (
        ("data", limits.memory_mb * MIB + SPARE_DATA_BYTES),
        ("fsize", limits.file_mb * MIB),
        # A core of 1 byte is none, and unlike 0 it also keeps the core from a program that the host may give
        # it to (Linux, fs/coredump.c).
        ("core", 1),
        ("nofile", OPEN_FILES),
        ("memlock", LOCKED_BYTES),
        ("msgqueue", 0),
        # Where it is not confined, all other processes of the same user would count, too.
        *([("nproc", limits.processes)] if confined else []),
    ):
        yield f"--{name}={_allowed(name, wanted)}"
    yield f"--stack={_allowed('stack', STACK_BYTES)}:{_allowed('stack', MAX_STACK_BYTES)}"
    yield "--"


def _allowed(name: str, wanted: int) -> int:
    """A limit, or less where we have less ourselves and could not raise it."""
    number = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if number is None:
        return wanted
    hard = resource.getrlimit(number)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def bot_user(index: int) -> int:
    """The number of the user that a bot of this process runs as, when we are root.

    A process referees one game at a time, so that no two bots of a host have the same one.
    """
    number = 2 * os.getpid() + index
    if _has_all_users():
        return FIRST_USER + number
    return FEW_USERS_FIRST + number % FEW_USERS


def can_give_users() -> bool:
    """Whether we are root of enough users to give each bot one of its own.

    Root of a user namespace with fewer is an ordinary user outside, and confines as one.
    """
    return os.geteuid() == 0 and _users() >= FEW_USERS_FIRST + FEW_USERS


def _has_all_users() -> bool:
    return _users() >= 2**31


@lru_cache(maxsize=1)
def _users() -> int:
    """How many users, from 0 upwards, there are in our user namespace."""
    try:
        first = [int(word) for word in Path("/proc/self/uid_map").read_text().split()[:3]]
    except (OSError, ValueError):
        return 0
    return first[2] if first[:1] == [0] else 0


def _carriers(descriptors: Iterable[int]) -> dict[str, int]:
    """Two numbers for descriptors that a shell can name, which are one digit, and that are not in use."""
    free = [number for number in range(9, 2, -1) if number not in descriptors]
    return {"input": free[0], "output": free[1]}


@lru_cache(maxsize=2)
def _seccomp(counted: bool) -> bytes:
    return seccomp_program(platform.machine(), shared_memory=counted)


def _memory_file(content: bytes) -> int:
    """A descriptor from which this can be read."""
    assert sys.platform == "linux"
    try:
        descriptor = os.memfd_create("kalarena", os.MFD_CLOEXEC)
    except OSError as error:
        raise RefereeError(f"no memory file could be made: {error}") from error
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
