"""`kalarena doctor`: detection of the sandbox on made-up hosts, the report, and a real run."""

import errno
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from referee.sandbox import detection, reaper
from referee.sandbox.bubblewrap import Sandbox, Tier, Tools
from referee.sandbox.cgroup import CgroupError
from referee.sandbox.detection import Probe, Run, SandboxError, find_sandbox, probe
from tests.support.builders import invoke, kalarena, one_object
from tests.support.confinement import needs_sandbox
from tournaments.cli import doctor
from tournaments.cli.doctor import Health, examine, report


class Host:
    """A host as the probe sees it; by default an ordinary user's on which all works but control groups."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs = {"bwrap", "setpriv", "prlimit", "apt-get", "true"}
        self.user = 1000
        self.version: tuple[int, ...] = (0, 8, 0)
        self.refusal = ""
        self.next_runs: list[Run] = []
        """Outcomes of the next probes; the others are as the host is."""
        self.names_refusal = ""
        """Error message of bubblewrap if it is to set a host name."""
        self.files: dict[str, str] = {}
        self.platform = "linux"
        self.missing: list[str] | None = None
        """Controllers of the processors that are not delegated; None if no group is."""
        self._patch = monkeypatch
        monkeypatch.setattr(shutil, "which", self._which)
        monkeypatch.setattr(os, "geteuid", lambda: self.user)
        monkeypatch.setattr(detection, "_version", lambda _program: self.version)
        monkeypatch.setattr(detection, "run_as_bot", self._run)
        monkeypatch.setattr(detection, "PAUSE_S", 0.0)
        monkeypatch.setattr(detection, "delegated_group", self._group)
        monkeypatch.setattr(detection, "missing_controllers", lambda _group: self.missing)
        monkeypatch.setattr(detection, "_weak", lambda tools: Sandbox(Tier.WEAK, tools))
        monkeypatch.setattr(detection, "Path", lambda *parts: _FakePath(self.files, Path(*parts)))

    def _which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.programs else None

    def _run(self, sandbox: Sandbox, *_: Any) -> Run:
        if self.next_runs:
            return self.next_runs.pop()
        refusal = self.refusal or (self.names_refusal if sandbox.tools.host_name else "")
        return Run(1, "", refusal, 0.01) if refusal else Run(0, "", "", 0.01)

    def _group(self) -> str:
        if self.missing is None:
            raise CgroupError("no control group was delegated to us")
        return "/sys/fs/cgroup/delegated"

    def probe(self) -> Probe:
        self._patch.setattr(sys, "platform", self.platform)
        try:
            return probe.__wrapped__()
        finally:
            self._patch.setattr(sys, "platform", "linux")


class _FakePath:
    """A path on a host that has these files and no others."""

    def __init__(self, files: dict[str, str], path: Path) -> None:
        self._files = files
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @property
    def parent(self) -> Path:
        return self._path.parent

    def exists(self) -> bool:
        return str(self._path) in self._files

    is_dir = exists

    def read_text(self, **_: str) -> str:
        if not self.exists():
            raise FileNotFoundError(str(self._path))
        return self._files[str(self._path)]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    probe.cache_clear()
    yield Host(monkeypatch)
    probe.cache_clear()


def test_a_host_without_control_groups(host: Host) -> None:
    found = host.probe()
    assert found.sandbox.tier is Tier.BUBBLEWRAP
    assert (found.why_not_better, found.advice) == ("no control group was delegated to us", "")
    host.files["/run/systemd/system"] = ""
    assert host.probe().advice == "systemd-run --user --scope -p Delegate=yes kalarena ..."
    host.user = 0
    assert host.probe().advice == "systemd-run --scope -p Delegate=yes kalarena ..."


def test_a_host_with_control_groups(host: Host) -> None:
    host.files["/run/systemd/system"] = ""
    host.missing = []
    found = host.probe()
    assert found.sandbox.tier is Tier.CGROUP
    assert (found.why_not_better, found.advice) == ("", "")
    host.missing = ["cpuset"]
    found = host.probe()
    assert found.sandbox.tier is Tier.CGROUP
    assert found.why_not_better == (
        "the controller cpuset is not delegated, so that refused system calls alone hold own_core"
    )
    assert "Delegate=cpu cpuset io memory pids" in found.advice
    host.user = 0
    host.missing = ["cpu", "cpuset"]
    found = host.probe()
    assert found.why_not_better.startswith("the controller cpu is not delegated, ")
    assert "; the controller cpuset is not delegated, " in found.why_not_better
    assert found.advice == ""


@pytest.mark.parametrize(
    ("missing", "user", "advice"),
    [
        ("bwrap", 1000, "sudo apt-get install -y bubblewrap"),
        ("prlimit", 1000, "sudo apt-get install -y util-linux"),
        ("setpriv", 1000, "sudo apt-get install -y util-linux"),
        ("bwrap apt-get", 1000, "install the package bubblewrap"),
        ("bwrap apt-get +dnf", 0, "dnf install -y bubblewrap"),
    ],
)
def test_a_program_is_missing(host: Host, missing: str, user: int, advice: str) -> None:
    for name in missing.split():
        if name.startswith("+"):
            host.programs.add(name[1:])
        else:
            host.programs.remove(name)
    host.user = user
    found = host.probe()
    assert found.sandbox.tier is Tier.WEAK
    assert "not installed" in found.why_not_better
    assert found.advice == advice
    with pytest.raises(SandboxError, match=f"not installed; try: {advice}"):
        find_sandbox("required")


def test_bubblewrap_is_too_old(host: Host) -> None:
    host.version = (0, 4, 1)
    found = host.probe()
    assert found.sandbox.tier is Tier.WEAK
    assert "0.8 or newer is needed" in found.why_not_better
    assert "/usr/bin/bwrap is 0.4.1" in found.why_not_better
    assert found.advice == "sudo apt-get install -y bubblewrap"
    host.files["/etc/os-release"] = "ID=debian\nVERSION_CODENAME=bullseye\n"
    assert host.probe().advice == "sudo apt-get install -t bullseye-backports -y bubblewrap"


APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
PROFILE = "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict"
DOCKER = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"


@pytest.mark.parametrize(
    ("refusal", "files", "advice"),
    [
        (
            "bwrap: setting up uid map: Permission denied",
            {APPARMOR: "1\n"},
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "bwrap: setting up uid map: Permission denied",
            {APPARMOR: "1\n", PROFILE: ""},
            f"sudo cp {PROFILE} /etc/apparmor.d/ && sudo apparmor_parser -r "
            f"/etc/apparmor.d/bwrap-userns-restrict",
        ),
        (
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow "
            "non-privileged user namespaces.",
            {"/proc/sys/kernel/unprivileged_userns_clone": "0\n"},
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded",
            {APPARMOR: "0\n", "/proc/sys/user/max_user_namespaces": "0\n"},
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        (
            "bwrap: No permissions to create new namespace",
            {"/.dockerenv": "", "/proc/sys/user/max_user_namespaces": "96365\n"},
            f"{DOCKER} --security-opt systempaths=unconfined ...",
        ),
        (
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            {"/run/.containerenv": "", "/proc/sys/user/max_user_namespaces": "96365\n"},
            "podman run --security-opt unmask=ALL ...",
        ),
        ("bwrap: something unheard of", {"/.dockerenv": ""}, ""),
        ("bwrap: Operation not permitted", {}, ""),
    ],
)
def test_namespaces_are_refused(host: Host, refusal: str, files: dict[str, str], advice: str) -> None:
    host.refusal = refusal
    host.files |= files
    found = host.probe()
    assert found.sandbox.tier is Tier.WEAK
    assert refusal in found.why_not_better
    assert found.advice == advice


def test_the_host_name_alone_is_refused(host: Host) -> None:
    """As by Podman's filter of system calls: bots see the container's name, and are confined."""
    host.names_refusal = "bwrap: Can't set hostname to bot: Operation not permitted"
    found = host.probe()
    assert (found.sandbox.tier, found.sandbox.tools.host_name) == (Tier.BUBBLEWRAP, "")
    host.names_refusal = ""
    tools = host.probe().sandbox.tools
    assert tools.host_name == "bot"


@pytest.mark.parametrize(
    "run",
    [
        Run(-signal.SIGHUP, "", "", 0.01),
        Run(-signal.SIGKILL, "", "", 0.01),
        Run(128 + signal.SIGKILL, "", "", 0.01),
        Run(None, "", "Resource temporarily unavailable", 0.0, errno.EAGAIN),
        Run(None, "", "Cannot allocate memory", 0.0, errno.ENOMEM),
    ],
)
def test_a_probe_that_shows_nothing_is_run_again(host: Host, run: Run) -> None:
    host.next_runs = [run] * 2
    assert host.probe().sandbox.tier is Tier.BUBBLEWRAP
    host.next_runs = [run] * 3
    found = host.probe()
    assert found.sandbox.tier is Tier.WEAK
    assert (run.errors or f"exit status {run.status}") in found.why_not_better


def test_a_reaper_that_cannot_be_started_for_a_moment_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **_more: object) -> NoReturn:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(reaper, "_reaper", None)
    monkeypatch.setattr(os, "posix_spawn", fail)
    sandbox = Sandbox(Tier.BUBBLEWRAP, Tools("/usr/bin/bwrap", "/usr/bin/setpriv", "/usr/bin/prlimit"))
    run = detection.run_as_bot(sandbox, ("/bin/true",))
    assert run.errors.startswith("could not start the sandbox reaper: ")
    assert run.is_inconclusive


KILLED_ONCE = """#!/bin/sh
[ -e "$0.began" ] || { : >"$0.began"; kill -KILL $$; }
exec PROGRAM "$@"
"""


@pytest.mark.parametrize("name", ["bwrap", "setpriv", "prlimit"])
def test_a_tool_that_was_killed_once_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A system without memory may kill any program."""
    needs_sandbox()
    tool = tmp_path / name
    tool.write_text(KILLED_ONCE.replace("PROGRAM", shutil.which(name) or "/nowhere"))
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    if name != "bwrap":  # which is missing, so that the other tools are examined
        path = str(tmp_path)
        for each in {"setpriv", "prlimit", "true"} - {name}:
            (tmp_path / each).symlink_to(shutil.which(each) or "/nowhere")
    monkeypatch.setattr(detection, "PAUSE_S", 0.0)
    monkeypatch.setenv("PATH", path)
    found = probe.__wrapped__()
    assert getattr(found.sandbox.tools, name) == str(tool)
    assert found.sandbox.tier.confines == (name == "bwrap"), found.why_not_better
    assert (tmp_path / f"{name}.began").exists()


