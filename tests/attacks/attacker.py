"""A bot that attacks the machine it runs on, once, at its first turn, and plays legally otherwise.

    attacker.py [--token TEXT] [ATTACK [ARGUMENTS...]]

Without an attack it makes those in `attack.json` beside this file, a list of lists of the same texts, each
after a label: a sandbox may show a bot its command line, and then nothing that is named there is a secret.
Before its first reply it carries out its attacks and writes a line for each to its standard error,
`{"attack": LABEL, "got": {what was measured}}`; attacks that it does not survive are reported before they
begin.  The token has no meaning to it: a test finds the bot's processes by the token on their command lines.

Unconfined, too, it leaves a machine as it was: amounts are given by arguments and have an upper bound,
children end by themselves after `CHILD_LIFE_S`, files are removed unless they are evidence, and what could
not be taken back is tried only in another PID namespace than the one given.  Standard library only.
"""

# An attack makes the system's own calls:
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH109, PTH115, PTH116, PTH123, PTH208

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import pty
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

CHILD_LIFE_S = 20
"""Lifetime of a process of an attack in seconds, confined or not."""

HOLD_S = 1.0
"""Seconds for which an amount is held, so that it can be measured."""

MEGABYTE = 1 << 20
MEMORY_CAP_MB = 1536
COUNT_CAP = 2000
FILE_CAP = 200_000

DONE = "done"

Got = dict[str, Any]
Action = Callable[[], object]
ATTACKS: dict[str, Callable[..., Got]] = {}
EARLY: dict[str, Callable[..., None]] = {}
"""Attacks that never come back: they are reported first."""

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

CLONE_NEW_USER = 0x10000000
MACHINES = ("x86_64", "aarch64")
SYSTEM_CALLS = {
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fsopen": (430, 430),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "setns": (308, 268),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


# Helpers


def name_of(function: Callable[..., object]) -> str:
    return function.__name__.rstrip("_").replace("_", "-")


def attack(function: Callable[..., Got]) -> Callable[..., Got]:
    """Register an attack under its function's name."""
    ATTACKS[name_of(function)] = function
    return function


def attempts(function: Callable[..., Mapping[str, Action | str]]) -> Callable[..., Got]:
    """Register an attack that consists of attempts; those that are texts were made already."""

    def run(*words: str) -> Got:
        actions = function(*words)
        return {
            "attempts": {
                name: each if isinstance(each, str) else attempt(each) for name, each in actions.items()
            }
        }

    ATTACKS[name_of(function)] = run
    return run


def early(function: Callable[..., None]) -> Callable[..., None]:
    """Register an attack that does not come back."""
    EARLY[name_of(function)] = function
    return function


def report(name: str, got: Got) -> None:
    line = json.dumps({"attack": name, "got": got}) + "\n"
    with contextlib.suppress(OSError):
        os.write(2, line.encode())


def error_name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))


def attempt(action: Callable[[], object]) -> str:
    """Return True if an action succeeds, else the name of the error."""
    try:
        action()
    except OSError as error:
        return error_name(error)
    except (ValueError, OverflowError, MemoryError, subprocess.SubprocessError) as error:
        return type(error).__name__
    return DONE


def system_call(name: str, *values: object) -> int:
    if platform.machine() not in MACHINES:
        raise OSError(errno.ENOSYS, "no number for it on this machine")
    return numbered_call(SYSTEM_CALLS[name][MACHINES.index(platform.machine())], *values)


def numbered_call(number: int, *values: object) -> int:
    prepared = [ctypes.c_long(value) if isinstance(value, int) else value for value in values]
    return checked(libc.syscall(ctypes.c_long(number), *prepared))


def checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def in_child(action: Callable[[], object]) -> str:
    """Like attempt, in a child, so that what it changes ends with it."""
    reading, writing = os.pipe()
    try:
        process = os.fork()
    except OSError as error:
        return f"fork {error_name(error)}"
    if process == 0:
        signal.alarm(CHILD_LIFE_S)
        os.write(writing, attempt(action).encode())
        os._exit(0)
    os.close(writing)
    answer = b""
    while piece := os.read(reading, 4096):
        answer += piece
    os.close(reading)
    status = os.waitpid(process, 0)[1]
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return answer.decode()


def elsewhere(namespace: str) -> bool:
    """Return True if this process is in another PID namespace than the given one; False if unknown."""
    try:
        return Path("/proc/self/ns/pid").readlink() != Path(namespace)
    except OSError:
        return False


def crowd(count: int, action: Callable[[int], int]) -> tuple[int, list[int]]:
    """So many children at once, each of which reaches an amount; all hold it until the last one has."""
    count = min(count, COUNT_CAP)
    results_out, results_in = os.pipe()
    release_out, release_in = os.pipe()
    alive = set()
    for number in range(count):
        try:
            process = os.fork()
        except OSError:
            break
        if process == 0:
            signal.alarm(CHILD_LIFE_S)
            os.close(release_in)
            amount = 0
            with contextlib.suppress(OSError, MemoryError, ValueError):
                amount = action(number)
            os.write(results_in, struct.pack("q", amount))
            os.read(release_out, 1)
            os._exit(0)
        alive.add(process)
    started = len(alive)
    amounts: list[int] = []
    deadline = time.monotonic() + CHILD_LIFE_S / 2
    while len(amounts) < len(alive) and time.monotonic() < deadline:
        if select.select([results_out], [], [], 0.05)[0]:
            amounts.append(struct.unpack("q", os.read(results_out, 8))[0])
        for process in list(alive):
            if os.waitpid(process, os.WNOHANG)[0]:
                alive.discard(process)
    time.sleep(HOLD_S)
    for descriptor in (release_in, release_out, results_out, results_in):
        os.close(descriptor)
    for process in alive:
        os.waitpid(process, 0)
    return started, amounts


