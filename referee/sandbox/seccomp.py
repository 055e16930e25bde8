"""The system call filter of confined bots, as a program for the kernel (pure).

A bot is denied calls that a player of games does not need, and that have been a way out of sandboxes before:
new namespaces, mounts, kernel interfaces, other processes' memory, memory that no limit counts, odd sockets,
and its own priority.  All else is allowed, since interpreters and virtual machines differ widely in their
needs.  A denied call does not kill the process: it fails with an errno, so that a library can fall back to
something else.  Two calls only seem to be carried out (``NONE``), since programs do not expect them to fail.

The kernel (5.11 and later) tries the program on every number once and remembers which are allowed whatever
their arguments; such a call costs nothing.  The others go through a search tree of some twenty instructions.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum


class UnsupportedMachineError(ValueError):
    """There is no table of system call numbers for this machine."""


class Errno(IntEnum):
    """Error numbers of denied calls: asm-generic/errno-base.h, asm-generic/errno.h."""

    NONE = 0
    """The call returns 0 and does nothing."""
    EPERM = 1
    ENOSYS = 38
    EAFNOSUPPORT = 97


@dataclass(frozen=True, slots=True)
class Machine:
    """The kernel's constants for a type of machine."""

    column: int
    """Index of the machine's system call numbers in the tables below."""
    audit_arch: int
    has_x32: bool = False


_X86_64 = Machine(column=0, audit_arch=0xC000003E, has_x32=True)
"""AUDIT_ARCH_X86_64 in linux/audit.h: EM_X86_64 (62, linux/elf-em.h), 64 bits, little endian."""
_AARCH64 = Machine(column=1, audit_arch=0xC00000B7)
"""AUDIT_ARCH_AARCH64 in linux/audit.h: EM_AARCH64 (183, linux/elf-em.h), 64 bits, little endian."""
MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
"""Supported machines, by the value of platform.machine()."""

X32_BIT = 0x40000000
"""__X32_SYSCALL_BIT in asm/unistd.h: 64-bit programs with 32-bit pointers, under numbers of their own."""
X32_ONLY = range(512, 548)
"""arch/x86/entry/syscalls/syscall_64.tbl: calls of x32 (a ptrace among them) that kernels before 5.4 also
carried out without the bit.  No native call will ever have one of these numbers."""

