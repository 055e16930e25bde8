"""A virtual machine that sees the files of this host, with a kernel whose settings may be changed.

It is emulated in software (no KVM is needed): it boots in 12 to 20 s, and runs 10 to 50 times slower than the
host.  The guest has the host's files below an overlay in memory: what it writes is gone with it, except on
its disks.  It has no network but loopback, and a mounted cgroup v2 with all controllers.

The kernel is Debian's, from the package that ``linux-image-amd64`` depends on; it is unpacked once, into a
cache.
"""

import base64
import gzip
import lzma
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.paths import REPOSITORY_ROOT

if TYPE_CHECKING:
    from tests.vm.disk import Disk

CACHE_VARIABLE = "KALARENA_VM_CACHE"
"""Environment variable with the folder of the kernel and of the first file system."""
PROGRAMS = (
    *("qemu-system-x86_64", "busybox", "cpio", "apt-get", "dpkg"),
    *("mkfs.ext4", "e2fsck", "debugfs"),
)
PACKAGES = "qemu-system-x86 busybox-static cpio e2fsprogs"
KERNEL = "linux-image-amd64"
MODULES = (
    *("virtio", "virtio_ring", "virtio_pci", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_blk"),
    *("netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay"),
    *("ext4", "jbd2", "mbcache", "crc16", "crc32c_generic", "libcrc32c"),
)
"""Modules of the kernel for the host's files and for disks; some are built in, depending on the version."""
STATUS = "KALARENA-VM-STATUS"
MEMORY_MB, CPUS = 2048, 2
BOOT_FAILED = 125
CONTROL = re.compile(r"\x1bc|\x1b\[[0-9;?]*[A-Za-z]|\r")
"""Control sequences that the firmware writes to the console."""

INIT = """\
#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
for pass in 1 2 3 4; do for m in /mod/*.ko; do $B insmod $m 2>/dev/null; done; done   # each needs others
$B mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=512000,cache=loose host /host || echo "no host files"
$B mount -t tmpfs tmp /run; $B mkdir -p /run/up /run/work
$B mount -t overlay -o lowerdir=/host,upperdir=/run/up,workdir=/run/work over /new
$B mount -t proc proc /new/proc; $B mount -t sysfs sys /new/sys; $B mount -t devtmpfs dev /new/dev
$B mkdir -p /new/dev/pts /new/dev/shm; $B mount -t devpts pts /new/dev/pts; $B mount -t tmpfs shm /new/dev/shm
$B mount -t tmpfs run /new/run
$B mount -t cgroup2 cgroup /new/sys/fs/cgroup
$B ifconfig lo 127.0.0.1 up
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
$B cp $B /new/run/busybox
$B sed -n 's,.* run=\\([A-Za-z0-9+/=]*\\).*,\\1,p' /proc/cmdline | $B base64 -d >/new/run/command
# Not chroot: a process that is in one may make no user namespaces.
exec $B switch_root /new /bin/sh -c \
  '/bin/sh /run/command; echo "KALARENA-VM-STATUS $?"; sync; /run/busybox poweroff -f'
"""


class MachineError(Exception):
    """The machine could not be made or did not run its program to the end."""


def needs_machine() -> None:
    """Skip a test where no machine can be booted; fail in CI or with KALARENA_REQUIRE_VM=1."""
    missing = [name for name in PROGRAMS if find_program(name) is None]
    reason = f"no virtual machine without {', '.join(missing)}: apt-get install {PACKAGES}" if missing else ""
    if os.uname().machine != "x86_64":
        reason = "the virtual machine has the kernel of x86_64"
    if not reason:
        return
    if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_VM") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def find_program(name: str) -> str | None:
    """Return the path of a program, which may be one of the system's administrator."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def prepared() -> Path:
    """Return the folder with the kernel and the first file system, which are made if they are missing."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path(home, "kalarena-vm-tests"))
    initrd = folder / "initrd"
    # One that another version of this file has made is made again.
    if initrd.exists() and initrd.stat().st_mtime > Path(__file__).stat().st_mtime:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        kernel = _unpacked_kernel(folder, Path(work))
        root = Path(work, "root")
        for name in ("bin", "mod", "host", "proc", "sys", "dev", "run", "new"):
            (root / name).mkdir(parents=True)
        shutil.copy(find_program("busybox") or "", root / "bin" / "busybox")
        for path in (kernel / "lib").rglob("*.ko*"):
            if path.name.partition(".")[0] in MODULES:
                unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)
                (root / "mod" / f"{path.name.partition('.')[0]}.ko").write_bytes(unpack(path.read_bytes()))
        (root / "init").write_text(INIT)
        (root / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        packed = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"],
            cwd=root,
            input=names.encode(),
            stdout=subprocess.PIPE,
            check=True,
        )
        shutil.copy(next((kernel / "boot").glob("vmlinuz-*")), folder / "vmlinuz")
        (Path(work) / "initrd").write_bytes(gzip.compress(packed.stdout, 1))
        (Path(work) / "initrd").rename(initrd)
    return folder