KEPT: list[object] = []
"""Objects that must not be freed."""


def touch(mapping: mmap.mmap) -> None:
    view = ctypes.c_char.from_buffer(mapping)
    ctypes.memset(ctypes.addressof(view), 1, len(mapping))
    KEPT.extend((mapping, view))


def take_memory(megabytes: int, flags: int, descriptor: int = -1) -> int:
    """Map and touch it in steps; how many MB there were before it was refused."""
    step = 4
    taken = 0
    while taken < min(megabytes, MEMORY_CAP_MB):
        try:
            touch(mmap.mmap(descriptor, step * MEGABYTE, flags=flags))
        except (OSError, ValueError, MemoryError):
            break
        taken += step
    return taken


def fill(path: Path, megabytes: int) -> int:
    """A file of so many MB; how many there were before it was refused."""
    block = b"x" * MEGABYTE
    written = 0
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        for _ in range(min(megabytes, MEMORY_CAP_MB)):
            written += file.write(block)
    return written // MEGABYTE


def text_of(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def opened(path: str, flags: int) -> str:
    def action() -> None:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))

    return attempt(action)


# Network


@attempts
def tcp(host: str, port: str) -> Mapping[str, Action]:
    """Connect to a listener outside."""
    return {"connect": lambda: socket.create_connection((host, int(port)), 3).close()}


@attack
def udp(host: str, port: str) -> Got:
    """Send a datagram to a listener outside (that it was sent does not prove that it arrived)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return {"sent": attempt(lambda: sender.sendto(b"attack", (host, int(port))))}


@attempts
def unix_socket(address: str) -> Mapping[str, Action]:
    """Connect to a listener: a file, or after @ a name in the abstract namespace without permissions."""

    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(3)
            client.connect("\0" + address[1:] if address.startswith("@") else address)

    return {"connect": connect}


@attempts
def sockets(*names: str) -> Mapping[str, Action]:
    """Make sockets of families and types that no bot needs."""
    raw = socket.SOCK_RAW
    kinds = {
        "netlink": (16, raw, 0),
        "packet": (17, raw, 0x0300),
        "raw": (2, raw, 1),
        "raw6": (10, raw, 58),
        "alg": (38, socket.SOCK_SEQPACKET, 0),
        "vsock": (40, socket.SOCK_STREAM, 0),
        "bluetooth": (31, raw, 1),
        "xdp": (44, raw, 0),
    }

    def make(name: str) -> None:
        socket.socket(*kinds[name]).close()

    return {name: partial(make, name) for name in names}


@attack
def interfaces() -> Got:
    """List the network interfaces, and look for a way out to an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        route = attempt(lambda: probe.connect(("192.0.2.1", 9)))  # sends nothing, only looks up a route
    return {"interfaces": [name for _, name in socket.if_nameindex()], "attempts": {"route": route}}


# Files


def own_directory() -> str:
    return str(Path(__file__).resolve().parent)


def expanded(path: str) -> str:
    return own_directory() if path == "@own" else os.path.expandvars(path)


@attempts
def leave_files(name: str, *directories: str) -> Mapping[str, Action]:
    """Make a file of this name in each directory, and leave it there to be found."""
    return {path: partial((Path(expanded(path)) / name).write_text, "x") for path in directories}


@attempts
def write(*directories: str) -> Mapping[str, Action]:
    """Make a file in each directory, and remove it."""

    def make(directory: str) -> None:
        path = Path(expanded(directory)) / f"attack-{os.getpid()}"
        path.write_text("x")
        path.unlink()

    return {path: partial(make, path) for path in directories}


@attempts
def append(*paths: str) -> Mapping[str, str]:
    """Open existing files for writing, and write nothing."""
    return {path: opened(expanded(path), os.O_WRONLY) for path in paths}


@attempts
def read(*paths: str) -> Mapping[str, Action]:
    """Read files and list directories."""

    def look(path: str) -> None:
        if Path(path).is_dir():
            os.listdir(path)
        else:
            with open(path, "rb") as file:
                file.read(16)

    return {path: partial(look, path) for path in paths}


@attack
def list_root() -> Got:
    """List the directories under /."""
    directories: dict[str, list[str]] = {}
    for directory in ("/", "/etc", "/dev", "/var", "/var/lib"):
        try:
            directories[directory] = sorted(os.listdir(directory))
        except OSError as error:
            directories[directory] = [f"({error_name(error)})"] if error.errno != errno.ENOENT else []
    return {"directories": directories}


@attempts
def devices() -> Mapping[str, Action | str]:
    """Open devices for reading, and make one of our own."""
    names = "sda vda nvme0n1 mem port kmsg kvm fuse net/tun loop-control tty1 snapshot userfaultfd"
    node = Path(tempfile.gettempdir()) / f"attack-device-{os.getpid()}"

    def make() -> None:
        os.mknod(node, 0o20600, os.makedev(1, 11))
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_NONBLOCK))
        finally:
            node.unlink()

    return {**{name: opened(f"/dev/{name}", os.O_RDONLY) for name in names.split()}, "mknod": make}


