"""A real Slurm with one node for the tests: nothing of the system's is used, and nothing is left.

munged, slurmctld and slurmd run from Debian's packages (munge, slurm-client, slurmctld, slurmd) with a
configuration, ports, state and logs of their own in a temporary directory.  A process of this module watches
them: its standard input ends when the tests do, however they end, and then it ends everything.
"""

import contextlib
import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.builders import run_command

NODE = "kalarena"
QUEUE = "games"
CPUS = 2
"""Cores of the node, independent of this machine: enough for two games at a time."""
MEMORY_MB = 4000

START_LIMIT_S = 300.0
END_LIMIT_S = 60.0
POLL_S = 0.1
FIRST_PORT, FIRST_EPHEMERAL_PORT = 20_000, 32_768
"""Linux gives a program that asks for any port one from FIRST_EPHEMERAL_PORT on, by its default settings."""

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo", "squeue", "srun")

CONFIGURATION = """
ClusterName=kalarena
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
# A control group would have to be ours to make, which in a container it often is not.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
# A job is looked at as soon as it comes, and told to end at once.
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
KillWait=2
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName={queue} Nodes={node} Default=YES MaxTime=60 State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A running Slurm."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Slurm's commands, and their processes, find it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def command(self, *arguments: str) -> str:
        """The output of one of Slurm's commands."""
        done = run_command(arguments, self.folder, **self.environment)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
        return done.stdout


@contextmanager
def running_slurm() -> Iterator[Slurm]:
    """Start one.  Skips the test if Slurm is not installed; fails it where there must be one."""
    missing = [name for name in PROGRAMS if _program(name) is None]
    if missing:
        _without(f"Slurm is not installed: there is no {', '.join(missing)}")
    folder = Path(tempfile.mkdtemp(prefix="kalarena-slurm-"))
    watcher = subprocess.Popen(
        [sys.executable, "-m", "tests.engines.slurm", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Not of the tests' own group: an interrupt is for them, and they end it.  Nor in a session of its
        # own, which would be taken for what a bot has left behind, and swept (referee/process/subreaper.py).
        process_group=0,
    )
    assert watcher.stdout is not None
    try:
        said = watcher.stdout.readline()
        if said != "started\n":
            pytest.fail(f"Slurm did not start: {said}{watcher.stdout.read()}")
        yield Slurm(folder)
    finally:
        watcher.communicate(timeout=START_LIMIT_S + END_LIMIT_S)


def _program(name: str) -> str | None:
    """Its path; daemons lie where an ordinary user does not look."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _without(reason: str) -> NoReturn:
    if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_SLURM") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def watch(folder: Path) -> None:
    """Start the daemons, say so, and end them and all that they started when standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # what is to be ended must not be left alone
    # What slurmd starts for a job leaves it, and is to come to us.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        error = _started(folder, daemons)
        print(error or "started", flush=True)
        if not error:
            sys.stdin.read()
            _cancel_jobs(Slurm(folder))
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        _end_children()
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path, daemons: list[subprocess.Popen[bytes]]) -> str:
    """Start the daemons; what is wrong, empty if nothing is."""
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(1024))
    controller_port, node_port = free_ports(2)
    configuration = CONFIGURATION.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        user=getpass.getuser(),
        controller_port=controller_port,
        node_port=node_port,
        node=NODE,
        queue=QUEUE,
        cpus=CPUS,
        memory=MEMORY_MB,
    )
    (folder / "slurm.conf").write_text(configuration)
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    slurm = Slurm(folder)
    files = [f"--{what}-file={folder}/munge.{what}" for what in ("key", "log", "pid", "seed")]
    munged = ["munged", "--foreground", f"--socket={folder}/munge.socket", *files]
    controller = ["slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf"]
    node = ["slurmd", "-D", "-N", NODE, "-f", f"{folder}/slurm.conf"]
    until = time.monotonic() + START_LIMIT_S
    for command, ready in ((munged, _has_socket), (controller, _answers), (node, _is_idle)):
        path = _program(command[0])
        assert path is not None
        log = (folder / f"{command[0]}.out").open("wb")
        with log:
            daemon = subprocess.Popen(
                [path, *command[1:]],
                env={**os.environ, **slurm.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        daemons.append(daemon)
        while not ready(slurm):
            if daemon.poll() is not None or time.monotonic() > until:
                said = "".join(path.read_text(errors="replace") for path in folder.glob(f"{command[0]}.*"))
                return f"{command[0]} is not ready: {said}"
            time.sleep(POLL_S)
    return ""


def _has_socket(slurm: Slurm) -> bool:
    return (slurm.folder / "munge.socket").exists()


def _answers(slurm: Slurm) -> bool:
    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
        return bool(slurm.command("sinfo", "--noheader"))
    return False


def _is_idle(slurm: Slurm) -> bool:
    return slurm.command("sinfo", "--noheader", "--format=%t").strip() == "idle"


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody uses now, and that the system gives to no other program meanwhile."""
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            port = FIRST_PORT + secrets.randbelow(FIRST_EPHEMERAL_PORT - FIRST_PORT)
            with contextlib.suppress(OSError):  # it is in use
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                found.append(port)
    return found


def _cancel_jobs(slurm: Slurm) -> None:
    until = time.monotonic() + END_LIMIT_S
    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):  # what it does not end, we do
        slurm.command("scancel", f"--partition={QUEUE}", f"--user={getpass.getuser()}")
        while slurm.command("squeue", "--noheader") and time.monotonic() < until:
            time.sleep(POLL_S)


def _end_children() -> None:
    """End what the daemons left behind: it has come to us."""
    until = time.monotonic() + END_LIMIT_S
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while (pids := children.read_text().split()) and time.monotonic() < until:
        for pid in map(int, pids):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
