"""The system call filter: its verdicts for both machines, and the answers of the real kernel."""

import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.sandbox import seccomp
from referee.sandbox.seccomp import Condition, Errno, UnsupportedMachineError, program

X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
"""linux/audit.h"""
ARCHES = {"x86_64": X86_64, "aarch64": AARCH64}
HIGH = 0xDEADBEEF << 32
"""Upper half of an argument, which the kernel ignores, as a bypass would set it."""
ALLOW = -1
"""No errno: the kernel carries the call out."""
_, EPERM, ENOSYS, EAFNOSUPPORT = Errno


def column(machine: str) -> int:
    return list(ARCHES).index(machine)


def refused(machine: str) -> dict[str, tuple[int, Errno]]:
    """Number and errno of each call that is always denied, by name."""
    return {
        name: (number, errno)
        for errno, calls in seccomp.REFUSED.items()
        for name, numbers in calls.items()
        if (number := numbers[column(machine)]) is not None
    }


def number_of(machine: str, name: str) -> int:
    return (seccomp.EXAMINED | seccomp.UNCOUNTED)[name].numbers[column(machine)]


EXAMPLES: list[tuple[str, tuple[int, ...], int]] = [
    # Call, arguments of which the last one is examined, and errno of the filter.
    *(("clone", (flags,), ALLOW) for flags in (0x3D0F00, 0x01200011, 0x4111, 17, 0)),  # threads, forks
    *(("clone", (1 << bit | 17,), EPERM) for bit in (17, 25, 26, 27, 28, 29, 30)),  # namespaces
    *(("socket", (domain,), ALLOW) for domain in (1, 2, 10)),
    *(("socket", (domain,), EAFNOSUPPORT) for domain in (0, 3, 16, 17, 38, 40, 0x101, 0x10002, 0x8000000A)),
    ("socketpair", (1,), ALLOW),
    ("socketpair", (16,), EAFNOSUPPORT),
    *(("setsockopt", (99, 1, option), EPERM) for option in (7, 8, 32, 33)),  # sizes of buffers
    ("setsockopt", (99, 1, 9), ALLOW),
    *(("ioctl", (99, request), EPERM) for request in (0x5412, 0x541C, 0x5423)),  # typing into a terminal
    *(("ioctl", (99, request), ALLOW) for request in (0x5401, 0x541B, 0x5421)),  # TCGETS, FIONREAD, FIONBIO
    *(("sched_setscheduler", (0, policy), EPERM) for policy in (1, 2, 3, 5)),
    ("sched_setscheduler", (0, 0), ALLOW),
    *(("personality", (persona,), ALLOW) for persona in (0xFFFFFFFF, 0)),
    *(("personality", (persona,), EPERM) for persona in (0x0400000, 0x0040000, 8, 0xFFFFFFFE)),
]