@attack
def mounts(namespace: str) -> Got:
    """Mount over a directory of our own, bind, make detached mounts; remount only in another namespace."""
    directory = Path(tempfile.mkdtemp())
    target = os.fsencode(directory)

    def mount(source: bytes | None, where: bytes, kind: bytes | None, flags: int, undo: bool) -> None:
        system_call("mount", source, where, kind, flags, None)
        if undo:
            system_call("umount2", where, 2)

    actions: dict[str, Action] = {
        "tmpfs": lambda: mount(b"none", target, b"tmpfs", 0, True),
        "proc": lambda: mount(b"proc", target, b"proc", 0, True),
        "bind": lambda: mount(b"/usr", target, None, 4096, True),
        "fsopen": lambda: os.close(system_call("fsopen", b"tmpfs", 0)),
        "open_tree": lambda: os.close(system_call("open_tree", -100, b"/", 1)),
    }
    if elsewhere(namespace):
        for path in (b"/", b"/usr", b"/dev", b"/proc", b"/bot"):
            actions[f"remount {path.decode()}"] = partial(mount, None, path, None, 32 | 4096, False)
        for path in (b"/proc", b"/tmp"):
            actions[f"umount {path.decode()}"] = partial(system_call, "umount2", path, 2)
    results = {name: attempt(action) for name, action in actions.items()}
    if elsewhere(namespace):
        results["pivot_root"] = in_child(lambda: system_call("pivot_root", b".", b"."))
    directory.rmdir()
    return {"attempts": results}


@attempts
def own_directory_() -> Mapping[str, Action | str]:
    """Change mode and owner of the directory and the program of the bot (to what they are), and its times."""
    directory, program = own_directory(), str(Path(__file__).resolve())
    mode, own = os.stat(directory).st_mode & 0o7777, os.stat(program)
    return {
        "chmod": lambda: os.chmod(directory, mode),
        "chmod program": lambda: os.chmod(program, own.st_mode & 0o7777),
        "chown": lambda: os.chown(program, own.st_uid, own.st_gid),
        "times": lambda: os.utime(program, ns=(own.st_atime_ns, own.st_mtime_ns)),
        "open": opened(program, os.O_WRONLY),
    }


@attack
def links(*targets: str) -> Got:
    """Hard links to, and reads through symbolic links of, files outside."""
    results = {}
    directory = Path(tempfile.mkdtemp())
    for number, target in enumerate(targets):
        hard, symbolic = directory / f"hard{number}", directory / f"symbolic{number}"
        results[f"hard {target}"] = attempt(partial(os.link, target, hard))
        symbolic.symlink_to(target)
        results[f"symbolic {target}"] = opened(str(symbolic), os.O_RDONLY)
        results[f"dots {target}"] = opened("../" * 40 + target, os.O_RDONLY)
        for link in (hard, symbolic):
            link.unlink(missing_ok=True)
    directory.rmdir()
    return {"attempts": results}


# Processes


@attempts
def signal_(process: str) -> Mapping[str, Action]:
    """Signal a process outside by its number there."""
    return {
        "0": lambda: os.kill(int(process), 0),
        "SIGUSR1": lambda: os.kill(int(process), signal.SIGUSR1),
        "pidfd": lambda: os.close(system_call("pidfd_open", int(process), 0)),
    }


def process_ids() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return []


@attack
def see_processes(marker: str) -> Got:
    """List the processes; find one with this word on its command line.

    The word is given in reverse, since our own command line is on that of whatever confines us.
    """
    marker = marker[::-1]
    own = os.getpid()
    lines = {process: text_of(f"/proc/{process}/cmdline") for process in process_ids() if process != own}
    return {
        "count": len(lines) + 1,
        "found": [process for process, line in lines.items() if marker in line][:20],
    }


@attempts
def ptrace(process: str) -> Mapping[str, str]:
    """Become the tracer of a process outside, and of one of our own."""
    seize, trace_me = 0x4206, 0
    return {
        "outside": in_child(lambda: system_call("ptrace", seize, int(process), 0, 0)),
        "parent": in_child(lambda: system_call("ptrace", seize, os.getppid(), 0, 0)),
        "me": in_child(lambda: system_call("ptrace", trace_me, 0, 0, 0)),
    }


@attempts
def peek(process: str) -> Mapping[str, Action]:
    """Read the memory and the descriptors of a process outside."""
    number = int(process)

    def address() -> int:
        with open(f"/proc/{number}/maps") as maps:
            return int(maps.readline().split("-")[0], 16)

    def read_vectors(where: int, target: int) -> None:
        buffer = ctypes.create_string_buffer(16)
        local = struct.pack("QQ", ctypes.addressof(buffer), 16)
        remote = struct.pack("QQ", where, 16)
        system_call("process_vm_readv", target, local, 1, remote, 1, 0)

    def read_memory() -> None:
        descriptor = os.open(f"/proc/{number}/mem", os.O_RDONLY)
        try:
            os.pread(descriptor, 16, address())
        finally:
            os.close(descriptor)

    def take_descriptor() -> None:
        held = system_call("pidfd_open", number, 0)
        try:
            os.close(system_call("pidfd_getfd", held, 0, 0))
        finally:
            os.close(held)

    return {
        "maps": address,
        "process_vm_readv": lambda: read_vectors(address(), number),
        "process_vm_readv, own": lambda: read_vectors(
            ctypes.addressof(ctypes.c_char_p(b"x" * 16)), os.getpid()
        ),
        "mem": read_memory,
        "descriptors": lambda: os.listdir(f"/proc/{number}/fd"),
        "root": lambda: os.listdir(f"/proc/{number}/root/"),
        "pidfd_getfd": take_descriptor,
    }


