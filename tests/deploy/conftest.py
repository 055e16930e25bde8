"""Fixtures of the container images, which are built once for all tests of this folder."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.podman import (
    BASE,
    BUILD_ARGUMENTS,
    IMAGE,
    Podman,
    needs_containers,
    shared_folder,
)
from tests.support.paths import REPOSITORY_ROOT

EXTRAS = "postgresql,strong,xlsx"


def make_context(folder: Path, python: str) -> None:
    """Copy what the Containerfile reads: its files, and the wheels of Kalarena and its dependencies."""
    shutil.copytree(REPOSITORY_ROOT / "docs/deploy", folder / "docs/deploy")
    shutil.copy(REPOSITORY_ROOT / "constraints.txt", folder)
    dist = folder / "dist"
    build = ("build", "--no-isolation", "--outdir", str(dist), str(REPOSITORY_ROOT))
    subprocess.run((sys.executable, "-m", *build), check=True, capture_output=True)
    wheel = next(dist.glob("*.whl"))
    for_image = ("--only-binary=:all:", f"--python-version={python}", "--dest", str(dist))
    download = ("pip", "download", "--quiet", *for_image, "-c", str(folder / "constraints.txt"))
    command = (sys.executable, "-m", *download, f"kalarena[{EXTRAS}] @ {wheel.as_uri()}")
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="session")
def podman_with_base() -> Podman:
    """Podman with the base image."""
    needs_containers()
    podman = Podman()
    podman.make_base()
    return podman


@pytest.fixture(scope="session")
def build_context(podman_with_base: Podman) -> Iterator[Path]:
    """Folder from which the images are built."""
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = podman_with_base("run", "--rm", "--network=none", BASE, "python3", "-c", version).strip()
    with shared_folder(lambda folder: make_context(folder, python)) as context:
        yield context


@pytest.fixture(scope="session")
def podman(podman_with_base: Podman, build_context: Path) -> Iterator[Podman]:
    """Podman with the image of the server."""
    podman_with_base(
        *("build", "--network=none", "--file", str(build_context / "docs/deploy/Containerfile")),
        *("--target", "kalarena", "--tag", IMAGE, *BUILD_ARGUMENTS, str(build_context)),
    )
    yield podman_with_base
    podman_with_base("rmi", "--force", IMAGE)
