"""Rootless Podman for tests: an ordinary user's containers, and a base image of Debian's packages alone.

No registry of images is needed: mmdebstrap makes the base image, from the mirror of this machine's apt.
It is kept, with the layers of the images, in a storage of its own below the user's cache.
"""

import contextlib
import os
import platform
import pwd
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

USER_VARIABLE = "KALARENA_IMAGE_USER"
"""Environment variable with the name of the ordinary user who runs the containers, if root runs the tests."""
PROGRAMS = ("podman", "mmdebstrap", "newuidmap", "apt-get")
PACKAGES = "podman runc uidmap mmdebstrap"
CACHE = ".cache/kalarena-image-tests"
"""Folder of the storage and of the base image, below the user's home."""
IN_BASE = "python3-venv,bubblewrap,postgresql,caddy"
"""Packages of the base image beside Debian's essential ones: those that the Containerfile installs."""
BASE = f"localhost/kalarena-test-base:{IN_BASE.replace(',', '-')}"
BUILD_ARGUMENTS = ("--build-arg", f"BASE={BASE}", "--build-arg", "PIP_OPTIONS=--no-index")
"""Arguments of the Containerfile with which a build needs no network."""
IMAGE = "localhost/kalarena-test"
"""Name of the server's image."""
SERVICES_PROGRAMS = ("podman-compose", "slirp4netns")
PROJECT = "kalarena-test"
"""Project of podman-compose, with whose name those of containers, volumes and networks begin."""
NAME_SERVERS = ("/usr/lib/cni/dnsname", "/usr/lib/podman/aardvark-dns")
"""Programs of which Podman needs one, so that containers find each other by the names of their services."""
COMMAND_LIMIT_S = 1200.0
"""Bound for one command, such as the download of Debian's packages; most take seconds."""