@attack
def forks(count: str) -> Got:
    """So many processes at once."""
    return {"count": crowd(int(count), lambda number: 1)[0]}


@attack
def threads(count: str) -> Got:
    """So many threads at once."""
    threading.stack_size(65536)
    go = threading.Event()
    started = []
    for _ in range(min(int(count), COUNT_CAP)):
        thread = threading.Thread(target=go.wait, args=(CHILD_LIFE_S,), daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            break
        started.append(thread)
    time.sleep(HOLD_S)
    go.set()
    for thread in started:
        thread.join()
    return {"count": len(started) + 1}


def leave(action: Callable[[], None]) -> bool:
    """Start a grandchild in a session of its own, which its parent leaves behind."""
    try:
        process = os.fork()
    except OSError:
        return False
    if process:
        return os.waitpid(process, 0)[1] == 0
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
    except OSError:
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(CHILD_LIFE_S)
    with contextlib.suppress(OSError):
        action()
    os._exit(0)


def take_null_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


@attack
def daemon(path: str) -> Got:
    """A process in a session of its own that stays and writes a heartbeat to a file."""

    def beat() -> None:
        take_null_streams()
        for _ in for_a_while():
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
                os.write(descriptor, b".")
                os.close(descriptor)
            time.sleep(0.02)

    return {"left": leave(beat)}


@early
def daemon_holds_output() -> None:
    """A process in a session of its own that keeps standard output and error open when the bot is gone."""
    leave(lambda: time.sleep(CHILD_LIFE_S))
    os._exit(0)


@attack
def hopping() -> Got:
    """A process that forks itself every few ms, the parent ending at once."""

    def hop() -> None:
        take_null_streams()
        for _ in for_a_while():
            time.sleep(0.003)
            with contextlib.suppress(OSError):
                if os.fork():
                    os._exit(0)
            signal.alarm(CHILD_LIFE_S)

    return {"left": leave(hop)}


@attack
def ignore_signals() -> Got:
    """Ignore every signal that can be ignored, and stay after the end of the game."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGALRM}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    STAYS.append(True)
    return {}


STAYS: list[bool] = []


@attack
def kill_parent(namespace: str) -> Got:
    """SIGKILL to the parent and to process 1, in another namespace only."""
    if not elsewhere(namespace):
        return {"refused": True}
    sent = {
        f"{number.name} {process}": attempt(partial(os.kill, process, number))
        for process in {os.getppid(), 1} - {0, os.getpid()}
        for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL)
    }
    return {"signals": sent, "parent": os.getppid()}


@attack
def kill_all(namespace: str) -> Got:
    """SIGSTOP and SIGKILL to everything that can be signalled, in another namespace only."""
    if not elsewhere(namespace):
        return {"refused": True}
    stop, kill = attempt(lambda: os.kill(-1, signal.SIGSTOP)), attempt(lambda: os.kill(-1, signal.SIGKILL))
    return {"signals": {"SIGSTOP": stop, "SIGKILL": kill}}


@attack
def opponent_pipes() -> Got:
    """Open pipes of other processes through /proc; nothing is written to them."""
    own = {os.getpid()}
    mine = set()
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError):
            mine.add(os.stat(descriptor).st_ino)
    found = {"read": 0, "write": 0}
    for process in set(process_ids()) - own:
        try:
            names = os.listdir(f"/proc/{process}/fd")
        except OSError:
            continue
        for name in names[:64]:
            path = f"/proc/{process}/fd/{name}"
            with contextlib.suppress(OSError):
                if os.readlink(path).startswith("pipe:") and os.stat(path).st_ino not in mine:
                    found["read"] += opened(path, os.O_RDONLY) == DONE
                    found["write"] += opened(path, os.O_WRONLY) == DONE
    return {"pipes": found}


# Memory


PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
SHARED = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS


def hide(megabytes: int, descriptor: int = -1, flags: int = SHARED) -> int:
    """Shared memory, unmapped page by page: it stays allocated, and no resident size counts it."""
    mappings: list[mmap.mmap] = []
    while 4 * len(mappings) < min(megabytes, MEMORY_CAP_MB):
        try:
            mapping = mmap.mmap(descriptor, 4 * MEGABYTE, flags=flags)
            mapping.write(b"x" * (4 * MEGABYTE))
            mapping.madvise(mmap.MADV_DONTNEED)
        except (OSError, ValueError, MemoryError):
            break
        mappings.append(mapping)
    time.sleep(HOLD_S)
    return sum(4 for mapping in mappings if mapping[1] == ord("x"))


def take_files(megabytes: int) -> int:
    """Files that exist in memory alone (memfd_create), 32 MB each."""
    written = 0
    with contextlib.suppress(OSError):
        while written < megabytes:
            file = os.fdopen(system_call("memfd_create", b"attack", 0), "wb", buffering=0)
            KEPT.append(file)
            for _ in range(32):
                written += file.write(b"x" * MEGABYTE) // MEGABYTE
    return written


def grow_page_tables(megabytes: int) -> int:
    """Fault in one zero page in each 2 MB; each needs a page of tables."""
    span = 2 * MEGABYTE
    size = max(1, megabytes) * 256 * span
    flags = PRIVATE | getattr(mmap, "MAP_NORESERVE", 0x4000)
    while size >= span:
        try:
            mapping = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
        except (OSError, ValueError, MemoryError):
            size //= 2
            continue
        with contextlib.suppress(OSError):
            mapping.madvise(15)  # no huge pages
        for offset in range(0, size, span):
            mapping[offset]
        KEPT.append(mapping)
        break
    lines = text_of("/proc/self/status").splitlines()
    return next((int(line.split()[1]) for line in lines if "VmPTE" in line), 0) // 1024


def fill_descriptor(descriptor: int, most: int) -> int:
    os.set_blocking(descriptor, False)
    written = 0
    with contextlib.suppress(OSError):
        while written < most:
            written += os.write(descriptor, b"x" * 65536)
    return written


def fill_sockets(megabytes: int) -> int:
    """Sockets with full buffers: memory of the kernel."""
    held, most = 0, megabytes * MEGABYTE
    with contextlib.suppress(OSError):
        while held < most:
            pair = socket.socketpair()
            KEPT.extend(pair)
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
                held += fill_descriptor(end.fileno(), most - held)
    return held // MEGABYTE


def fill_pipes(megabytes: int) -> int:
    """Full pipes: memory of the kernel."""
    held, most = 0, megabytes * MEGABYTE
    with contextlib.suppress(OSError):
        while held < most:
            writing = os.pipe()[1]
            with contextlib.suppress(OSError):
                fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, MEGABYTE)
            held += fill_descriptor(writing, most - held)
    return held // MEGABYTE


HOLDERS: dict[str, Callable[[int], int]] = {
    "private": lambda megabytes: take_memory(megabytes, PRIVATE),
    "shared": lambda megabytes: take_memory(megabytes, SHARED),
    "hidden": hide,
    "zero-device": lambda megabytes: hide(megabytes, os.open("/dev/zero", os.O_RDWR), mmap.MAP_SHARED),
    "memory-files": take_files,
    "page-tables": grow_page_tables,
    "sockets": fill_sockets,
    "pipes": fill_pipes,
}
"""Ways to hold so many MB; each returns how many it got."""


@attack
def hold(kind: str, count: str, megabytes: str) -> Got:
    """Hold so many MB altogether in one process or in several at the same time."""
    each = min(int(megabytes), MEMORY_CAP_MB) // int(count)
    if count != "1":
        started, amounts = crowd(int(count), lambda number: HOLDERS[kind](each))
        return {"held_mb": sum(amounts), "count": started}
    held = 0
    with contextlib.suppress(OSError):
        held = HOLDERS[kind](each)
    time.sleep(HOLD_S)
    KEPT.clear()
    return {"held_mb": held}


@attack
def memory_in_files(megabytes: str, *directories: str) -> Got:
    """Files in directories that may be memory (/dev/shm, /tmp, the home directory), so many MB altogether."""
    left = min(int(megabytes), MEMORY_CAP_MB)
    taken: dict[str, int] = {}
    files = []
    for directory in dict.fromkeys(map(expanded, directories)):
        taken[directory] = 0
        for number in range(64):
            if left <= 0:
                break
            path = Path(directory) / f"attack-{os.getpid()}-{number}"
            files.append(path)
            size = fill(path, min(left, 32))
            if not size:
                break
            left -= size
            taken[directory] += size
    time.sleep(HOLD_S)
    for path in files:
        with contextlib.suppress(OSError):
            path.unlink()
    return {"held_mb": sum(taken.values()), "directories": taken}


@attack
def system_v_memory(megabytes: str) -> Got:
    """System V shared memory, filled and detached: it outlives processes, and no resident size counts it."""
    libc.shmat.restype = ctypes.c_void_p
    identifiers = []
    taken = 0
    try:
        while taken < min(int(megabytes), MEMORY_CAP_MB):
            identifier = libc.shmget(0, ctypes.c_size_t(16 * MEGABYTE), 0o1600)
            if identifier < 0:
                break
            identifiers.append(identifier)
            address = libc.shmat(identifier, None, 0)
            if address is None or address == ctypes.c_void_p(-1).value:
                break
            ctypes.memset(address, 1, 16 * MEGABYTE)
            libc.shmdt(ctypes.c_void_p(address))
            taken += 16
        time.sleep(HOLD_S)
    finally:
        for identifier in identifiers:
            libc.shmctl(identifier, 0, None)
    return {"held_mb": taken}


@attack
def message_queues(count: str) -> Got:
    """POSIX message queues with as much in them as they take."""
    held, names = 0, []
    message = b"x" * 8192
    for number in range(min(int(count), 256)):
        name = f"/attack-{os.getpid()}-{number}".encode()
        queue = libc.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, None)
        if queue < 0:
            break
        names.append(name)
        while libc.mq_send(queue, message, ctypes.c_size_t(len(message)), 0) == 0:
            held += len(message)
    time.sleep(HOLD_S)
    for name in names:
        libc.mq_unlink(name)
    return {"queues": len(names), "held_mb": held / MEGABYTE}


@attempts
def locked_memory(megabytes: str) -> Mapping[str, Action]:
    """Memory that must not be swapped out."""
    mapping = mmap.mmap(-1, min(int(megabytes), 64) * MEGABYTE, flags=PRIVATE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    return {"mlock": lambda: checked(libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(len(mapping))))}


# Disk


@attack
def big_file(directory: str, megabytes: str) -> Got:
    """One file."""
    path = Path(expanded(directory)) / f"attack-{os.getpid()}"
    written = fill(path, int(megabytes))
    with contextlib.suppress(OSError):
        path.unlink()
    return {"file_mb": written}


@attack
def sparse_file(directory: str, megabytes: str) -> Got:
    """One file without content, of a size that only its length has."""
    path = Path(expanded(directory)) / f"attack-{os.getpid()}"

    def make() -> None:
        with path.open("wb") as file:
            file.truncate(int(megabytes) * MEGABYTE)

    result = attempt(make)
    size = path.stat().st_size if path.exists() else 0
    path.unlink(missing_ok=True)
    return {"error": result, "file_mb": size // MEGABYTE}


@attack
def many_files(directory: str, count: str, megabytes: str) -> Got:
    """Several files."""
    paths = [
        Path(expanded(directory)) / f"attack-{os.getpid()}-{number}" for number in range(min(int(count), 64))
    ]
    each = min(int(megabytes), MEMORY_CAP_MB // max(1, len(paths)))
    written = sum(fill(path, each) for path in paths)
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
    return {"disk_mb": written}


@attack
def many_inodes(directory: str, count: str) -> Got:
    """Empty files, each of which is memory of the kernel where files are memory."""
    place = Path(tempfile.mkdtemp(dir=expanded(directory)))
    made = 0
    with contextlib.suppress(OSError):
        for number in range(min(int(count), FILE_CAP)):
            os.close(os.open(place / str(number), os.O_CREAT | os.O_WRONLY, 0o600))
            made += 1
    for number in range(made):
        os.unlink(place / str(number))
    place.rmdir()
    return {"inodes": made}


@attack
def deep_directories(directory: str, depth: str) -> Got:
    """Directories within directories, deeper than a path can name."""
    home = os.getcwd()
    place = Path(tempfile.mkdtemp(dir=expanded(directory)))
    os.chdir(place)
    made = 0
    with contextlib.suppress(OSError):
        for _ in range(min(int(depth), FILE_CAP)):
            os.mkdir("d")
            os.chdir("d")
            made += 1
    for _ in range(made):
        os.chdir("..")
        os.rmdir("d")
    os.chdir(home)
    place.rmdir()
    return {"inodes": made}


# Kernel


@attempts
def terminal(namespace: str) -> Mapping[str, Action | str]:
    """Push input into terminals: one of our own, and in another namespace the controlling one and stdin.

    The kernel looks at the lower half of a request's number alone; a filter may look at both.
    """
    push, upper, virtual_console = 0x5412, 1 << 32, 0x541C

    def ask(descriptor: int, request: int) -> int:
        return system_call("ioctl", descriptor, request, ctypes.c_char_p(b" "))

    def on_own(request: int) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # at the end of the session
        os.setsid()
        _, follower = pty.openpty()
        fcntl.ioctl(follower, 0x540E, 0)  # TIOCSCTTY
        ask(follower, request)

    found: dict[str, Action | str] = {
        "own": in_child(lambda: on_own(push)),
        "own, upper half": in_child(lambda: on_own(push | upper)),
    }
    if elsewhere(namespace):
        found["stdin"] = lambda: ask(0, push)
        found["controlling"] = lambda: ask(os.open("/dev/tty", os.O_RDWR), push)
        found["console"] = lambda: ask(os.open("/dev/tty", os.O_RDWR), virtual_console)
    return found


def clone_user_namespace() -> None:
    process = system_call("clone", CLONE_NEW_USER | signal.SIGCHLD, 0, 0, 0, 0)
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)


def clone3_user_namespace() -> None:
    structure = struct.pack("11Q", CLONE_NEW_USER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    process = system_call("clone3", structure, len(structure))
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)


def other_entrance(number: int, first: int, second: int) -> None:
    """A system call by the 32-bit entrance, whose numbers are others."""
    if platform.machine() != "x86_64":
        raise OSError(errno.ENOSYS, "this machine has no such entrance")
    # push rbx; eax = edi; ebx = esi; ecx = edx; edx = 1; int 0x80; pop rbx; ret
    code = bytes.fromhex("53 89f8 89f3 89d1 ba01000000 cd80 5b c3")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * 3)(address)(number, first, second)
    if result < 0:
        raise OSError(-result, os.strerror(-result))


def enter_namespaces(process: int) -> None:
    entered = []
    for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        with contextlib.suppress(OSError):
            descriptor = os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY)
            system_call("setns", descriptor, 0)
            entered.append(name)
    if not entered:
        raise OSError(errno.EPERM, "none")


def open_by_handle() -> None:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    system_call("name_to_handle_at", -100, b"/", handle, ctypes.byref(mount), 0)
    root = os.open("/", os.O_RDONLY)
    os.close(system_call("open_by_handle_at", root, handle, os.O_RDONLY))


def set_clock() -> None:
    now = time.time_ns()
    system_call("clock_settime", 0, struct.pack("qq", *divmod(now, 10**9)))


def set_host_name() -> None:
    name = socket.gethostname().encode()
    checked(libc.sethostname(name, ctypes.c_size_t(len(name))))


def become(identity: int) -> None:
    """Change the user: to 0 if we are somebody else, else that is done already."""
    os.setgid(identity)
    os.setuid(identity)


CALLS: dict[str, Callable[[], object]] = {
    "bpf": lambda: os.close(system_call("bpf", 0, struct.pack("IIII", 2, 4, 8, 1) + bytes(112), 128)),
    "chroot": lambda: os.chroot(tempfile.gettempdir()),
    "clock_settime": set_clock,
    "clone": clone_user_namespace,
    "clone3": clone3_user_namespace,
    "handles": open_by_handle,
    "io_uring": lambda: system_call("io_uring_setup", 4, ctypes.create_string_buffer(120)),
    "keyctl": lambda: system_call("keyctl", 0, -3, 1),
    "memfd_create": lambda: system_call("memfd_create", b"attack", 0),
    "memfd_secret": lambda: system_call("memfd_secret", 0),
    "perf_event_open": lambda: system_call(
        "perf_event_open",
        struct.pack("IIQ", 1, 112, 1) + bytes(24) + struct.pack("Q", 0x61) + bytes(64),
        0,
        -1,
        -1,
        0,
    ),
    "personality": lambda: system_call("personality", 0x0400000),  # read implies execute
    "sethostname": set_host_name,
    "setns 1": lambda: enter_namespaces(1),
    "setns parent": lambda: enter_namespaces(os.getppid()),
    "setuid": lambda: become(0),
    "thirty-two": lambda: other_entrance(288, 0, -3),
    "unshare user": lambda: system_call("unshare", CLONE_NEW_USER),
    "unshare mount": lambda: system_call("unshare", 0x20000),
    "unshare network": lambda: system_call("unshare", 0x40000000),
    "userfaultfd": lambda: system_call("userfaultfd", os.O_CLOEXEC),
    "x32": lambda: numbered_call(0x40000000 + 250, 0, -3, 1),
}


@attempts
def calls(*names: str) -> Mapping[str, str]:
    """Make system calls that no bot needs, each in a child."""
    return {name: in_child(CALLS[name]) for name in names}


@attempts
def clock(namespace: str) -> Mapping[str, str]:
    """Set the clock (to what it is), in another namespace only."""
    return {"clock_settime": in_child(set_clock)} if elsewhere(namespace) else {}


@attack
def set_user_programs() -> Got:
    """Programs that run as root for everybody."""
    outputs = {}
    for command in (["/usr/bin/su", "-c", "id -u"], ["/usr/bin/passwd", "-S"], ["/usr/bin/mount"]):
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False, text=True
            )
            outputs[command[0]] = [done.returncode, done.stdout[:200]]
        except (OSError, subprocess.SubprocessError) as error:
            outputs[command[0]] = [-1, type(error).__name__]
    return {"outputs": outputs}


@attack
def core_dump() -> Got:
    """Crash a child with as large a core file as can be had."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    limit = resource.getrlimit(resource.RLIMIT_CORE)
    process = os.fork()
    if process == 0:
        os.chdir(tempfile.gettempdir())
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGABRT)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    for path in Path(tempfile.gettempdir()).glob("core*"):
        if path.name in ("core", f"core.{process}"):
            path.unlink()
    return {
        "dumped": os.WCOREDUMP(status),
        "limit": list(limit),
        "pattern": text_of("/proc/sys/kernel/core_pattern"),
    }