# fmt: off
REFUSED: dict[Errno, dict[str, tuple[int | None, int | None]]] = {
    # Name: (number in x86_64's asm/unistd_64.h, number in asm-generic/unistd.h, which is aarch64's).
    # Since 424 a new call has the same number everywhere (scripts/syscall.tbl in the kernel's source).
    Errno.ENOSYS: {
        # Its flags are in memory, where a filter cannot look; the C library falls back to clone.
        "clone3": (435, 435),
        "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    },
    Errno.EPERM: {
        # Namespaces and mounts.
        "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41),
        "mount": (165, 40), "umount2": (166, 39), "mount_setattr": (442, 442), "move_mount": (429, 429),
        "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
        "fsmount": (432, 432), "fspick": (433, 433), "statmount": (457, 457), "listmount": (458, 458),
        # Other processes.
        "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
        "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
        # Memory and queues that no limit of a process counts, or that outlive it.
        "memfd_create": (319, 279), "memfd_secret": (447, 447),
        "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
        "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
        "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
        "mq_open": (240, 180),
        # Large or old interfaces of the kernel, and files by their handles.
        "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
        "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
        "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "lookup_dcookie": (212, 18),
        "nfsservctl": (180, 42), "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None),
        # Administration.
        "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89), "swapon": (167, 224),
        "swapoff": (168, 225), "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
        "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
        "syslog": (103, 116), "vhangup": (153, 58), "sethostname": (170, 161), "setdomainname": (171, 162),
        "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
        "clock_adjtime": (305, 266),
        # Priority: a bot must not be able to look starved.  It may choose its processors, but see BOUND.
        "setpriority": (141, 140), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
        "ioprio_set": (251, 30),
        # Placing memory on nodes, which can crowd out others.
        "mbind": (237, 235), "set_mempolicy": (238, 237), "migrate_pages": (256, 238),
        "move_pages": (279, 239),
    },
    Errno.NONE: {
        # Each session may have a share of the processors (sched(7), autogroups): many sessions, many shares.
        # Programs make sessions for their child processes, as Python does with start_new_session, and end
        # if that fails.
        "setsid": (112, 157),
    },
}
"""Calls that fail whatever their arguments are."""
# fmt: on


class Condition(Enum):
    """The test of an argument; ``values`` are those of an Examined."""

    HAS_A_BIT = "denied if one of these bits is set"
    HAS_ALL_BITS = "denied if all of these bits are set"
    IS_ONE_OF = "denied if it is one of these"
    IS_NONE_OF = "denied unless it is one of these"


@dataclass(frozen=True, slots=True)
class Examined:
    """A call that is denied for some values of one argument.

    Only the lower 32 bits are compared: the kernel takes no more of any of these arguments, so that a
    comparison of all 64 could be escaped by setting bits that it drops.
    """

    numbers: tuple[int, int]
    argument: int
    condition: Condition
    values: tuple[int, ...]
    errno: Errno


CLONE_NEW = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
"""linux/sched.h: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.  CLONE_NEWTIME
(0x80) is not here: to clone that bit is a part of the exit signal, so that it makes no time namespace."""
SOCKET_DOMAINS = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6 (linux/socket.h of the kernel, bits/socket.h of the C library)."""
BUFFER_OPTIONS = (7, 8, 32, 33)
"""asm-generic/socket.h: SO_SNDBUF, SO_RCVBUF and their FORCE variants.  Data waiting in a socket is memory
that no process shows; with buffers of the usual size, a bound for all of it can be counted
(referee/sandbox/hidden_memory.py)."""
TERMINAL_REQUESTS = (0x5412, 0x541C, 0x5423)
"""asm-generic/ioctls.h: TIOCSTI and TIOCLINUX can type into a terminal, TIOCSETD loads a line discipline."""
USUAL_POLICY = (0,)
"""linux/sched.h: SCHED_OTHER, which every thread has already.  Mono sets it for each thread, and ends if that
fails."""
PERSONALITIES = (0, 0xFFFFFFFF)
"""PER_LINUX, the usual one (linux/personality.h), and the value that only queries (personality(2))."""

EXAMINED = {
    "clone": Examined((56, 220), 0, Condition.HAS_A_BIT, CLONE_NEW, Errno.EPERM),
    "socket": Examined((41, 198), 0, Condition.IS_NONE_OF, SOCKET_DOMAINS, Errno.EAFNOSUPPORT),
    "socketpair": Examined((53, 199), 0, Condition.IS_NONE_OF, SOCKET_DOMAINS, Errno.EAFNOSUPPORT),
    "setsockopt": Examined((54, 208), 2, Condition.IS_ONE_OF, BUFFER_OPTIONS, Errno.EPERM),
    "ioctl": Examined((16, 29), 1, Condition.IS_ONE_OF, TERMINAL_REQUESTS, Errno.EPERM),
    "sched_setscheduler": Examined((144, 119), 1, Condition.IS_NONE_OF, USUAL_POLICY, Errno.EPERM),
    "personality": Examined((135, 92), 0, Condition.IS_NONE_OF, PERSONALITIES, Errno.EPERM),
}
"""Calls that fail for some arguments only."""

MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
"""asm-generic/mman-common.h, linux/mman.h; MAP_SHARED_VALIDATE (3) has the bit of MAP_SHARED,
MAP_PRIVATE (2) not."""

UNCOUNTED = {
    "mmap": Examined((9, 222), 3, Condition.HAS_ALL_BITS, (MAP_SHARED, MAP_ANONYMOUS), Errno.EPERM),
}
"""Calls for memory that no process shows after it has released it (MADV_DONTNEED), though it is still held:
denied where memory is counted by reading the processes."""

BOUND = {"sched_setaffinity": (203, 122)}
"""Calls that only seem to be carried out (``NONE``) where a game has cores of its own, which its bots must
not leave.  .NET sets the mask of each of its threads to the mask that it has already, and ends if that
fails."""


def instruction(code: int, value: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    """Return a struct sock_filter of linux/filter.h; a jump counts from the instruction after it."""
    return struct.pack("<HBBI", code, jump_true, jump_false, value)


# Each code is a sum of linux/bpf_common.h and linux/filter.h.
LOAD = 0x20
"""BPF_LD | BPF_W | BPF_ABS: take 32 bits of struct seccomp_data, at this offset."""
JUMP = 0x05
"""BPF_JMP | BPF_JA: the only jump that is not limited to 255 instructions."""
JUMP_IF_EQUAL = 0x15
"""BPF_JMP | BPF_JEQ | BPF_K"""
JUMP_IF_AT_LEAST = 0x35
"""BPF_JMP | BPF_JGE | BPF_K: unsigned"""
JUMP_IF_A_BIT = 0x45
"""BPF_JMP | BPF_JSET | BPF_K"""
RETURN = 0x06
"""BPF_RET | BPF_K"""

# linux/seccomp.h: struct seccomp_data is { int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6]; }.
NUMBER_OFFSET = 0
ARCH_OFFSET = 4
ARGUMENTS_OFFSET = 16
"""Both machines are little endian: the lower half of an argument comes first."""
RET_ALLOW = 0x7FFF0000
"""SECCOMP_RET_ALLOW in linux/seccomp.h"""
RET_ERRNO = 0x00050000
"""SECCOMP_RET_ERRNO in linux/seccomp.h; the errno is in the lower 16 bits."""

_ALLOW = instruction(RETURN, RET_ALLOW)


def program(machine: str, *, shared_memory: bool = True, own_core: bool = False) -> bytes:
    """Return the filter for a bot on this machine (a value of platform.machine()), for ``bwrap --seccomp``.

    Args:
        machine: The type of machine.
        shared_memory: Whether memory without a file may be shared with child processes, see UNCOUNTED.
        own_core: Whether the bot must stay on the cores on which it starts, see BOUND.

    Raises:
        UnsupportedMachineError: There is no filter for the machine.
    """
    if machine not in MACHINES:
        raise UnsupportedMachineError(
            f"no system call filter for a machine {machine!r}, only for {', '.join(MACHINES)}"
        )
    target = MACHINES[machine]
    checks = _checks(target, shared_memory=shared_memory, own_core=own_core)
    instructions = _other_interfaces(target) + _search(checks)
    return b"".join(instructions)


def _other_interfaces(target: Machine) -> list[bytes]:
    """Deny the calls of other ABIs, where numbers mean something else; leave the call's number loaded."""
    missing = _deny(Errno.ENOSYS)
    instructions = [
        instruction(LOAD, ARCH_OFFSET),
        instruction(JUMP_IF_EQUAL, target.audit_arch, jump_true=1),
        missing,
        instruction(LOAD, NUMBER_OFFSET),
    ]
    if target.has_x32:
        instructions += [
            instruction(JUMP_IF_A_BIT, X32_BIT, jump_true=2),
            instruction(JUMP_IF_AT_LEAST, X32_ONLY.stop, jump_true=2),
            instruction(JUMP_IF_AT_LEAST, X32_ONLY.start, jump_false=1),
            missing,
        ]
    return instructions


def _checks(target: Machine, *, shared_memory: bool, own_core: bool) -> list[tuple[int, list[bytes]]]:
    """Return the check of each number that is not simply allowed, in the order of the numbers."""
    checks = [
        (number, [_deny(errno)])
        for errno, calls in REFUSED.items()
        for numbers in calls.values()
        if (number := numbers[target.column]) is not None
    ]
    if own_core:
        checks += [(numbers[target.column], [_deny(Errno.NONE)]) for numbers in BOUND.values()]
    examined = EXAMINED if shared_memory else EXAMINED | UNCOUNTED
    checks += [(call.numbers[target.column], _examine(call)) for call in examined.values()]
    return sorted(checks, key=lambda check: check[0])


def _examine(call: Examined) -> list[bytes]:
    instructions = [instruction(LOAD, ARGUMENTS_OFFSET + 8 * call.argument)]
    if call.condition is Condition.HAS_ALL_BITS:
        for bit in call.values:
            instructions += [instruction(JUMP_IF_A_BIT, bit, jump_true=1), _ALLOW]
        return [*instructions, _deny(call.errno)]
    compare = JUMP_IF_A_BIT if call.condition is Condition.HAS_A_BIT else JUMP_IF_EQUAL
    met, otherwise = _deny(call.errno), _ALLOW
    if call.condition is Condition.IS_NONE_OF:
        met, otherwise = otherwise, met
    for value in call.values:
        instructions += [instruction(compare, value, jump_false=1), met]
    return [*instructions, otherwise]


def _search(checks: Sequence[tuple[int, list[bytes]]]) -> list[bytes]:
    """Return a binary search for the loaded number's check; every path ends in a verdict."""
    if len(checks) == 1:
        ((number, check),) = checks
        return [instruction(JUMP_IF_EQUAL, number, jump_true=1), _ALLOW, *check]
    middle = len(checks) // 2
    below, above = _search(checks[:middle]), _search(checks[middle:])
    # The lower half may be longer than a conditional jump reaches, so that one only jumps over a far one.
    return [
        instruction(JUMP_IF_AT_LEAST, checks[middle][0], jump_false=1),
        instruction(JUMP, len(below)),
        *below,
        *above,
    ]


def _deny(errno: Errno) -> bytes:
    return instruction(RETURN, RET_ERRNO | errno)