def test_settings_for_users_are_not_for_root(host: Host) -> None:
    host.refusal = "bwrap: Creating new namespace failed: Operation not permitted"
    host.files |= {APPARMOR: "1\n", "/.dockerenv": ""}
    host.user = 0
    assert host.probe().advice == f"{DOCKER} --cap-add SYS_ADMIN ..."


def test_macos(host: Host) -> None:
    host.platform = "darwin"
    found = host.probe()
    assert found.sandbox.tier is Tier.WEAK
    assert "on Linux only, and this is darwin" in found.why_not_better
    assert found.advice == "play in a Linux virtual machine"


# The report


def test_a_host_without_a_sandbox_is_examined_bare() -> None:
    health = examine(Probe(Sandbox(Tier.WEAK), "this is darwin", "play in a Linux virtual machine"))
    assert (health.tier, health.confines) == ("weak", False)
    assert health.holds == "Nothing."
    assert health.network_unreachable is False
    assert health.seccomp is False
    text = "\n".join(report(health))
    assert "hostile bots are NOT held" in text
    assert "  try        play in a Linux virtual machine\n" in text
    assert "This is darwin." in text


def test_an_interpreter_that_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run_as_bot", lambda *_: Run(1, "", "a\nno such library\n", 0.002))
    health = examine(Probe(Sandbox(Tier.BUBBLEWRAP)))
    assert (health.interpreter_runs, health.interpreter_says) == (False, "no such library")
    assert (health.seccomp, health.network_unreachable, health.bot_user) == (None, None, None)
    assert "does NOT run in the sandbox: no such library" in " ".join(" ".join(report(health)).split())