def needs_containers() -> None:
    """Skip a test where no image can be built; fail in CI or with KALARENA_REQUIRE_IMAGE=1."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    reason = f"no containers without {', '.join(missing)}: apt-get install {PACKAGES}" if missing else ""
    user = _user_name()
    if not user:
        reason = f"containers are an ordinary user's: set {USER_VARIABLE} to the name of one"
    elif not any(user in _owners(path) for path in ("/etc/subuid", "/etc/subgid")):
        reason = f"{user} has no subordinate ids in /etc/subuid: usermod --add-subuids 100000-165535 {user}"
    _skip_for(reason)


def needs_services() -> None:
    """Skip a test where podman-compose cannot run services in a network of their own, or fail, as above."""
    needs_containers()
    missing = [name for name in SERVICES_PROGRAMS if shutil.which(name, path=_path()) is None]
    reason = (
        f"no services without {', '.join(missing)}: apt-get install {' '.join(missing)}" if missing else ""
    )
    if not any(Path(path).exists() for path in NAME_SERVERS):
        reason = (
            "no names of services: apt-get install netavark aardvark-dns, or, if Podman's network backend is "
            "cni, golang-github-containernetworking-plugin-dnsname"
        )
    if Podman().attempt_as_user("sh", "-c", ": <>/dev/net/tun").returncode:
        reason = f"no networks: {_user_name()} cannot open /dev/net/tun (try: chmod 666 /dev/net/tun)"
    _skip_for(reason)


def _skip_for(reason: str) -> None:
    """Skip a test for a reason that is not empty; fail in CI or with KALARENA_REQUIRE_IMAGE=1."""
    if not reason:
        return
    if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_IMAGE") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _user_name() -> str:
    """Return the name of the user whose containers they are; empty if there is none."""
    if os.geteuid() == 0:
        return os.environ.get(USER_VARIABLE, "")
    return pwd.getpwuid(os.geteuid()).pw_name


def _owners(path: str) -> set[str]:
    with contextlib.suppress(OSError):
        return {line.partition(":")[0] for line in Path(path).read_text(encoding="utf-8").splitlines()}
    return set()


@dataclass
class Podman:
    """Podman of one ordinary user, with a storage of its own."""

    user: pwd.struct_passwd = field(default_factory=lambda: pwd.getpwnam(_user_name()))
    runtime: tuple[str, ...] = ()
    """Option that names the runtime, where the default one does not work."""

    def __post_init__(self) -> None:
        self.cache = Path(self.user.pw_dir, CACHE)
        self.as_user("mkdir", "-p", str(self.cache))

    def as_user(self, *command: str) -> str:
        """Run a command as the user and return its output.  Raises AssertionError if it fails."""
        done = self.attempt_as_user(*command)
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def attempt_as_user(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the user, which may fail."""
        uid, gid = self.user.pw_uid, self.user.pw_gid
        drop = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups") if os.geteuid() == 0 else ()
        runtime = Path("/run/user", str(uid))
        if os.geteuid() == 0 and not runtime.exists():  # as a login would
            runtime.mkdir(mode=0o700, parents=True)
            os.chown(runtime, uid, gid)
        return subprocess.run(
            (*drop, *command),
            cwd=self.user.pw_dir,
            env={
                "HOME": self.user.pw_dir,
                "USER": self.user.pw_name,
                "PATH": _path(),
                "LANG": "C.UTF-8",
                "XDG_RUNTIME_DIR": str(runtime),
            },
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )

    def words(self, *arguments: str) -> tuple[str, ...]:
        """Return a command line of Podman."""
        storage = ("--root", str(self.cache / "storage"), "--storage-driver", "overlay")
        return ("podman", *self.runtime, *storage, *arguments)

    def __call__(self, *arguments: str) -> str:
        """Run Podman and return its output.  Raises AssertionError if it fails."""
        return self.as_user(*self.words(*arguments))

    def compose(self, folder: Path, *arguments: str) -> str:
        """Run podman-compose with the compose file of a folder and return its output.

        Raises AssertionError if it fails.
        """
        program = self.cache / "podman"  # podman-compose passes no options before Podman's subcommand
        script = f'#!/bin/sh\nexec {shlex.join(self.words())} "$@"\n'
        self.as_user("sh", "-c", 'printf %s "$2" >"$1" && chmod 755 "$1"', "sh", str(program), script)
        words = ("--podman-path", str(program), "--project-name", PROJECT)
        return self.as_user("podman-compose", *words, "--file", str(folder / "compose.yaml"), *arguments)

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Podman, which may fail."""
        return self.attempt_as_user(*self.words(*arguments))

    def make_base(self) -> None:
        """Make the base image unless there is one, and find a runtime that works here.

        Podman's default runtime, crun, refuses hosts with control groups of both versions; runc does not.
        """
        if self.attempt("image", "exists", BASE).returncode:
            archive = str(self.cache / "base.tar")
            packages = ("--variant=minbase", f"--include={IN_BASE}", "--format=tar")
            self.as_user("mmdebstrap", "--mode=unshare", *packages, _release(), archive, _mirror())
            self("import", "--quiet", archive, BASE)
            self.as_user("rm", archive)
        tries = [self.attempt("run", "--rm", "--network=none", BASE, "true")]
        if tries[0].returncode and shutil.which("runc", path=_path()):
            self.runtime = ("--runtime", "runc")
            tries.append(self.attempt("run", "--rm", "--network=none", BASE, "true"))
        assert tries[-1].returncode == 0, "\n".join(done.stderr for done in tries)


def _release() -> str:
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _mirror() -> str:
    """Return the address of the mirror from which apt has Debian's packages."""
    wanted = ("Created-By: Packages", "Origin: Debian", f"Codename: {_release()}", "Component: main")
    command = ("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted)
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout, "apt has no lists of Debian's packages (try: apt-get update)"
    return shown.stdout.splitlines()[0]


@contextlib.contextmanager
def shared_folder(copy_into: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a folder that every user can read, with the files that ``copy_into`` puts there."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        copy_into(folder)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield folder