@attack
def limits() -> Got:
    """Raise every limit; what they are afterwards (-1: none)."""
    after = {}
    for name in ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "MSGQUEUE", "NOFILE", "NPROC", "STACK"):
        number: int = getattr(resource, f"RLIMIT_{name}")
        before = resource.getrlimit(number)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        after[name] = resource.getrlimit(number)[1]
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, before)
    return {"limits": after}


@attempts
def priority() -> Mapping[str, str]:
    """Run before all others."""

    def real_time() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

    return {
        "nice": in_child(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
        "real time": in_child(real_time),
        "oom": in_child(lambda: Path("/proc/self/oom_score_adj").write_text("-900")),
        # A bot that looks starved would be charged less.
        "idle": in_child(lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))),
        "nice 19": in_child(lambda: os.nice(19)),
    }


# Information


@attack
def environment() -> Got:
    """The names of our own variables and of those of every process that can be read."""
    others: set[str] = set()
    lines = []
    for process in set(process_ids()) - {os.getpid()}:
        text = text_of(f"/proc/{process}/environ")
        others.update(item.partition("=")[0] for item in text.split("\0") if item)
        lines.append(text_of(f"/proc/{process}/cmdline").replace("\0", " ")[:300])
    return {"own": sorted(os.environ), "others": sorted(others)[:200], "command_lines": lines[:10]}