def run(code: bytes, arch: int, number: int, arguments: Sequence[int] = ()) -> int:
    """Interpret classic BPF as far as the kernel allows it in a filter; return the errno, or ALLOW."""
    seen = struct.pack("<IIQ6Q", number, arch, 0x7F0000000000, *[*arguments, *[0] * 6][:6])
    instructions = list(struct.iter_unpack("<HBBI", code))
    accumulator = at = 0
    while True:
        operation, jump_true, jump_false, value = instructions[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", seen, value)
            case 0x05:
                at += value
            case 0x15:
                at += jump_true if accumulator == value else jump_false
            case 0x35:
                at += jump_true if accumulator >= value else jump_false
            case 0x45:
                at += jump_true if accumulator & value else jump_false
            case 0x06:
                assert value == 0x7FFF0000 or value >> 16 == 0x0005, f"no verdict: {value:#x}"
                return ALLOW if value == 0x7FFF0000 else value & 0xFFFF
            case _:
                raise AssertionError(f"unknown instruction {operation:#x}")


def verdict(machine: str, number: int, *arguments: int) -> int:
    return run(program(machine), ARCHES[machine], number, arguments)


def test_there_is_no_program_for_an_unknown_machine() -> None:
    assert program("arm64") == program("aarch64") != program("x86_64")
    for machine in ("riscv64", "i686", "armv7l", "AMD64", ""):
        with pytest.raises(UnsupportedMachineError, match="x86_64"):
            program(machine)


@pytest.mark.parametrize(("machine", "ptrace"), [("x86_64", 101), ("aarch64", 117)])
def test_clone3_does_not_exist_and_ptrace_is_not_permitted(machine: str, ptrace: int) -> None:
    assert (verdict(machine, 435), verdict(machine, ptrace)) == (ENOSYS, EPERM)


@pytest.mark.parametrize("machine", ARCHES)
@pytest.mark.parametrize("high", [0, HIGH])
def test_examined_calls_depend_on_the_lower_half_of_one_argument(machine: str, high: int) -> None:
    for name, arguments, errno in EXAMPLES:
        examined = (*arguments[:-1], high | arguments[-1])
        assert verdict(machine, number_of(machine, name), *examined) == errno, (name, arguments)


@pytest.mark.parametrize("machine", ARCHES)
def test_shared_memory_without_a_file_is_denied_where_it_is_not_counted(machine: str) -> None:
    mmap = number_of(machine, "mmap")
    for flags, errno in ((0x21, EPERM), (0x23, EPERM), (0x22, ALLOW), (0x01, ALLOW)):
        arguments = (0, 4096, 3, HIGH | flags)
        assert run(program(machine, shared_memory=False), ARCHES[machine], mmap, arguments) == errno
        assert verdict(machine, mmap, *arguments) == ALLOW


@pytest.mark.parametrize("number", [0, 1, 39, 101, 317, 0x40000000])
def test_other_interfaces_do_not_exist(number: int) -> None:
    for arch in (I386, AARCH64, 0):
        assert run(program("x86_64"), arch, number) == ENOSYS
    for arch in (ARM, X86_64, 0):
        assert run(program("aarch64"), arch, number) == ENOSYS


def test_x32_does_not_exist_with_its_bit_or_without() -> None:
    for number in (0, 39, 520, 2**30 - 1):
        assert verdict("x86_64", number | 0x40000000) == verdict("x86_64", number | 0xC0000000) == ENOSYS
    assert {verdict("x86_64", number) for number in range(512, 548)} == {ENOSYS}
    assert verdict("x86_64", 511) == verdict("x86_64", 548) == ALLOW
    assert verdict("aarch64", 520) == verdict("aarch64", 0x40000000) == ALLOW


@pytest.mark.parametrize("machine", ARCHES)
def test_a_bot_with_a_core_of_its_own_stays_there(machine: str) -> None:
    number = seccomp.BOUND["sched_setaffinity"][column(machine)]
    bound = program(machine, own_core=True)
    assert run(bound, ARCHES[machine], number, (0, 128)) == Errno.NONE
    assert verdict(machine, number, 0, 128) == ALLOW
    for name, (denied, errno) in refused(machine).items():
        assert run(bound, ARCHES[machine], denied) == errno, name


CONDITIONS: dict[Condition, Callable[[int, Sequence[int]], bool]] = {
    Condition.HAS_A_BIT: lambda value, bits: any(value & bit for bit in bits),
    Condition.IS_ONE_OF: lambda value, values: value in values,
    Condition.IS_NONE_OF: lambda value, values: value not in values,
}


@given(st.sampled_from(list(ARCHES)), st.data())
def test_each_call_has_the_verdict_of_the_tables(machine: str, data: st.DataObject) -> None:
    always = dict(refused(machine).values())
    examined = {call.numbers[column(machine)]: call for call in seccomp.EXAMINED.values()}
    listed = st.sampled_from([*always, *examined])
    number = data.draw(st.one_of(listed, st.integers(0, 600), st.integers(0, 2**32 - 1)))
    arguments = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
    errno: int = always.get(number, ALLOW)
    if call := examined.get(number):
        value = data.draw(st.one_of(st.sampled_from(call.values), st.integers(0, 2**32 - 1)))
        arguments[call.argument] = arguments[call.argument] >> 32 << 32 | value
        errno = call.errno if CONDITIONS[call.condition](value, call.values) else ALLOW
    elif machine == "x86_64" and (number & 0x40000000 or 512 <= number < 548):
        errno = ENOSYS
    assert verdict(machine, number, *arguments) == errno


# -- Against the headers of this machine


def header_numbers(header: str) -> dict[str, int]:
    """Name -> number of the system calls in a header, by the C preprocessor; skips where there is none."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler, so no headers to compare with")
    # Which of its optional calls the generic header is to list: what arm64 sets in its asm/unistd.h.
    options = ["-D__BITS_PER_LONG=64", "-D__ARCH_WANT_SYS_CLONE3", "-D__ARCH_WANT_MEMFD_SECRET"]
    command = [compiler, "-E", "-dM", *options, "-include", header, "-x", "c", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no header {header} here")
    defined = dict(re.findall(r"^#define (__NR\w*) (\w+)$", done.stdout, re.MULTILINE))
    found = {}
    for name in defined:
        value = defined[name]
        while value in defined:
            value = defined[value]
        if name.startswith("__NR_") and value.isdigit():
            found[name.removeprefix("__NR_")] = int(value)
    return found


@pytest.mark.parametrize(
    ("machine", "header"), [("x86_64", "asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")]
)
def test_numbers_are_those_of_the_headers(machine: str, header: str) -> None:
    if machine == "x86_64" and platform.machine() != "x86_64":
        pytest.skip("the header is that of another machine")
    known = header_numbers(header)
    newest = max(known.values())
    ours = {name: number for name, (number, _) in refused(machine).items()}
    ours |= {name: number_of(machine, name) for name in seccomp.EXAMINED}
    ours |= {name: numbers[column(machine)] for name, numbers in seccomp.BOUND.items()}
    assert len(known) > 250
    assert len(set(ours.values())) == len(ours)
    for name, number in ours.items():
        if name in known or number <= newest:
            assert known.get(name) == number, name
    missing_here = {name for calls in seccomp.REFUSED.values() for name in calls} - ours.keys()
    assert not missing_here & known.keys()


# -- In the real kernel


Confined = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Confined:
    """Runs a command under the filter, in a sandbox that protects this machine should the filter fail."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        pytest.skip("bwrap (bubblewrap) is not installed")
    if platform.machine() not in ARCHES:
        pytest.skip(f"no filter for {platform.machine()}")
    scratch = str(tmp_path_factory.mktemp("scratch"))
    sandbox = [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--cap-drop", "ALL"),
        *("--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--bind", scratch, scratch, "--setenv", "TMPDIR", scratch, "--chdir", scratch),
    ]

    def run_it(*command: str, stdin: str = "", filtered: bool = True) -> subprocess.CompletedProcess[str]:
        read_end, write_end = os.pipe()
        os.write(write_end, program(platform.machine()))  # shorter than a pipe holds
        os.close(write_end)
        wrapped = [bubblewrap, *sandbox, *(["--seccomp", str(read_end)] if filtered else []), "--", *command]
        try:
            return subprocess.run(
                wrapped, input=stdin, capture_output=True, text=True, pass_fds=[read_end], check=False
            )
        finally:
            os.close(read_end)

    unfiltered = run_it("true", filtered=False)
    if unfiltered.returncode:
        pytest.skip(f"bwrap does not work here: {unfiltered.stderr.strip()}")
    return run_it


PROBE = """
import ctypes, json, sys
call = ctypes.CDLL(None, use_errno=True).syscall
for number, arguments in json.load(sys.stdin):
    ctypes.set_errno(0)
    filled = arguments + [0] * (6 - len(arguments))
    result = call(ctypes.c_long(number), *map(ctypes.c_ulong, filled))
    print(ctypes.get_errno() if result == -1 else 0)
"""


def probe(confined: Confined, calls: Sequence[tuple[int, list[int]]], filtered: bool = True) -> list[int]:
    """The errno of each call, 0 for one that was carried out."""
    done = confined(sys.executable, "-c", PROBE, stdin=json.dumps(calls), filtered=filtered)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def test_the_kernel_refuses_each_denied_call(confined: Confined) -> None:
    calls = refused(platform.machine())
    got = probe(confined, [(number, [0] * 6) for number, _ in calls.values()])
    assert dict(zip(calls, got, strict=True)) == {name: errno for name, (_, errno) in calls.items()}


def test_some_of_them_would_work_without_the_filter(confined: Confined) -> None:
    """Else the test above would prove little: EPERM is also what a process without rights gets."""
    numbers = {name: number for name, (number, _) in refused(platform.machine()).items()}
    # Harmless ones: a lower priority of its own, and new things in an IPC namespace that ends with it.
    calls: list[tuple[int, list[int]]] = [
        (numbers["setpriority"], [0, 0, 19]),
        (numbers["shmget"], [0, 4096, 0o600]),
        (numbers["msgget"], [0, 0o600]),
        (numbers["semget"], [0, 1, 0o600]),
        (number_of(platform.machine(), "personality"), [0x0040000]),
    ]
    assert probe(confined, calls, filtered=False) == [0] * len(calls)
    assert probe(confined, calls) == [Errno.EPERM] * len(calls)


def test_no_session_is_made_and_programs_that_ask_for_one_run(confined: Confined) -> None:
    script = (
        "import os, subprocess\n"
        "subprocess.run(['true'], start_new_session=True, check=True)\n"
        "if os.fork() == 0:\n"
        "    before = os.getsid(0)\n"
        "    os.setsid()\n"
        "    os.write(1, str(before == os.getsid(0)).encode())\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert confined(sys.executable, "-c", script, filtered=False).stdout == "False"
    assert confined(sys.executable, "-c", script).stdout == "True"


def test_the_kernel_examines_arguments(confined: Confined) -> None:
    """An allowed call may fail in the kernel for another reason, with an errno that the filter never uses."""
    examples = [
        (name, [*arguments[:-1], high | arguments[-1]], errno)
        for name, arguments, errno in EXAMPLES
        for high in (0, HIGH)
        if (name, errno) != ("clone", ALLOW)  # would start processes
    ]
    got = probe(confined, [(number_of(platform.machine(), name), words) for name, words, _ in examples])
    for (name, arguments, errno), found in zip(examples, got, strict=True):
        assert (found if found in (EPERM, ENOSYS, EAFNOSUPPORT) else ALLOW) == errno, (name, arguments, found)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 is x86_64's")
def test_the_kernel_refuses_x32(confined: Confined) -> None:
    numbers = [0x40000000 + 39, 0x40000000 + 521, 520, 521, 0x40000000 + 101]
    assert probe(confined, [(number, [0] * 6) for number in numbers]) == [Errno.ENOSYS] * len(numbers)


def compiled(tmp_path: Path, source: str, *options: str) -> str:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    path = tmp_path / "program.cc"
    path.write_text(source)
    binary = tmp_path / "program"
    subprocess.run([compiler, "-O1", *options, "-o", binary, path], check=True, capture_output=True)
    return str(binary)


@pytest.mark.toolchain
@pytest.mark.skipif(platform.machine() != "x86_64", reason="int 0x80 is x86_64's")
def test_the_kernel_refuses_32_bit_calls(confined: Confined, tmp_path: Path) -> None:
    source = """
        #include <cstdio>
        int main() {
            int result = 20;  // getpid in asm/unistd_32.h
            asm volatile("int $0x80" : "+a"(result) : : "memory");
            std::printf("%d", result);
        }
    """
    binary = compiled(tmp_path, source)
    if confined(binary, filtered=False).returncode:
        pytest.skip("the kernel has no 32-bit calls (CONFIG_IA32_EMULATION)")
    assert int(confined(binary, filtered=False).stdout) > 0
    assert int(confined(binary).stdout) == -Errno.ENOSYS


# -- What bots are written in


CPLUSPLUS = """
#include <atomic>
#include <cstdio>
#include <sched.h>
#include <future>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>
int main() {
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;
    for (int i = 1; i <= 8; i++) threads.emplace_back([&sum, i] { sum += i; });
    for (auto& thread : threads) thread.join();
    sum += std::async(std::launch::async, [] { return 6; }).get();
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) || sched_setaffinity(0, sizeof all, &all)) return 2;
    int status = 0;
    if (fork() == 0) _exit(7);
    wait(&status);
    FILE* pipe = popen("echo 5", "r");
    int five = 0;
    if (std::fscanf(pipe, "%d", &five) != 1) return 3;
    pclose(pipe);
    std::printf("%d %d %d", sum.load(), WEXITSTATUS(status), five);
}
"""

JAVA = """
import java.util.concurrent.*;
import java.util.stream.*;
public class Program {
    public static void main(String[] arguments) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        int sum = 0;
        for (var part : pool.invokeAll(IntStream.range(0, 8)
                .mapToObj(i -> (Callable<Integer>) () -> i).collect(Collectors.toList()))) sum += part.get();
        pool.shutdown();
        var slow = new Thread(() -> {});
        slow.setPriority(Thread.MIN_PRIORITY);
        slow.start();
        slow.join();
        long parallel = LongStream.range(0, 100000).parallel().sum();
        System.gc();
        var echo = new ProcessBuilder("echo", "5").start();
        var five = new String(echo.getInputStream().readAllBytes()).trim();
        try (var server = new java.net.ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress())) {
            System.out.print(sum + " " + parallel + " " + five + " " + (server.getLocalPort() > 0));
        }
    }
}
"""

NODE = """
const { Worker } = require('worker_threads');
const { execSync } = require('child_process');
const zlib = require('zlib'), fs = require('fs'), crypto = require('crypto');
const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
worker.on('message', async (answer) => {
    const five = execSync('echo 5').toString().trim();
    await new Promise((done) => zlib.gzip(crypto.randomBytes(1000), done));
    const text = await fs.promises.readFile('/proc/self/status', 'utf8');
    console.log(answer, five, /Seccomp:\\t2/.test(text));
});
"""

PYTHON = """
import asyncio, concurrent.futures, multiprocessing, subprocess, sys, threading

def double(number):
    return 2 * number

async def main():
    process = await asyncio.create_subprocess_exec("echo", "5", stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    return int(output) + await asyncio.to_thread(double, 1)

if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        threads = sum(pool.map(double, range(4)))
    processes = []
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            processes.append(sum(pool.map(double, range(5))))
    code = subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=False).returncode
    print(threads, *processes, asyncio.run(main()), code)
"""

COMMANDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    # Source, command, and output.
    "c++": (CPLUSPLUS, (), "42 7 5"),
    "node": (NODE, ("node",), "42 5 true"),
    "python": (PYTHON, (sys.executable,), "12 20 20 20 7 3"),
    **{
        f"java {collector}": (
            JAVA,
            ("java", f"-XX:+Use{collector}GC", "-XX:-UsePerfData"),
            "28 4999950000 5 true",
        )
        for collector in ("G1", "Serial", "Parallel")
    },
}


@pytest.mark.toolchain
@pytest.mark.parametrize("name", COMMANDS)
def test_programs_with_threads_and_processes_run(confined: Confined, tmp_path: Path, name: str) -> None:
    source, command, output = COMMANDS[name]
    if not command:
        command = (compiled(tmp_path, source, "-std=c++17", "-pthread"),)
    else:
        if shutil.which(command[0]) is None or (name.startswith("java") and shutil.which("javac") is None):
            pytest.skip(f"needs {command[0]}")
        path = tmp_path / ("Program.java" if name.startswith("java") else "program")
        path.write_text(source)
        command = (str(shutil.which(command[0])), *command[1:], str(path))
    done = confined(*command)
    assert (done.returncode, done.stdout.strip()) == (0, output), done.stderr