@pytest.mark.parametrize(
    "output",
    [
        "facts 1000 0 0 False\n",  # no filter
        "facts 1000 2 9 True\n",  # a network
        "facts 0 2 9 False\n",  # root's own programs
    ],
)
def test_a_sandbox_with_a_hole_holds_nobody(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr(doctor, "run_as_bot", lambda *_: Run(0, output, "", 0.002))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor, "_own_filters", lambda: 0)
    assert not examine(Probe(Sandbox(Tier.BUBBLEWRAP))).confines


@pytest.mark.parametrize(
    ("inside", "ours", "active"), [(1, 0, True), (1, 1, False), (2, 1, True), (-1, -1, True)]
)
def test_the_filter_of_a_container_is_not_taken_for_ours(
    monkeypatch: pytest.MonkeyPatch, inside: int, ours: int, active: bool
) -> None:
    monkeypatch.setattr(doctor, "run_as_bot", lambda *_: Run(0, f"facts 1000 2 {inside} False", "", 0.002))
    monkeypatch.setattr(doctor, "_own_filters", lambda: ours)
    assert examine(Probe(Sandbox(Tier.BUBBLEWRAP))).seccomp is active


def test_the_report_is_short_and_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run_as_bot", lambda *_: Run(0, "facts 1000 2 9 False", "", 0.002))
    problem = "bubblewrap cannot make its namespaces (bwrap: setting up uid map: Permission denied)"
    advice = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    health = examine(Probe(Sandbox(Tier.BUBBLEWRAP), problem, advice))
    for tier in Tier:
        shown = replace(
            health,
            tier=tier.value,
            holds=doctor.HOLDS[tier],
            holds_not=doctor.HOLDS_NOT[tier],
            fair_clock=False,
            python3_is_slow=True,
            interpreter="/home/lecturer/kalarena/.venv/bin/python",
        )
        lines = list(report(shown))
        assert len(lines) <= 25
        assert max(map(len, lines)) < 80


