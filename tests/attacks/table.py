"""The attacks: arguments of attacker.py, the judge of each outcome, and the verdicts of the games."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.attacks.probes import Outside

Got = dict[str, Any]


@dataclass
class Context:
    """Limits, places, and observations from outside."""

    memory_mb: int = 768
    processes: int = 64
    file_mb: int = 64
    scratch_mb: int = 64
    places: dict[str, str] = field(default_factory=dict)
    """Values of the templates besides the amounts: see Scene.places in test_attacks.py."""

    outside: Outside = field(default_factory=Outside)

    def values(self) -> dict[str, str]:
        over = min(2 * self.memory_mb + 128, 1472)
        return {
            "memory_over": str(over),
            "memory_share": str(over // 8),
            "processes_over": str(2 * self.processes + 40),
            "file_over": str(min(2 * self.file_mb + 8, 1024)),
            "disk_share": str(max(4, min(self.file_mb, 2 * self.scratch_mb // 32 + 4))),
            "reversed_marker": self.places.get("victim_marker", "")[::-1],
            **self.places,
        }

    def arguments(self, attack: "Attack") -> list[str]:
        return [part.format(**self.values()) for part in attack.arguments]


UNCONFINED = Context(memory_mb=64, processes=8, file_mb=4, scratch_mb=8)
"""Limits for trying the attacks without a sandbox: what exceeds these harms nothing."""

Held = Callable[[Got, Context], str | None]

ANY_END: tuple[str, ...] = ()
PLAYED = ("",)
HAS_ENDED = ("exited", "closed-output")
"""On a busy machine, a second can pass between the end of a bot's output and that of its sandbox."""


@dataclass(frozen=True)
class Attack:
    """One row."""

    program: str
    arguments: tuple[str, ...]
    tries: str
    held: Held
    verdict: tuple[str, ...] = PLAYED
    """The fault words that are right; "" is a game played to its end. Empty: any end is right."""

    escapes_unconfined: bool = True
    """Whether `held` is sure to complain without a sandbox, if the limits are small (see UNCONFINED).

    False where that depends on the machine, or where there is nothing to be escaped from.
    """

    needs_root: bool = False
    """Unconfined, it is sure to escape only as root."""

    reports: bool = True
    """Whether there is a line on standard error; False where the sandbox may end the bot before."""


# Judges


def not_done(got: Got, context: Context) -> str | None:
    """Nothing that was attempted could be done."""
    done = [name for name, result in got.get("attempts", {}).items() if result == "done"]
    return f"done: {', '.join(done)}" if done else None


def unreached(listener: str) -> Held:
    """No connection arrived at this listener."""

    def judge(got: Got, context: Context) -> str | None:
        return f"reached {listener}" if listener in context.outside.reached else not_done(got, context)

    return judge


def no_network(got: Got, context: Context) -> str | None:
    others = [name for name in got.get("interfaces", []) if name != "lo"]
    return f"sees the interfaces {', '.join(others)}" if others else not_done(got, context)


def no_files_outside(got: Got, context: Context) -> str | None:
    files = context.outside.new_files
    return f"made {', '.join(files)}" if files else None


