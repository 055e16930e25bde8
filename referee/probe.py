"""Which sandbox this host gives, found out by running the real thing, and why it gives no better one."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import lru_cache

from referee.cgroup import CgroupError, delegated_group
from referee.errors import RefereeError
from referee.limits import Limits
from referee.results import Player
from referee.sandbox import GO, Sandbox, Tier, Tools

PROBE_LIMIT_S = 20.0
"""A sandbox starts within 20 ms; a host that needs longer than this cannot be played on."""
OLDEST_BWRAP = (0, 8)
"""The first with --disable-userns."""
REQUIRED, AUTO, OFF = "required", "auto", "off"
MODES = (REQUIRED, AUTO, OFF)
"""What a user may ask for: a sandbox that holds a hostile bot or no game; the best that there is; none."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found."""

    sandbox: Sandbox
    why_not_better: str = ""
    """Empty if there is no better tier."""
    advice: str = ""
    """The one command that would change it; empty if none is known."""


class SandboxError(ValueError):
    """The sandbox that was asked for is not to be had; the message says why, and what to do."""


def find_sandbox(mode: str) -> Sandbox:
    """The sandbox for a mode.  Raises SandboxError if it is required, and hostile bots could not be held."""
    if mode == OFF:
        return Sandbox()
    found = probe()
    if mode == REQUIRED and not found.sandbox.tier.confines:
        advice = f"; try: {found.advice}" if found.advice else ""
        raise SandboxError(f"a sandbox is required, and there is none: {found.why_not_better}{advice}")
    return found.sandbox


@lru_cache(maxsize=1)
def probe() -> Probe:
    """Find out, once in a process."""
    tools = Tools(*(shutil.which(name) or "" for name in ("bwrap", "setpriv", "prlimit")))
    if sys.platform != "linux":
        return Probe(
            Sandbox(Tier.WEAK),
            f"bots can be confined on Linux only, and this is {sys.platform}",
            "play in a Linux virtual machine",
        )
    problem, advice = _bubblewrap_problem(tools)
    if problem:
        return Probe(_weak(tools), problem, advice)
    try:
        group = delegated_group()
    except CgroupError as error:
        return Probe(Sandbox(Tier.BUBBLEWRAP, tools), str(error), _DELEGATE)
    best = Sandbox(Tier.CGROUP, tools, group)
    said = _try(best)
    if said is not None:
        return Probe(
            Sandbox(Tier.BUBBLEWRAP, tools), f"a bot's control group does not work here ({said})", _DELEGATE
        )
    return Probe(best)


_DELEGATE = f"systemd-run {'' if os.geteuid() == 0 else '--user '}--scope -p Delegate=yes kalarena ..."


def _bubblewrap_problem(tools: Tools) -> tuple[str, str]:
    """Why bubblewrap cannot be used, and the command that would change it; empty texts if it can."""
    if not tools.bwrap:
        return "bubblewrap (bwrap) is not installed", _install("bubblewrap")
    if not tools.prlimit or not tools.setpriv:
        return "prlimit and setpriv of util-linux are not installed", _install("util-linux")
    version = _version(tools.bwrap)
    if version < OLDEST_BWRAP:
        return f"bubblewrap 0.8 or newer is needed, and {tools.bwrap} is older", _install("bubblewrap")
    said = _try(Sandbox(Tier.BUBBLEWRAP, tools))
    if said is None:
        return "", ""
    return f"bubblewrap cannot make its namespaces here ({said})", _unlock(said)


def _weak(tools: Tools) -> Sandbox:
    """The weak tier, with those of the tools that do what is asked of them here."""
    for name, command in (
        ("setpriv", ["--pdeathsig", "KILL", "--", "true"]),
        ("prlimit", ["--core=0", "true"]),
    ):
        program = getattr(tools, name)
        if program:
            done = subprocess.run(
                [program, *command], capture_output=True, timeout=PROBE_LIMIT_S, check=False
            )
            if done.returncode:  # of another make (busybox), or too old
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


def _unlock(said: str) -> str:
    """What makes user namespaces possible, where it is known what forbids them."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    for setting, wanted in (
        ("kernel/apparmor_restrict_unprivileged_userns", "0"),  # Ubuntu 24.04
        ("kernel/unprivileged_userns_clone", "1"),  # Debian up to 10
    ):
        try:
            with open(f"/proc/sys/{setting}", encoding="ascii") as file:  # noqa: PTH123 - as short as can be
                found = file.read().strip()
        except OSError:
            continue
        if found != wanted:
            return f"{sudo}sysctl -w {setting.replace('/', '.')}={wanted}"
    if "Operation not permitted" in said or "Permission denied" in said:
        return (
            "in a container: run it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
        )
    return ""


def _version(bwrap: str) -> tuple[int, ...]:
    try:
        said = subprocess.run(
            [bwrap, "--version"], capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0,)
    return tuple(int(number) for number in re.findall(r"\d+", said.stdout)) or (0,)


def _try(sandbox: Sandbox) -> str | None:
    """Run a program that does nothing as a bot would be run; what went wrong, or None."""
    program = shutil.which("true") or "/bin/true"
    player = Player("probe", (program,), "/")
    try:
        confined = sandbox.confine(0, player, Limits(), os.environb)
    except (RefereeError, ValueError, OSError) as error:
        return str(error)
    try:
        done = subprocess.run(
            confined.command,
            cwd=confined.cwd,
            env=confined.environment,
            input=GO.decode(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_LIMIT_S,
            pass_fds=confined.descriptors,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        confined.close()
        confined.close_status()
        if confined.group is not None:
            confined.group.remove()
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"exit status {done.returncode}"