def test_a_slow_shim_is_told_from_an_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_by_cpu_time(*arguments: Any) -> Run:
        """Run a program; its time is its CPU time, which other programs on a busy machine change less."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = detection.run_as_bot(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return replace(done, seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    monkeypatch.setattr(doctor, "run_as_bot", run_by_cpu_time)
    shim = tmp_path / "python3"
    shim.write_text(
        f'#!/bin/sh\n{sys.executable} -c ""\n{sys.executable} -c ""\nexec {sys.executable} "$@"\n'
    )
    shim.chmod(0o755)
    assert doctor._is_slow(str(shim))
    assert not doctor._is_slow("/nowhere/python3")


def test_a_real_run(tmp_path: Path) -> None:
    tier = probe().sandbox.tier
    done = kalarena(tmp_path, "doctor")
    assert done.returncode == (0 if tier.confines else 1)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Sandbox      {tier.value}: hostile bots are")
    assert len(lines) <= 25
    assert done.stderr == ""
    health = one_object(invoke("doctor", "--json").output)
    assert set(health) == set(Health.__dataclass_fields__)
    assert (health["tier"], health["confines"]) == (tier.value, tier.confines)
    assert health["interpreter_runs"] is True
    assert health["start_bare_ms"] > 0
    assert health["cores"] >= 1
    if tier.confines:
        assert health["seccomp"] is True
        assert health["network_unreachable"] is True
        assert health["other_user"] is (None if os.geteuid() else True)
        assert health["start_confined_ms"] > 0


def test_a_directory_before_the_first_start_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()  # a program of the server's user has run before, whose home it is
    (tmp_path / "lost+found").mkdir()  # of a disk of its own
    (tmp_path / "server.toml").touch()
    found = doctor.examine_server(tmp_path, None)
    assert (
        found["database"]
        == f"none yet: no server has been started with {tmp_path} (or its disk is not mounted)"
    )
    assert found.get("database_works", True)
    (tmp_path / "notes.txt").touch()
    assert doctor.examine_server(tmp_path, None)["database_works"] is False


@pytest.mark.skipif(not Tools(bwrap=shutil.which("bwrap") or "").bwrap, reason="needs bubblewrap")
def test_a_program_is_run_like_a_bot() -> None:
    sandbox = probe().sandbox
    done = detection.run_as_bot(sandbox, ("/bin/sh", "-c", "echo here; echo there >&2; exit 3"))
    assert (done.status, done.output, done.errors) == (3, "here\n", "there\n")
    missing = detection.run_as_bot(Sandbox(), ("/nowhere/program",))
    assert missing.status is None
    assert "No such file" in missing.errors
