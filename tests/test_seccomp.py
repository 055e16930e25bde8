"""The system call filter: its verdicts, worked out by an interpreter, and what the real kernel does."""

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
"""What a bypass would put into the upper half of an argument."""
ALLOW = "allow"


def column(machine: str) -> int:
    return list(ARCHES).index(machine)


def refused(machine: str) -> list[tuple[str, int, Errno]]:
    """Name, number and errno of all calls that are always denied."""
    return [
        (name, number, errno)
        for errno, calls in seccomp.REFUSED.items()
        for name, numbers in calls.items()
        if (number := numbers[column(machine)]) is not None
    ]


def number_of(machine: str, name: str) -> int:
    return seccomp.EXAMINED[name].numbers[column(machine)]


# -- An interpreter of classic BPF, as far as the kernel lets a seccomp filter use it


def run(code: bytes, arch: int, number: int, arguments: Sequence[int] = ()) -> str:
    """The verdict on one call: ALLOW, or the name of an errno."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    seen = struct.pack("<IIQ6Q", number, arch, 0x7F0000000000, *filled)
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
            case 0x06 if value == 0x7FFF0000:
                return ALLOW
            case 0x06:
                assert value >> 16 == 0x0005, f"neither allowed nor an errno: {value:#x}"
                return Errno(value & 0xFFFF).name
            case _:
                raise AssertionError(f"unknown instruction {operation:#x}")


def verdict(machine: str, number: int, *arguments: int) -> str:
    return run(program(machine), ARCHES[machine], number, arguments)


@pytest.mark.parametrize("machine", ARCHES)
def test_the_kernel_would_load_it(machine: str) -> None:
    code = program(machine)
    instructions = list(struct.iter_unpack("<HBBI", code))
    assert len(code) % 8 == 0
    assert len(instructions) <= 4096  # BPF_MAXINSNS, linux/bpf_common.h
    for at, (operation, jump_true, jump_false, value) in enumerate(instructions, start=1):
        if operation != 0x06:
            farthest = value if operation == 0x05 else max(jump_true, jump_false)
            assert at + farthest < len(instructions)
    assert instructions[-1][0] == 0x06


def test_there_is_no_program_for_an_unknown_machine() -> None:
    assert program("arm64") == program("aarch64") != program("x86_64")
    for machine in ("riscv64", "i686", "armv7l", "AMD64", ""):
        with pytest.raises(UnsupportedMachineError, match="x86_64"):
            program(machine)


def test_what_is_denied_can_be_listed() -> None:
    assert seccomp.DENIED["clone3"] == "ENOSYS"
    assert seccomp.DENIED["socket"] == "EAFNOSUPPORT"
    assert seccomp.DENIED["ptrace"] == "EPERM"
    assert len(seccomp.DENIED) == sum(map(len, seccomp.REFUSED.values())) + len(seccomp.EXAMINED)


@pytest.mark.parametrize("machine", ARCHES)
def test_no_number_is_given_twice(machine: str) -> None:
    numbers = [number for _, number, _ in refused(machine)]
    numbers += [number_of(machine, name) for name in seccomp.EXAMINED]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("machine", ARCHES)
def test_refused_calls_fail_whatever_their_arguments(machine: str) -> None:
    for name, number, errno in refused(machine):
        for arguments in ([0] * 6, [2**64 - 1] * 6, [HIGH] * 6):
            assert verdict(machine, number, *arguments) == errno.name, name


@pytest.mark.parametrize("machine", ARCHES)
@pytest.mark.parametrize("high", [0, HIGH])
def test_clone_may_make_threads_and_processes_but_no_namespaces(machine: str, high: int) -> None:
    clone = number_of(machine, "clone")
    thread, fork, vfork, sigchld = 0x3D0F00, 0x01200011, 0x4111, 17
    for flags in (thread, fork, vfork, sigchld, 0):
        assert verdict(machine, clone, high | flags) == ALLOW
    for bit in (17, 25, 26, 27, 28, 29, 30):
        assert verdict(machine, clone, high | 1 << bit | sigchld) == "EPERM"
    assert verdict(machine, clone, sigchld, 2**64 - 1, 2**64 - 1) == ALLOW


@pytest.mark.parametrize("machine", ARCHES)
@pytest.mark.parametrize("high", [0, HIGH])
@pytest.mark.parametrize("name", ["socket", "socketpair"])
def test_sockets_are_local_or_of_the_internet(machine: str, name: str, high: int) -> None:
    number = number_of(machine, name)
    for domain in range(64):
        expected = ALLOW if domain in (1, 2, 10) else "EAFNOSUPPORT"
        assert verdict(machine, number, high | domain, 3, 99) == expected
    for domain in (1 << 8 | 1, 1 << 16 | 2, 1 << 31 | 10, 2**32 - 1):
        assert verdict(machine, number, high | domain) == "EAFNOSUPPORT"


@pytest.mark.parametrize("machine", ARCHES)
@pytest.mark.parametrize("high", [0, HIGH])
def test_terminals_take_no_typing(machine: str, high: int) -> None:
    ioctl = number_of(machine, "ioctl")
    for request in (0x5412, 0x541C, 0x5423):
        assert verdict(machine, ioctl, 0, high | request) == "EPERM"
        assert verdict(machine, ioctl, request, request + 1) == ALLOW
    tcgets, fionread, fionbio = 0x5401, 0x541B, 0x5421
    for request in (tcgets, fionread, fionbio):
        assert verdict(machine, ioctl, 0, high | request) == ALLOW


@pytest.mark.parametrize("machine", ARCHES)
@pytest.mark.parametrize("high", [0, HIGH])
def test_personality_may_be_asked_for(machine: str, high: int) -> None:
    personality = number_of(machine, "personality")
    for allowed in (0, 0xFFFFFFFF):
        assert verdict(machine, personality, high | allowed) == ALLOW
    read_implies_exec, address_no_randomize = 0x0400000, 0x0040000
    for persona in (read_implies_exec, address_no_randomize, 8, 0xFFFFFFFE):
        assert verdict(machine, personality, high | persona) == "EPERM"


@pytest.mark.parametrize("number", [0, 1, 39, 101, 317, 0x40000000])
def test_other_interfaces_do_not_exist(number: int) -> None:
    for arch in (I386, AARCH64, 0):
        assert run(program("x86_64"), arch, number) == "ENOSYS"
    for arch in (ARM, X86_64, 0):
        assert run(program("aarch64"), arch, number) == "ENOSYS"


@given(st.integers(0, 2**30 - 1), st.sampled_from([0x40000000, 0xC0000000]))
def test_x32_does_not_exist(number: int, bits: int) -> None:
    assert verdict("x86_64", number | bits) == "ENOSYS"


def test_x32_calls_do_not_exist_without_their_bit_either() -> None:
    assert [verdict("x86_64", number) for number in range(512, 548)] == ["ENOSYS"] * 36
    assert verdict("x86_64", 511) == verdict("x86_64", 548) == ALLOW
    assert verdict("aarch64", 520) == verdict("aarch64", 0x40000000) == ALLOW


@given(
    st.sampled_from(list(ARCHES)),
    st.one_of(st.integers(0, 600), st.integers(0, 2**32 - 1)),
    st.lists(st.integers(0, 2**64 - 1), max_size=6),
)
def test_what_is_not_listed_is_allowed(machine: str, number: int, arguments: list[int]) -> None:
    listed = {number: errno.name for _, number, errno in refused(machine)}
    if number in [number_of(machine, name) for name in seccomp.EXAMINED]:
        return
    if machine == "x86_64" and (number & 0x40000000 or 512 <= number < 548):
        listed[number] = "ENOSYS"
    assert verdict(machine, number, *arguments) == listed.get(number, ALLOW)


@given(st.sampled_from(list(ARCHES)), st.sampled_from(list(seccomp.EXAMINED)), st.data())
def test_examined_calls_depend_on_the_lower_half_of_one_argument(
    machine: str, name: str, data: st.DataObject
) -> None:
    call = seccomp.EXAMINED[name]
    wanted = st.one_of(st.sampled_from(call.values), st.integers(0, 2**32 - 1))
    value = data.draw(wanted)
    arguments = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
    arguments[call.argument] = arguments[call.argument] >> 32 << 32 | value
    met = {
        Condition.HAS_A_BIT: any(value & bit for bit in call.values),
        Condition.IS_ONE_OF: value in call.values,
        Condition.IS_NONE_OF: value not in call.values,
    }[call.condition]
    expected = call.errno.name if met else ALLOW
    assert verdict(machine, number_of(machine, name), *arguments) == expected


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
    ours = {name: number for name, number, _ in refused(machine)}
    ours |= {name: number_of(machine, name) for name in seccomp.EXAMINED}
    assert len(known) > 250
    for name, number in ours.items():
        if name in known or number <= newest:
            assert known.get(name) == number, name
    missing_here = seccomp.DENIED.keys() - ours.keys()
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
    sandbox = ["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--cap-drop", "ALL"]
    sandbox += [
        "--new-session",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]
    sandbox += ["--bind", scratch, scratch, "--setenv", "TMPDIR", scratch, "--chdir", scratch]

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
    got = probe(confined, [(number, [0] * 6) for _, number, _ in calls])
    expected = [(name, errno) for name, _, errno in calls]
    assert list(zip([name for name, _, _ in calls], got, strict=True)) == expected


def test_some_of_them_would_work_without_the_filter(confined: Confined) -> None:
    """Else the test above would prove little: EPERM is also what a process without rights gets."""
    numbers = {name: number for name, number, _ in refused(platform.machine())}
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


@pytest.mark.parametrize("high", [0, HIGH])
def test_the_kernel_examines_arguments(confined: Confined, high: int) -> None:
    machine = platform.machine()
    expected: list[tuple[str, list[int], int]] = [
        *(("clone", [high | flag | 17], Errno.EPERM) for flag in seccomp.CLONE_NEW),
        *(("socket", [high | domain, 1], Errno.EAFNOSUPPORT) for domain in (0, 3, 16, 17, 38, 40)),
        *(("socket", [high | domain, 1], 0) for domain in (1, 2, 10)),
        ("socketpair", [high | 16, 1], Errno.EAFNOSUPPORT),
        *(("ioctl", [0, high | request], Errno.EPERM) for request in (0x5412, 0x541C, 0x5423)),
        ("ioctl", [0, high | 0x5401], 25),  # TCGETS of a pipe: ENOTTY, so that it reached the kernel
        ("personality", [high | 0xFFFFFFFF], 0),
        ("personality", [high], 0),
        ("personality", [high | 0x0040000], Errno.EPERM),
    ]
    got = probe(confined, [(number_of(machine, name), arguments) for name, arguments, _ in expected])
    assert [(name, arguments, errno) for (name, arguments, _), errno in zip(expected, got, strict=True)] == (
        expected
    )


def test_the_kernel_refuses_x32(confined: Confined) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("x32 is x86_64's")
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


def test_the_kernel_refuses_32_bit_calls(confined: Confined, tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("int 0x80 is x86_64's")
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


def says(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert (done.returncode, done.stdout.strip()) == (0, text), done.stderr


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

PERL = """
use Config;
use IPC::Open2;
my $child = fork() // die;
exit 7 if !$child;
waitpid $child, 0;
my $code = $? >> 8;
my $pid = open2(my $out, my $in, 'cat');
print $in "5\\n";
close $in;
my $five = <$out>;
waitpid $pid, 0;
my $threaded = 6;
if ($Config{useithreads}) { require threads; $threaded = threads->create(sub { 6 })->join }
chomp $five;
print "$code $five $threaded";
"""


def test_cplusplus_programs_run(confined: Confined, tmp_path: Path) -> None:
    says(confined(compiled(tmp_path, CPLUSPLUS, "-std=c++17", "-pthread")), "42 7 5")


@pytest.mark.parametrize("collector", ["G1", "Serial", "Parallel"])
def test_java_programs_run(confined: Confined, tmp_path: Path, collector: str) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("java is not installed")
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    (tmp_path / "Program.java").write_text(JAVA)
    done = confined(java, f"-XX:+Use{collector}GC", "-XX:-UsePerfData", str(tmp_path / "Program.java"))
    says(done, "28 4999950000 5 true")


def test_node_programs_run(confined: Confined) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    says(confined(node, "-e", NODE), "42 5 true")


def test_python_programs_run(confined: Confined, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PYTHON)
    says(confined(sys.executable, str(path)), "12 20 20 20 7 3")


def test_perl_programs_run(confined: Confined) -> None:
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("perl is not installed")
    says(confined(perl, "-we", PERL), "7 5 6")