@attack
def mount_table() -> Got:
    """Read the table of mounts, which could show paths outside."""
    rows = [line.split() for line in text_of("/proc/self/mountinfo").splitlines()]
    return {"mounts": [[row[3], row[4], row[5]] for row in rows if len(row) > 5][:100]}


@attack
def descriptors() -> Got:
    """List what was inherited besides the three standard streams."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[name] = str(Path(f"/proc/self/fd/{name}").readlink())
    return {"inherited": {name: target for name, target in found.items() if int(name) > 2}}


@attack
def identity() -> Got:
    """Read our capabilities and privileges."""
    status = dict(line.split(":\t", 1) for line in text_of("/proc/self/status").splitlines() if ":\t" in line)
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    return {"status": {name: status.get(name, "") for name in names}}


# Streams: reported first


def for_a_while() -> Iterable[int]:
    deadline = time.monotonic() + CHILD_LIFE_S
    number = 0
    while time.monotonic() < deadline:
        yield number
        number += 1


@early
def flood(text: str) -> None:
    """A text again and again to standard output."""
    for _ in for_a_while():
        os.write(1, text.encode() * 400)


@attack
def flood_errors(megabytes: str) -> Got:
    """So many MB to standard error."""
    for _ in range(min(int(megabytes), 200) * 16):
        os.write(2, b"debug output without end, again and again and again, and again\n" * 1024)
    return {}


@early
def close_output() -> None:
    """Close standard output and stay."""
    os.close(1)
    time.sleep(CHILD_LIFE_S)


@early
def close_everything() -> None:
    """Close all descriptors and stay."""
    os.closerange(0, 256)
    time.sleep(CHILD_LIFE_S)


@early
def half_line() -> None:
    """A reply without its end, byte by byte."""
    for number in for_a_while():
        os.write(1, b"MOVE;" if not number else b"0" if number < 500 else b"")
        time.sleep(0.02)


@early
def sleep() -> None:
    """No reply."""
    time.sleep(CHILD_LIFE_S)


@early
def stop() -> None:
    """Stop ourselves."""
    os.kill(os.getpid(), signal.SIGSTOP)


@early
def never_read() -> None:
    """Answer, and never read again."""
    os.write(1, b"MOVE;1\n")
    time.sleep(CHILD_LIFE_S)


@attack
def spin_off_turn(count: str) -> Got:
    """Processes that use all processors for ever, also while the opponent thinks."""
    started = 0
    for _ in range(min(int(count), 16)):
        try:
            process = os.fork()
        except OSError:
            break
        if process == 0:
            signal.alarm(CHILD_LIFE_S)
            os.closerange(0, 3)
            while True:
                pass
        started += 1
    return {"count": started}


@attack
def spin_threads(count: str) -> Got:
    """The same in threads."""

    def spin() -> None:
        for _ in for_a_while():
            pass

    for _ in range(min(int(count), 16)):
        threading.Thread(target=spin, daemon=True).start()
    return {"count": int(count)}


@attack
def reopen_streams() -> Got:
    """Open our own standard streams in the direction they are not for, and take the pipes' sizes down."""
    return {
        "streams": {
            "write to input": opened("/proc/self/fd/0", os.O_WRONLY),
            "read from output": opened("/proc/self/fd/1", os.O_RDONLY),
            "read from errors": opened("/proc/self/fd/2", os.O_RDONLY),
            "size of input": attempt(lambda: fcntl.fcntl(0, fcntl.F_SETPIPE_SZ, 4096)),
            "size of output": attempt(lambda: fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, MEGABYTE)),
        }
    }


