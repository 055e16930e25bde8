"""Detection of the best sandbox of this host, by running it, and the obstacle to a better one."""

import errno
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from referee.errors import RefereeError
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.sandbox.bubblewrap import GO, READY, Sandbox, Tier, Tools, limiting
from referee.sandbox.cgroup import CgroupError, delegated_group, missing_controllers

PROBE_LIMIT_S = 20.0
"""Seconds to wait for a sandbox, which starts within 20 ms; games are not possible on a slower host."""
TRIES = 3
"""Maximum number of runs of a probe: one that was killed, as on a host without memory, shows nothing."""
LACKING = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)
"""Errors at the start of a process when a host lacks memory, processes or descriptors for a moment."""
PAUSE_S = 0.2
"""Seconds before a killed probe is run again: enough for another program to free its memory when it ends."""
OLDEST_BWRAP = (0, 8)
"""The first version of bubblewrap with --disable-userns."""
REQUIRED, AUTO, OFF = "required", "auto", "off"
MODES = (REQUIRED, AUTO, OFF)
"""Sandbox modes: a sandbox for hostile bots is required; the best available one; none."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The best sandbox, and the obstacle to a better one."""

    sandbox: Sandbox
    why_not_better: str = ""
    """The reason that no better tier works, or the part that the best one lacks; else empty."""
    advice: str = ""
    """The command that would help; empty if none is known."""


class SandboxError(ValueError):
    """The requested sandbox is not available; the message gives the reason and a remedy."""


def find_sandbox(mode: str) -> Sandbox:
    """Return the sandbox for a mode.  Raises SandboxError if one is required and bots cannot be confined."""
    if mode == OFF:
        return Sandbox()
    found = probe()
    if mode == REQUIRED and not found.sandbox.tier.confines:
        advice = f"; try: {found.advice}" if found.advice else ""
        raise SandboxError(f"a sandbox is required, and there is none: {found.why_not_better}{advice}")
    return found.sandbox


@lru_cache(maxsize=1)
def probe() -> Probe:
    """Detect the best sandbox, once in a process."""
    tools = Tools(*(shutil.which(name) or "" for name in ("bwrap", "setpriv", "prlimit")))
    if sys.platform != "linux":
        return Probe(
            Sandbox(Tier.WEAK),
            f"bots can be confined on Linux only, and this is {sys.platform}",
            "play in a Linux virtual machine",
        )
    problem, advice = _bubblewrap_problem(tools)
    if NO_HOST_NAME in problem:
        tools = replace(tools, host_name="")
        problem, advice = _bubblewrap_problem(tools)
    if problem:
        return Probe(_weak(tools), problem, advice)
    try:
        group = delegated_group()
    except CgroupError as error:
        return Probe(Sandbox(Tier.BUBBLEWRAP, tools), str(error), _delegate())
    best = Sandbox(Tier.CGROUP, tools, group)
    obstacle = _try(best)
    if obstacle is not None:
        return Probe(
            Sandbox(Tier.BUBBLEWRAP, tools),
            f"a bot's control group does not work here ({obstacle})",
            _delegate(),
        )
    missing = missing_controllers(group)
    if not missing:
        return Probe(best)
    return Probe(best, "; ".join(WITHOUT[name] for name in missing), _delegate_processors())


WITHOUT = {
    "cpu": "the controller cpu is not delegated, so that bots share the processors thread by thread",
    "cpuset": "the controller cpuset is not delegated, so that refused system calls alone hold own_core",
}
"""The gap without each optional controller."""


def _delegate_processors() -> str:
    """Return the command that delegates controllers of the processors to users, from their next login on.

    Empty where systemd does not run the system, or has refused them to root.
    """
    if not Path("/run/systemd/system").is_dir() or os.geteuid() == 0:
        return ""
    folder = "/etc/systemd/system/user@.service.d"
    setting = "[Service]\\nDelegate=cpu cpuset io memory pids\\n"
    commands = f'mkdir -p {folder}; printf "{setting}" >{folder}/kalarena.conf; systemctl daemon-reload'
    return f"sudo sh -c '{commands}'"


