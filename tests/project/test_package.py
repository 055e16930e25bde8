"""The built packages are complete: an installation without the repository plays, serves and has its pages."""

import re
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from referee.version import VERSION
from tests.support.builders import RUN_LIMIT_S
from tests.support.paths import REPOSITORY_ROOT

INSTALL_LIMIT_S = 600.0
PACKAGES = ("protocol", "referee", "sample_bots", "tournaments")
DEMO_CHANGES = {
    "rounds = 2 ": "rounds = 1 ",
    '  { bot = "random:2024", name = "random" },\n': "",
    '  "minimax:2",\n  "minimax:5",\n': "",
}
"""Changes that leave 2 games of README's demo."""
EXTRAS = "strong,xlsx"
"""The extras of README's command."""
COMPILES = """
import numba, xlsxwriter, tournaments
from sample_bots.strong import compiled
from sample_bots.strong.kalah.packed_board import seed_count
assert seed_count(0) == 0 and compiled.compiled_now() == 1
print(tournaments.__path__[0])
"""
"""Program that compiles one kernel and prints where the package is."""


def run(command: Sequence[str | Path], folder: Path, timeout: float = RUN_LIMIT_S, **environment: str) -> str:
    """Return the output of a command that must succeed, with an environment without the repository."""
    result = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        folder,
        REPOSITORY_ROOT,
    ]
    run(build, folder, INSTALL_LIMIT_S)
    return folder


def tracked(*folders: str) -> set[str]:
    """Return the paths of git's files in some folders of the repository."""
    listed = run(["git", "-C", REPOSITORY_ROOT, "ls-files", *folders], REPOSITORY_ROOT)
    return set(listed.splitlines())


@pytest.mark.slow
@pytest.mark.any_database
def test_the_packages_contain_every_file(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        sdist = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as archive_of_wheel:
        wheel = set(archive_of_wheel.namelist())
    assert not tracked(*PACKAGES, "docs", "tests", "LICENSE", "NOTICE", "README.md", "Makefile") - sdist
    assert not tracked(*PACKAGES) - wheel
    info = f"kalarena-{VERSION}"
    assert {f"{info}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")} <= wheel
    pages = {f"{info}.data/data/share/doc/kalarena/{path.removeprefix('docs/')}" for path in tracked("docs")}
    assert not pages - wheel
    assert not [name for name in wheel if name.startswith("tests/")]


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.long
def test_an_installation_without_the_repository_plays_and_serves(dist: Path, tmp_path: Path) -> None:
    """One test, since each process of pytest would install an environment of its own."""
    venv = tmp_path / "venv"
    install(next(dist.glob("*.whl")), venv)
    kalarena = venv / "bin/kalarena"
    assert run([kalarena, "--version"], tmp_path) == f"kalarena {VERSION}\n"
    plays_the_demo_of_the_readme(kalarena, venv, tmp_path)
    run([kalarena, "new", "python", "starter"], tmp_path)
    # To compile all kernels takes 45 s; tests/sample_bots/test_kernels.py plays with them.
    bots: list[str | Path] = [kalarena, "play", "starter", "strong"]
    output = run([*bots, "--game", "kalah(3,2)", "--sandbox", "off"], tmp_path, KALARENA_PURE="1")
    assert "[score]" in output
    serves_a_page(kalarena, tmp_path)
    assert (venv / "share/doc/kalarena/students.md").read_text(encoding="utf-8").startswith("# ")
    rules = "from tournaments.web.views.help_texts import help_page; print(help_page('rules').title)"
    assert run([venv / "bin/python", "-I", "-c", rules], tmp_path) == "The rules\n"
    cache = str(tmp_path / "cache")
    output = run([venv / "bin/python", "-I", "-c", COMPILES], tmp_path, XDG_CACHE_HOME=cache)
    package = Path(output.strip())
    assert package.is_relative_to(venv)
    assert (package / "examples/demo.toml").exists()


def install(wheel: Path, venv: Path) -> None:
    """Make a virtual environment with nothing but the wheel and the extras of README's command."""
    # A pip of its own would take seven seconds more.
    run([sys.executable, "-m", "venv", "--without-pip", venv], wheel.parent, INSTALL_LIMIT_S)
    pip: list[str | Path] = [
        *(sys.executable, "-m", "pip", "--python", venv / "bin/python"),
        *("--quiet", "--disable-pip-version-check", "install", "-c", REPOSITORY_ROOT / "constraints.txt"),
        "--no-compile",  # most modules of the packages are never imported here
    ]
    run([*pip, f"kalarena[{EXTRAS}] @ {wheel.as_uri()}"], wheel.parent, INSTALL_LIMIT_S)


def plays_the_demo_of_the_readme(kalarena: Path, venv: Path, folder: Path) -> None:
    """With fewer games than in the file of the installation."""
    readme = (REPOSITORY_ROOT / "README.md").read_text(encoding="utf-8")
    assert f'pip install "$(echo kalarena-*.whl)[{EXTRAS}]"' in readme
    (line,) = re.findall(r"^    kalarena (tournament run \S+demo\.toml .*)", readme, re.MULTILINE)
    file = venv / "share/doc/kalarena/examples/demo.toml"
    text = file.read_text(encoding="utf-8")
    for old, new in DEMO_CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    run([kalarena, *line.replace("kalarena/share", f"{venv}/share").split()], folder, INSTALL_LIMIT_S)
    assert (folder / "demo/report.html").exists()
    assert "2 of 2 games" in run([kalarena, "tournament", "table", "demo"], folder)
    run([kalarena, "tournament", "report", "demo"], folder)
    assert (folder / "demo/report/index.html").exists()
    assert "nothing wrong" in run([kalarena, "verify", "demo"], folder)


def serves_a_page(kalarena: Path, folder: Path) -> None:
    command: list[str | Path] = [kalarena, "serve", "--data", folder / "data", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, text=True, start_new_session=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://[^\s,]+", server.stdout.readline())
            assert address
            with urllib.request.urlopen(address[0], timeout=RUN_LIMIT_S) as response:
                assert "Kalarena" in response.read().decode()
        finally:
            server.terminate()
            server.communicate(timeout=RUN_LIMIT_S)
    assert server.returncode == 0


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (REPOSITORY_ROOT / "docs/changelog.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    assert headings[0] == VERSION


def test_the_lowest_constraints_are_the_bounds_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [
        one for name in ("cluster", "postgresql", "strong", "xlsx") for one in extras[name]
    ]
    lines = (REPOSITORY_ROOT / "constraints-lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    for requirement in wanted:
        name, bound = re.sub(r"\[.*\]", "", requirement).split(">=")
        assert f"{lowest[name]}.".startswith(f"{bound}."), f"{name}: {lowest[name]} is not the bound {bound}"