@attack
def feed_itself() -> Got:
    """Write lines of the referee's to our own standard input, where they change nobody's game but ours."""

    def feed() -> None:
        descriptor = os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, b"CHANGE;1;0,0,0,0,0,0,0,98,0,0,0,0,0,0,0,0;OPP\n" * 3)
        os.close(descriptor)

    return {"streams": {"feed": attempt(feed)}}


# The bot


class Bot:
    """Keeps the board that it was last sent, and plays its first legal move."""

    def __init__(self, attacks: list[list[str]]) -> None:
        self.attacks = attacks
        """Label, name, and arguments of each attack."""
        self.seat = "South"
        self.board: list[int] = []

    def run(self) -> None:
        if self.attacks[0][1] == "never-start":
            report(self.attacks[0][0], {})
            time.sleep(CHILD_LIFE_S)
            return
        for line in sys.stdin:
            word, *fields = line.rstrip("\n").split(";")
            if word == "START":
                self.seat = fields[0]
                if self.seat == "South" and "KALARENA_OPENING" not in os.environ:
                    self.answer()
            elif word == "CHANGE":
                self.board = [int(number) for number in fields[1].split(",")]
                if fields[0] == "SWAP":
                    self.seat = "North"
                if fields[2] == "YOU":
                    self.answer()
            elif word == "END":
                break
        if STAYS:
            time.sleep(CHILD_LIFE_S)

    def answer(self) -> None:
        while self.attacks:
            self.attack(*self.attacks.pop(0))
        count = len(self.board) // 2 - 1
        pits = self.board[:count] if self.seat == "North" else self.board[count + 1 : -1]
        move = next((number for number, seeds in enumerate(pits, 1) if seeds), 1)
        os.write(1, f"MOVE;{move}\n".encode())

    def attack(self, label: str, name: str, *arguments: str) -> None:
        if name in EARLY:
            report(label, {})
            EARLY[name](*arguments)
            return
        try:
            got = ATTACKS[name](*arguments)
        except Exception as error:  # whatever the sandbox makes of it is a fact, too
            got = {"exception": f"{type(error).__name__}: {error}"}
        report(label, got)


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--token"]:
        arguments = arguments[2:]
    if arguments:
        Bot([[arguments[0], *arguments]]).run()
    else:
        Bot(json.loads((Path(own_directory()) / "attack.json").read_text())).run()


if __name__ == "__main__":
    main()