def _delegate() -> str:
    """Return the command that delegates a control group; empty where systemd does not run the system."""
    if not Path("/run/systemd/system").is_dir():
        return ""
    return f"systemd-run {'' if os.geteuid() == 0 else '--user '}--scope -p Delegate=yes kalarena ..."


def _bubblewrap_problem(tools: Tools) -> tuple[str, str]:
    """Return why bubblewrap cannot be used, and a command that helps; empty texts if it can be used."""
    if not tools.bwrap:
        return "bubblewrap (bwrap) is not installed", _install("bubblewrap")
    if not tools.prlimit or not tools.setpriv:
        return "prlimit and setpriv of util-linux are not installed", _install("util-linux")
    version = _version(tools.bwrap)
    if version < OLDEST_BWRAP:
        shown = ".".join(map(str, version))
        return (
            f"bubblewrap 0.8 or newer is needed (Debian 12 and Ubuntu 24.04 have it), and {tools.bwrap} "
            f"is {shown}",
            _upgrade(),
        )
    obstacle = _try(Sandbox(Tier.BUBBLEWRAP, tools))
    if obstacle is None:
        return "", ""
    return f"bubblewrap cannot make its namespaces here ({obstacle})", _unlock(obstacle)


def _weak(tools: Tools) -> Sandbox:
    """Return the weak tier with those of the tools that work on this host."""
    for name, command in (
        ("setpriv", ["--pdeathsig", "KILL", "--", "true"]),
        ("prlimit", [*limiting(tools, Limits(), confined=False), "true"][1:]),
    ):
        program = getattr(tools, name)
        # Another make (busybox), or too old a version, does not know the options.
        if program and _outcome(partial(_run, (program, *command))).status != 0:
            tools = replace(tools, **{name: ""})
    return Sandbox(Tier.WEAK, tools)


def _install(package: str) -> str:
    for program, command in (
        ("apt-get", "apt-get install -y"),
        ("dnf", "dnf install -y"),
        ("pacman", "pacman -S"),
        ("zypper", "zypper install"),
        ("apk", "apk add"),
    ):
        if shutil.which(program):
            return f"{'' if os.geteuid() == 0 else 'sudo '}{command} {package}"
    return f"install the package {package}"


def _upgrade() -> str:
    """Return the command that installs a newer bubblewrap: Debian 11 has it among its backports."""
    command = _install("bubblewrap")
    try:
        release = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        release = ""
    if "VERSION_CODENAME=bullseye" in release:
        return command.replace(" install ", " install -t bullseye-backports ")
    return command


APPARMOR_PROFILE = "bwrap-userns-restrict"
"""Profile of Ubuntu's package apparmor-profiles: allows bubblewrap, and no other program, what it needs."""
SETTINGS = (
    ("kernel/apparmor_restrict_unprivileged_userns", "0", "0"),  # Ubuntu from 24.04 on
    ("kernel/unprivileged_userns_clone", "1", "1"),  # Debian up to 10
    ("user/max_user_namespaces", "", "15000"),  # 0 on hardened systems
)
"""Paths below /proc/sys: a setting, the one value that allows user namespaces (empty: any but 0), the value
to set."""


