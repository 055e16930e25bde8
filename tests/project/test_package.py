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
CUP = """\
name = "Cup"
bots = ["starter", "first_legal"]

[time]
move_s = 5.0
"""


def run(command: Sequence[str | Path], folder: Path, timeout: float = RUN_LIMIT_S) -> str:
    """Return the output of a command that must succeed, with an environment without the repository."""
    result = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8"},
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
    plays_a_tournament_to_its_table(kalarena, tmp_path)
    serves_a_page(kalarena, tmp_path)
    run([kalarena, "play", "strong", "first_legal", "--game", "kalah(3,2)"], tmp_path, INSTALL_LIMIT_S)
    assert (venv / "share/doc/kalarena/students.md").read_text(encoding="utf-8").startswith("# ")
    rules = "from tournaments.web.views.help_texts import help_page; print(help_page('rules').title)"
    assert run([venv / "bin/python", "-I", "-c", rules], tmp_path) == "The rules\n"
    where = "import numba, xlsxwriter, tournaments; print(tournaments.__path__[0])"
    package = Path(run([venv / "bin/python", "-I", "-c", where], tmp_path).strip())
    assert package.is_relative_to(venv)
    assert (package / "examples/demo.toml").exists()


def install(wheel: Path, venv: Path) -> None:
    """Make a virtual environment with nothing but the wheel and the extras of the README's command."""
    run([sys.executable, "-m", "venv", venv], wheel.parent, INSTALL_LIMIT_S)
    pip: list[str | Path] = [
        venv / "bin/python",
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "--no-compile",  # most modules of the packages are never imported here
    ]
    constraints: list[str | Path] = ["-c", REPOSITORY_ROOT / "constraints.txt"]
    run([*pip, *constraints, f"kalarena[strong,xlsx] @ {wheel.as_uri()}"], wheel.parent, INSTALL_LIMIT_S)


def plays_the_demo_of_the_readme(kalarena: Path, venv: Path, folder: Path) -> None:
    readme = (REPOSITORY_ROOT / "README.md").read_text(encoding="utf-8")
    assert 'pip install "$(echo kalarena-*.whl)[strong,xlsx]"' in readme
    (line,) = re.findall(r"^    kalarena (tournament run \S+demo\.toml .*)", readme, re.MULTILINE)
    run([kalarena, *line.replace("kalarena/share", f"{venv}/share").split()], folder, INSTALL_LIMIT_S)
    assert (folder / "demo/report.html").exists()
    table = run([kalarena, "tournament", "table", "demo"], folder)
    assert "40 of 40 games" in table


def plays_a_tournament_to_its_table(kalarena: Path, folder: Path) -> None:
    run([kalarena, "new", "python", "starter"], folder)
    (folder / "cup.toml").write_text(CUP)
    run([kalarena, "tournament", "run", "cup.toml", "--out", "out", "--quiet"], folder)
    table = run([kalarena, "tournament", "table", "out"], folder)
    assert "starter" in table
    assert "2 of 2 games" in table
    run([kalarena, "tournament", "report", "out"], folder)
    assert (folder / "out/report/index.html").exists()
    assert "nothing wrong" in run([kalarena, "verify", "out"], folder)


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