def _unpacked_kernel(folder: Path, work: Path) -> Path:
    """Return a folder with the files of the kernel's package, which is downloaded once."""
    packages = sorted(folder.glob("linux-image-*.deb"))
    if not packages:
        shown = subprocess.run(["apt-cache", "depends", KERNEL], capture_output=True, text=True, check=False)
        found = re.search(r"Depends: (linux-image-\S+)", shown.stdout)
        if found is None:
            raise MachineError(f"apt knows no package {KERNEL} (try: apt-get update)")
        command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", found[1]]
        subprocess.run(command, cwd=work, check=True)
        for path in work.glob("*.deb"):
            path.rename(folder / path.name)
        packages = sorted(folder.glob("linux-image-*.deb"))
    subprocess.run(["dpkg", "-x", str(packages[-1]), str(work / "kernel")], check=True)
    return work / "kernel"


class Machine:
    """A running machine, which runs one command as root and then switches itself off.

    Args:
        command: The program and its arguments, run in the repository's folder of the guest.
        disks: Disks that the guest sees as /dev/vda, /dev/vdb, ...
        parameters: More parameters of the kernel's command line.
    """

    def __init__(self, command: Sequence[str], *, disks: "Sequence[Disk]" = (), parameters: str = "") -> None:
        folder = prepared()
        # The path is for programs that import nothing from the current directory, as the check's worker.
        root = shlex.quote(str(REPOSITORY_ROOT))
        script = f"cd {root} && PYTHONPATH={root} exec {shlex.join(command)}"
        encoded = base64.b64encode(script.encode()).decode()
        self._process = subprocess.Popen(
            [
                *("nice", "-n", "10"),
                *("qemu-system-x86_64", "-M", "q35", "-cpu", "max", "-accel", "tcg,thread=multi"),
                *("-smp", str(CPUS), "-m", str(MEMORY_MB), "-nographic", "-no-reboot", "-net", "none"),
                *("-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initrd")),
                *(word for number, disk in enumerate(disks) for word in disk.options(f"disk{number}")),
                *("-append", f"console=ttyS0 quiet loglevel=1 panic=-1 {parameters} run={encoded} "),
                *("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self._rest = b""
        self.cut_at: float | None = None
        """The moment of ``time.monotonic`` at which ``lines`` cuts the machine off; None for never."""
        self.log: list[str] = []
        """The lines of the console so far."""
        self.status: int | None = None
        """Exit status of the command, once it has ended."""

    def lines(self, limit_s: float) -> Iterator[str]:
        """Yield the lines of the console until the machine has ended, or is cut off at ``cut_at``.

        Raises MachineError if neither is within the time limit; the machine is cut off then.
        """
        assert self._process.stdout is not None
        until = time.monotonic() + limit_s
        descriptor = self._process.stdout.fileno()
        while True:
            planned = self.cut_at
            wake = until if planned is None else min(until, planned)
            if not select.select([descriptor], [], [], max(0.0, wake - time.monotonic()))[0]:
                self.cut()
                if planned is not None and planned < until:
                    return
                raise MachineError(f"no end after {limit_s:g} s:\n" + "\n".join(self.log[-30:]))
            data = os.read(descriptor, 65536)
            if not data:
                self._process.wait()
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                text = CONTROL.sub("", line.decode("utf-8", "replace"))
                self.log.append(text)
                if text.startswith(STATUS):
                    self.status = int(text.split()[1])
                else:
                    yield text

    def cut(self) -> None:
        """Cut the machine off, as when the power fails.  What it has not flushed to its disks is lost."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def run(module: str, *arguments: str, limit_s: float) -> list[str]:
    """Run a Python module of this repository in a machine and return the lines of the console."""
    machine = Machine([sys.executable, "-m", module, *arguments])
    lines = []
    try:
        for line in machine.lines(limit_s):
            lines.append(line)
            print(line, flush=True)
    finally:
        machine.cut()
    if machine.status != 0:
        status = "no status" if machine.status is None else f"status {machine.status}"
        raise MachineError(f"{module} ended with {status}:\n" + "\n".join(machine.log[-40:]))
    return lines
