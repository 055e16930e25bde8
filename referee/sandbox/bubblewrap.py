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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from referee.adapters.command import adapter_words
from referee.errors import RefereeError
from referee.judge.limits import MIB, Limits
from referee.judge.results import Player
from referee.sandbox.bot_users import bot_numbers, bot_user, can_assign_users
from referee.sandbox.cgroup import BotGroup, CgroupError, group_name
from referee.sandbox.host_resources import core_count
from referee.sandbox.reaper import mark
from referee.sandbox.runtime_paths import program_directories
from referee.sandbox.runtime_settings import merged, runtime_settings
from referee.sandbox.seccomp import program as seccomp_program
from referee.sandbox.visible_files import (
    SCRATCH,
    file_system_options,
    identity_options,
    memory_file,
    own_file_options,
    system_options,
)
from referee.sandbox.working_directory import WorkingDirectory


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
    installations: tuple[Path, ...] = ()
    """Programs of the host, and their directories, that a confined bot can read beside its own files."""

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
        number = bot_numbers.take()
        try:
            return self._confined(command, number, player, limits, environment)
        except BaseException:
            bot_numbers.give_back(number)
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
            self.installations,
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
    user: int | None = None
    """The user that the command runs as; None for that of the referee."""
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
            bot_numbers.give_back(self.number)


def _bubblewrapped(
    tools: Tools,
    command: tuple[str, ...],
    number: int,
    player: Player,
    limits: Limits,
    environment: Mapping[bytes, bytes],
    installations: Sequence[Path],
    *,
    counted: bool,
    own_core: bool,
) -> Confinement:
    """Return the command of a bot in bubblewrap.

    ``counted``: whether a control group counts all memory, also memory that no process shows.
    ``installations``, ``own_core``: see ``Sandbox``.
    """
    as_root = can_assign_users()
    descriptors: list[int] = []
    status, report_fd = os.pipe()
    try:
        descriptors.append(report_fd)
        filter_descriptor = memory_file(_seccomp(counted, own_core))
        descriptors.append(filter_descriptor)
        game_files = [
            Path(path) for path in os.fsdecode(environment.get(GAMES, b"")).split(os.pathsep) if path
        ]
        user = bot_user(number) if as_root else None
        own_files, directory = own_file_options(player, game_files, installations, limits, descriptors, user)
        options = [
            *("--seccomp", str(filter_descriptor)),
            *_namespaces(tools.host_name, as_root=as_root),
            *system_options(),
            *file_system_options(limits),
            *identity_options(os.getuid() if user is None else user, descriptors),
            *own_files,
            *("--chdir", player.cwd, "--remount-ro", "/dev"),
            # In /proc a bot could change the scheduling of its own processes (autogroup).
            *("--remount-ro", "/proc", "--remount-ro", "/"),
        ]
        options_file = memory_file(b"".join(os.fsencode(option) + b"\0" for option in options))
        descriptors.append(options_file)
        words = [tools.bwrap, "--json-status-fd", str(report_fd), "--args", str(options_file), "--"]
        if as_root:
            words += [tools.setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups"]
            words += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
        words += [SHELL, "-c", START_ON_GO.format(**_free_descriptors(descriptors)), _sandbox_mark()]
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
            user=user,
            working_directory=directory,
            options=tuple(options),
        )
    except BaseException:
        os.close(status)
        for descriptor in descriptors:
            os.close(descriptor)
        raise


def _sandbox_mark() -> str:
    """Return the mark by which the reaper finds the sandboxes of a process that was killed.

    The mark is ``$0`` of the shell in the sandbox.  It is a word of the command line of each program that
    makes the sandbox, and bubblewrap and the sandbox's first process keep it until they end.
    """
    try:
        return mark()
    except OSError as error:
        raise RefereeError(f"could not start the sandbox reaper: {error}") from error


def _namespaces(host_name: str, *, as_root: bool) -> Iterable[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if host_name:
        yield from ("--hostname", host_name)
    if as_root:  # setpriv needs these to give them up itself
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    else:
        yield from ("--unshare-user", "--disable-userns")


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


def _free_descriptors(descriptors: Iterable[int]) -> dict[str, int]:
    """Return two unused descriptor numbers of one digit, the only ones that a shell can name."""
    free = [number for number in range(9, 2, -1) if number not in descriptors]
    return {"input": free[0], "output": free[1]}


@lru_cache(maxsize=4)
def _seccomp(counted: bool, own_core: bool) -> bytes:
    return seccomp_program(platform.machine(), shared_memory=counted, own_core=own_core)