USUAL = {
    *("bin", "bot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin"),
    *("scratch", "tmp", "usr", "var"),
}
USUAL_ETC = {
    *("alternatives", "fonts", "hosts", "java-17-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("localtime", "passwd", "ssl"),
    # Settings of compilers and interpreters
    *("R", "fpc.cfg", "fpc-3.2.2.cfg", "julia", "ldc2.conf", "nim"),
}
USUAL_DEVICES = {
    *("console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin"),
    *("stdout", "tty", "urandom", "zero"),
}


def little_is_there(got: Got, context: Context) -> str | None:
    directories: dict[str, list[str]] = got.get("directories", {})
    strange = set(directories.get("/", [])) - USUAL
    strange |= {f"etc/{name}" for name in set(directories.get("/etc", [])) - USUAL_ETC}
    strange |= {f"dev/{name}" for name in set(directories.get("/dev", [])) - USUAL_DEVICES}
    strange |= {f"var/{name}" for name in set(directories.get("/var", [])) - {"lib"}}
    strange |= {f"var/lib/{name}" for name in set(directories.get("/var/lib", [])) - {"ghc"}}
    return f"sees {', '.join(sorted(strange)[:12])}" if strange else None


def unsignalled(got: Got, context: Context) -> str | None:
    signals = context.outside.signals
    return f"the process outside got {', '.join(signals)}" if signals else not_done(got, context)


def unseen(got: Got, context: Context) -> str | None:
    if got.get("found"):
        return "sees a process outside"
    return f"sees {got['count']} processes" if got.get("count", 0) > 16 else None


def few_processes(got: Got, context: Context) -> str | None:
    allowed = context.processes + 4  # a moment's helpers
    most = max(got.get("count", 0), context.outside.peak_threads)
    return f"{most} processes or threads at once, {context.processes} allowed" if most > allowed else None


def none_left(got: Got, context: Context) -> str | None:
    outside = context.outside
    if outside.survivors:
        return f"{len(outside.survivors)} processes outlived the game"
    return f"{outside.heartbeats} heartbeats after the game" if outside.heartbeats else None


OTHERS_MB = 160
"""Growth of the rest of the machine in these seconds: other tests run at the same time, write thousands
of files and compile large programs.  With 96, a run of all tests found 9 MB too many."""


POLL_MB = 160
"""Memory that a bot may take between two checks of the referee, 50 ms apart: of 8 processes up to 131 MB were
seen above the limit and its twentieth, with three times the load that the machine's cores can bear."""


def little_memory(got: Got, context: Context) -> str | None:
    """Neither the bot's own figure nor one from outside is above the limit (by more than a poll may miss).

    The machine's growth is anybody's: rows with this judge must not run at the same time as one another.
    """
    allowed = context.memory_mb * 1.05 + POLL_MB
    outside = context.outside
    figures = {
        "by its own account": got.get("held_mb", 0),
        "resident": outside.peak_mb,
        "shared, by the machine's growth": outside.shared_growth_mb - OTHERS_MB,
        "of the kernel, by the machine's growth": outside.kernel_growth_mb - OTHERS_MB,
    }
    for name, figure in figures.items():
        if figure > allowed:
            return f"held {figure:.0f} MB {name}, {context.memory_mb} allowed"
    return None


TEMPORARY_MB = 24
"""Capacity of /tmp and /dev/shm besides the scratch directory."""


def little_in_files(got: Got, context: Context) -> str | None:
    allowed = context.scratch_mb + TEMPORARY_MB
    most = max(got.get("held_mb", 0), got.get("disk_mb", 0))
    return f"{most} MB in files, {allowed} allowed" if most > allowed else None


def small_file(got: Got, context: Context) -> str | None:
    size = got.get("file_mb", 0)
    return f"a file of {size} MB, {context.file_mb} allowed" if size > context.file_mb else None


INODE_KB = 1.2
"""The kernel's memory for an empty file in a tmpfs."""


def few_inodes(got: Got, context: Context) -> str | None:
    return little_memory({"held_mb": got.get("inodes", 0) * INODE_KB / 1024}, context)


def no_root(got: Got, context: Context) -> str | None:
    outputs = got.get("outputs", {})
    if outputs.get("/usr/bin/su", [1, ""])[1].strip() == "0":
        return "su made it root"
    return None


def no_core(got: Got, context: Context) -> str | None:
    if got.get("dumped"):
        return "a core was dumped"
    # A core that is piped to a program is not bound by a limit of 0, but by one of 1.
    if got.get("pattern", "").startswith("|") and got.get("limit", [1, 1])[0] != 1:
        return "a crash starts the machine's core handler"
    return None


def bounded(got: Got, context: Context) -> str | None:
    limits: dict[str, int] = got.get("limits", {})
    # Address space holds nothing by itself, and CPU time is bounded by the game's clocks.
    without = [name for name in ("CORE", "DATA", "FSIZE", "NOFILE", "NPROC") if limits.get(name) == -1]
    return f"no limit for {', '.join(without)}" if without else None


def no_secret(got: Got, context: Context) -> str | None:
    secret = context.places.get("secret_name", "")
    if secret in got.get("own", []):
        return "sees the referee's environment"
    if secret in got.get("others", []):
        return "sees the environment of another process"
    text = json.dumps(got.get("command_lines", []))
    hidden = [name for name in ("results", "other_bot", "home") if context.places.get(name, "\0") in text]
    return f"sees where {', '.join(hidden)} is on a command line" if hidden else None


def no_places(got: Got, context: Context) -> str | None:
    """The table of mounts names no place but the bot's own."""
    text = json.dumps(got.get("mounts", []))
    seen = [
        name
        for name in ("results", "other_bot", "home", "host_tmp")
        if context.places.get(name, "\0") in text
    ]
    if seen:
        return f"the table of mounts shows {', '.join(seen)}"
    writable = [
        point
        for _, point, options in got.get("mounts", [])
        if "rw" in options.split(",")
        and not any(
            point == top or point.startswith(f"{top}/") for top in ("/scratch", "/tmp", "/dev", "/proc")
        )
    ]
    return f"writable: {', '.join(writable)}" if writable else None


def nothing_inherited(got: Got, context: Context) -> str | None:
    inherited = {
        name: target
        for name, target in got.get("inherited", {}).items()
        if not target.startswith(("/proc/", "/dev/pts")) or not target.endswith("/fd")
    }
    return f"inherited {inherited}" if inherited else None


def nobody(got: Got, context: Context) -> str | None:
    """No capabilities, no new privileges, a filter, and not root outside."""
    status: dict[str, str] = got.get("status", {})
    capabilities = [name for name in status if name.startswith("Cap") and int(status[name] or "0", 16)]
    if capabilities:
        return f"has capabilities: {', '.join(capabilities)}"
    if status.get("NoNewPrivs") != "1":
        return "may gain privileges"
    if status.get("Seccomp") != "2":
        return "has no filter of system calls"
    return "is root outside" if 0 in context.outside.users else None


def no_pipes(got: Got, context: Context) -> str | None:
    found = got.get("pipes", {})
    return f"opened pipes of others: {found}" if any(found.values()) else None


# The table


def call(name: str, tries: str, *, escapes: bool = True, needs_root: bool = False) -> Attack:
    return Attack("calls", (name,), tries, not_done, escapes_unconfined=escapes, needs_root=needs_root)


def holds(kind: str, count: int, tries: str, *, needs_root: bool = False) -> Attack:
    arguments = (kind, str(count), "{memory_over}")
    return Attack("hold", arguments, tries, little_memory, ANY_END, needs_root=needs_root, reports=False)


def ends(program: str, tries: str, *verdict: str, argument: str = "") -> Attack:
    """An attack of which only the verdict counts, and that no process is left."""
    return Attack(program, (argument,) if argument else (), tries, none_left, verdict or PLAYED, False)


TOGETHER: dict[str, Attack] = {
    # network
    "tcp": Attack("tcp", ("127.0.0.1", "{tcp_port}"), "connect to a port of the machine", unreached("tcp")),
    "udp": Attack(
        "udp", ("127.0.0.1", "{udp_port}"), "send a datagram to a port of the machine", unreached("udp")
    ),
    "abstract-socket": Attack(
        "unix-socket", ("@{abstract_name}",), "connect to an abstract socket", unreached("abstract")
    ),
    "path-socket": Attack(
        "unix-socket", ("{socket_path}",), "connect to a socket that is a file", unreached("named")
    ),
    "netlink": Attack("sockets", ("netlink",), "ask the kernel about the network", not_done),
    "raw-sockets": Attack(
        "sockets", ("packet", "raw", "raw6", "xdp"), "make raw sockets", not_done, needs_root=True
    ),
    "strange-sockets": Attack(
        "sockets",
        ("alg", "vsock", "bluetooth"),
        "make sockets of rarely used families",
        not_done,
        escapes_unconfined=False,  # where the kernel has them
    ),
    "interfaces": Attack("interfaces", (), "find a network", no_network, escapes_unconfined=False),
    # files
    "leave-files": Attack(
        "leave-files",
        ("{file_name}", "{host_tmp}", "{home}", "{other_bot}", "@own"),
        "leave files in /tmp, at home, with another bot, and with itself",
        no_files_outside,
    ),
    "write-system": Attack(
        "write",
        ("/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/sys", "/bot"),
        "make files in the system's directories",
        not_done,
        needs_root=True,
    ),
    "append": Attack("append", ("{results}", "{other_source}"), "open others' files for writing", not_done),
    "read": Attack(
        "read",
        ("{results}", "{other_source}", "{other_bot}", "{home}", "/proc/{victim_pid}/environ"),
        "read results, another bot's program, the environment of another process",
        not_done,
    ),
    "read-system": Attack(
        "read",
        ("/etc/shadow", "/root", "/var/spool/cron", "/etc/crontab", "/sys", "/run", "/proc/1/root/root"),
        "read what the system keeps",
        not_done,
    ),
    "list-root": Attack("list-root", (), "see the directories of the system", little_is_there),
    "system-files": Attack(
        "append",
        (
            *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory"),
            *("/proc/sysrq-trigger", "/proc/kcore", "/sys/kernel/uevent_helper"),
            *("/sys/fs/cgroup/cgroup.procs", "/sys/power/state"),
        ),
        "open what controls the kernel for writing, and write nothing",
        not_done,
        needs_root=True,
    ),
    "devices": Attack("devices", (), "open disks, memory and other devices", not_done, needs_root=True),
    "mounts": Attack("mounts", ("{namespace}",), "mount, remount, unmount", not_done, needs_root=True),
    "own-directory": Attack(
        "own-directory", (), "change its own directory, which is a copy", none_left, escapes_unconfined=False
    ),
    "links": Attack(
        "links", ("{results}", "{other_source}", "/etc/shadow"), "reach others' files by links", not_done
    ),
    # processes
    "signal": Attack("signal", ("{victim_pid}",), "signal a process outside", unsignalled),
    "see-processes": Attack("see-processes", ("{reversed_marker}",), "see processes outside", unseen),
    "ptrace": Attack("ptrace", ("{victim_pid}",), "trace a process outside, its parent, itself", not_done),
    "peek": Attack("peek", ("{victim_pid}",), "read another process's memory and descriptors", not_done),
    "opponent-pipes": Attack("opponent-pipes", (), "open the pipes of others", no_pipes, needs_root=True),
    "locked-memory": Attack("locked-memory", ("16",), "lock memory", not_done, needs_root=True),
    # kernel
    "terminal": Attack("terminal", ("{namespace}",), "push input into a terminal", not_done, needs_root=True),
    "bpf": call("bpf", "load a program into the kernel", needs_root=True),
    "chroot": call("chroot", "change the root", needs_root=True),
    "clock": Attack("clock", ("{namespace}",), "set the clock", not_done, escapes_unconfined=False),
    "clone": call("clone", "make a user namespace by clone"),
    "clone3": call("clone3", "make a user namespace by clone3"),
    "handles": call("handles", "open files by their numbers", needs_root=True),
    "io-uring": call("io_uring", "system calls that no filter sees"),
    "keyctl": call("keyctl", "use the kernel's keys"),
    "memfd": call("memfd_create", "make a file in memory"),
    "memfd-secret": call("memfd_secret", "make a secret file in memory", escapes=False),
    "perf": call("perf_event_open", "count the machine's events", needs_root=True),
    "personality": call("personality", "turn protections of memory off"),
    "host-name": call("sethostname", "change the machine's name", needs_root=True),
    "namespaces-of-1": call("setns 1", "enter the namespaces of process 1", escapes=False),
    "namespaces-of-parent": call("setns parent", "enter the namespaces of the parent", needs_root=True),
    "set-user": call("setuid", "become root", needs_root=True),
    "thirty-two": call("thirty-two", "the 32-bit entrance to the kernel", escapes=False),
    "user-namespace": call("unshare user", "make a user namespace by unshare"),
    "mount-namespace": call("unshare mount", "make a mount namespace", needs_root=True),
    "network-namespace": call("unshare network", "make a network namespace", needs_root=True),
    "userfaultfd": call("userfaultfd", "handle page faults of the kernel", needs_root=True),
    "x32": call("x32", "the x32 entrance to the kernel", escapes=False),
    "set-user-programs": Attack(
        "set-user-programs", (), "become root by a program", no_root, needs_root=True
    ),
    "core-dump": Attack("core-dump", (), "crash with a core file", no_core, escapes_unconfined=False),
    "limits": Attack("limits", (), "raise its limits", bounded),
    "priority": Attack("priority", (), "run before all others", not_done, needs_root=True),
    "scheduling": Attack(
        "append",
        ("/proc/self/autogroup",),
        "change how its processes are scheduled",
        not_done,
        escapes_unconfined=False,  # where the kernel groups processes
    ),
    # information
    "environment": Attack("environment", (), "see variables", no_secret),
    "mount-table": Attack("mount-table", (), "see the paths of files outside", no_places),
    "descriptors": Attack(
        "descriptors", (), "use inherited descriptors", nothing_inherited, escapes_unconfined=False
    ),
    "identity": Attack("identity", (), "have privileges", nobody),
    "reopen-streams": ends("reopen-streams", "reopen its streams the other way"),
}
"""Attacks that a bot survives unchanged, so that one bot makes all of them in one game."""

ALONE: dict[str, Attack] = {
    # processes
    "forks": Attack("forks", ("{processes_over}",), "many processes at once", few_processes, ANY_END),
    "threads": Attack("threads", ("{processes_over}",), "many threads at once", few_processes, ANY_END),
    "daemon": Attack("daemon", ("{heartbeat}",), "leave a process behind", none_left),
    "daemon-holds-output": Attack(
        "daemon-holds-output", (), "leave a process that holds the bot's output", none_left, HAS_ENDED
    ),
    "hopping": Attack("hopping", (), "leave a process whose id changes all the time", none_left),
    "ignore-signals": Attack(
        "ignore-signals", (), "ignore signals, stay after the end", none_left, PLAYED, False, reports=False
    ),
    "kill-parent": Attack(
        "kill-parent", ("{namespace}",), "kill what confines it", none_left, ANY_END, False, reports=False
    ),
    "kill-all": Attack(
        "kill-all", ("{namespace}",), "kill all that can be seen", none_left, ANY_END, False, reports=False
    ),
    # memory
    "memory": holds("private", 1, "one process"),
    "memory-processes": holds("private", 8, "8 processes"),
    "memory-shared": holds("shared", 1, "shared memory of one process"),
    "memory-shared-processes": holds("shared", 8, "shared memory of 8 processes"),
    "memory-hidden": holds("hidden", 1, "shared memory that is in nobody's resident set"),
    "memory-hidden-processes": holds("hidden", 8, "the same in 8 processes"),
    "memory-zero-device": holds("zero-device", 1, "the same by /dev/zero"),
    "memory-file": holds("memory-files", 1, "files in memory"),
    "memory-in-files": Attack(
        "memory-in-files",
        ("{memory_over}", "/dev/shm", "{scratch}", "/tmp"),
        "files where files are memory",
        little_in_files,
        ANY_END,
        reports=False,
    ),
    "page-tables": holds("page-tables", 8, "tables for huge mappings"),
    "system-v-memory": Attack(
        "system-v-memory", ("{memory_over}",), "System V shared memory", little_memory, ANY_END, reports=False
    ),
    "message-queues": Attack(
        "message-queues",
        ("64",),
        "message queues",
        lambda got, _: "has queues" if got.get("queues") else None,
    ),
    "socket-buffers": holds("sockets", 16, "full sockets"),
    "pipe-buffers": holds("pipes", 16, "full pipes", needs_root=True),
    # disk
    "big-file": Attack("big-file", ("{scratch}", "{file_over}"), "one large file", small_file),
    "sparse-file": Attack("sparse-file", ("{scratch}", "1048576"), "one file with a large size", small_file),
    "many-files": Attack(
        "many-files", ("{scratch}", "32", "{disk_share}"), "32 large files", little_in_files
    ),
    "fill-own-directory": Attack(
        "many-files", ("@own", "32", "{disk_share}"), "32 large files beside itself", little_in_files
    ),
    "own-inodes": Attack(
        "many-inodes",
        ("@own", "200000"),
        "200,000 empty files beside itself",
        few_inodes,
        ANY_END,
        escapes_unconfined=False,
        reports=False,
    ),
    "many-inodes": Attack("many-inodes", ("{scratch}", "200000"), "200,000 empty files", few_inodes, ANY_END),
    "deep-directories": Attack(
        "deep-directories",
        ("{scratch}", "10000"),
        "10,000 directories, one in the other",
        few_inodes,
        escapes_unconfined=False,
    ),
    # streams
    "flood-lines": ends(
        "flood", "lines without end", "unknown-message", "unasked-output", argument="nonsense\n"
    ),
    "flood-moves": ends("flood", "moves without end", "empty-pit", "unasked-output", argument="MOVE;1\n"),
    "flood-line": ends("flood", "a line without end", "long-line", argument="xxxxxxxxxx"),
    "flood-errors": Attack(
        "flood-errors", ("25",), "25 MB to standard error", none_left, PLAYED, False, reports=False
    ),
    "close-output": ends("close-output", "close its output", "closed-output"),
    "close-everything": ends("close-everything", "close all and stay", "closed-output", "closed-input"),
    "half-line": ends("half-line", "half a line", "late"),
    "sleep": ends("sleep", "no reply", "late"),
    "stop": ends("stop", "stop itself", "late"),
    "never-read": ends("never-read", "answer once, then never read", "late"),
    "never-start": ends("never-start", "not even read START", "start-limit"),
    "spin-off-turn": Attack("spin-off-turn", ("8",), "use all processors for ever", none_left),
    "spin-threads": ends("spin-threads", "the same in threads", argument="8"),
    "feed-itself": Attack("feed-itself", (), "write to its own input", none_left, ANY_END, False),
}
ATTACKS = TOGETHER | ALONE