def _unlock(error: str) -> str:
    """Return the command that makes namespaces possible, if the obstacle is known.

    A user's bubblewrap needs user namespaces.  Root's makes none; it needs CAP_SYS_ADMIN, which can be
    missing only in a container.
    """
    as_root = os.geteuid() == 0
    for setting, allows, wanted in () if as_root else SETTINGS:
        try:
            found = Path("/proc/sys", setting).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if found == allows or (not allows and found != "0"):
            continue
        profile = Path("/usr/share/apparmor/extra-profiles", APPARMOR_PROFILE)
        loaded = Path("/etc/apparmor.d", APPARMOR_PROFILE)
        if "apparmor" in setting and profile.exists() and not loaded.exists():
            return f"sudo cp {profile} {loaded.parent}/ && sudo apparmor_parser -r {loaded}"
        return f"sudo sysctl -w {setting.replace('/', '.')}={wanted}"
    refused = any(words in error for words in REFUSALS)
    if refused and Path("/run/.containerenv").exists():
        # Podman's filter allows the namespaces, but Podman covers parts of /proc, so that no new /proc can be
        # mounted in a user's namespace.
        return f"podman run {'--cap-add SYS_ADMIN' if as_root else '--security-opt unmask=ALL'} ..."
    if refused and Path("/.dockerenv").exists():
        # Docker's own filter refuses pivot_root, its AppArmor profile mounts; it hides parts of /proc, and
        # beside that a user's namespace may mount no whole one.
        last = "--cap-add SYS_ADMIN" if as_root else "--security-opt systempaths=unconfined"
        return f"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined {last} ..."
    return ""


REFUSALS = ("Operation not permitted", "Permission denied", "No permissions")
"""Texts in bubblewrap's error messages when it lacks a permission."""
NO_HOST_NAME = "Can't set hostname"
"""Text in bubblewrap's error message when only the host name of the sandbox cannot be set."""


def _version(bwrap: str) -> tuple[int, ...]:
    done = _outcome(partial(_run, (bwrap, "--version")))
    return tuple(int(number) for number in re.findall(r"\d+", done.output)) or (0,)


def _try(sandbox: Sandbox) -> str | None:
    """Run an empty program as a bot would be run; return the error, or None."""
    done = _outcome(partial(run_as_bot, sandbox, (shutil.which("true") or "/bin/true",)))
    if done.status == 0:
        return None
    lines = done.errors.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


@dataclass(frozen=True, slots=True)
class Run:
    """Outcome of a program."""

    status: int | None
    """Exit status, negative for a signal's number; None if it did not start or end, see ``errors``."""
    output: str
    errors: str
    seconds: float
    """Wall time of the program and all that confines it."""
    error_number: int | None = None
    """Number of the system's error if the program did not start; None if there is none."""

    @property
    def is_inconclusive(self) -> bool:
        """True if the host lacked something, or a signal ended the program or the one that confined it."""
        # Shells and bubblewrap add 128 to a signal's number.
        was_killed = self.status is not None and not 0 <= self.status <= 128
        return was_killed or self.error_number in LACKING


def _outcome(run_probe: Callable[[], Run]) -> Run:
    """Return the outcome of a probe, which is run again while it is inconclusive."""
    for _ in range(TRIES - 1):
        done = run_probe()
        if not done.is_inconclusive:
            return done
        time.sleep(PAUSE_S)
    return run_probe()


def _run(command: tuple[str, ...], **options: Any) -> Run:
    """Run a command to its end, and return the outcome.  ``options`` are those of ``subprocess.run``."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_LIMIT_S,
            check=False,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        number = error.errno if isinstance(error, OSError) else None
        return Run(None, "", str(error), time.monotonic() - began, number)
    return Run(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def run_as_bot(sandbox: Sandbox, command: tuple[str, ...], reads: tuple[str, ...] = ()) -> Run:
    """Run a command to its end as a bot made of the files ``reads``, and return the outcome."""
    player = Player("probe", command, "/", reads=reads)
    try:
        confined = sandbox.confine(player, Limits(), os.environb)
    except (RefereeError, ValueError, OSError) as error:
        cause = error.__cause__ or error
        return Run(None, "", str(error), 0.0, cause.errno if isinstance(cause, OSError) else None)
    try:
        done = _run(
            confined.command,
            cwd=confined.cwd,
            env=confined.environment,
            input=GO.decode() if sandbox.tier.confines else "",
            pass_fds=confined.descriptors,
        )
    finally:
        confined.close()
        confined.close_status_pipe()
        if confined.group is not None:
            confined.group.kill()
        confined.release()
    return replace(done, output=done.output.removeprefix(READY.decode()))
