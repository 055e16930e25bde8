"""What a program needs to be seen of our file system."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from referee import needs
from referee.needs import first_line, interpreter_of, needed_paths, program_directories


def make_program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_environment(prefix: Path, home: Path) -> Path:
    """A virtual environment whose interpreter is a link to that of ``home``, a ``bin`` directory."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"version = 3.11\nhome = {home}\n")
    (prefix / "bin" / "python3").symlink_to(home / "python3")
    (prefix / "bin" / "python").symlink_to("python3")
    return prefix / "bin" / "python"


def shown(program: Path, wanted: Path) -> bool:
    return any(wanted.is_relative_to(path) for path in needed_paths(program))


@pytest.mark.parametrize("program", ["/usr/bin/env", "/bin/sh", "/usr/bin/nowhere"])
def test_the_systems_programs_need_nothing(program: str) -> None:
    assert needed_paths(Path(program)) == []


def test_a_program_alone_needs_itself(tmp_path: Path) -> None:
    program = make_program(tmp_path / "bot", "#!/bin/sh\n")
    assert needed_paths(program) == [program]


def test_a_prefix_that_a_program_was_installed_into(tmp_path: Path) -> None:
    real = make_program(tmp_path / ".pyenv" / "versions" / "3.11.7" / "bin" / "python3")
    assert set(needed_paths(real)) == {real, real.parent.parent}


def test_an_environment_and_its_base(tmp_path: Path) -> None:
    real = make_program(tmp_path / "versions" / "3.11.7" / "bin" / "python3")
    python = make_environment(tmp_path / "venv", real.parent)
    assert shown(python, tmp_path / "venv" / "lib")
    assert shown(python, tmp_path / "versions" / "3.11.7" / "lib")
    assert not shown(python, tmp_path / "versions" / "3.12.0")


def test_an_environment_made_with_one_in_another(tmp_path: Path) -> None:
    real = make_program(tmp_path / "base" / "bin" / "python3")
    inner = make_environment(tmp_path / "inner", real.parent)
    outer = make_environment(tmp_path / "outer", inner.parent)
    (tmp_path / "link").symlink_to("outer")
    for python in (outer, tmp_path / "link" / "bin" / "python"):
        for prefix in (python.parent.parent, tmp_path / "inner", tmp_path / "base"):
            assert shown(python, prefix / "lib"), prefix


def test_links_that_lead_around_end(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).symlink_to(other)
    assert len(needed_paths(tmp_path / "a")) == 2


def test_an_environment_whose_settings_are_nonsense(tmp_path: Path) -> None:
    python = make_program(tmp_path / "venv" / "bin" / "python")
    for content in (b"\xff\xfe", b"home", b"", b"home ="):
        (tmp_path / "venv" / "pyvenv.cfg").write_bytes(content)
        assert shown(python, tmp_path / "venv" / "lib")
        assert not shown(python, tmp_path / "other")


@pytest.mark.parametrize("below", ["bin", ".local/bin"])
def test_a_home_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    program = make_program(tmp_path / below / "tool")
    assert needed_paths(program) == [program]


def test_neither_is_the_root_nor_all_homes() -> None:
    assert needs._installation(Path("/home/bin/tool")) is None
    assert needs._installation(Path("/bin/tool")) is None


def test_a_home_that_is_reached_by_a_link_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    program = make_program(tmp_path / "home" / "bin" / "tool")
    assert not shown(program, tmp_path / "real" / "secret")
    assert not shown(program, tmp_path / "home" / "secret")


def test_what_is_in_a_store_needs_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    monkeypatch.setattr(needs, "STORES", (store,))
    real = make_program(store / "abc-python" / "bin" / "python3")
    (tmp_path / "profile" / "bin").mkdir(parents=True)
    (tmp_path / "profile" / "bin" / "python3").symlink_to(real)
    assert store in needed_paths(tmp_path / "profile" / "bin" / "python3")


PYTHON = Path(sys.executable)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#!/bin/sh", Path("/bin/sh")),
        ("#! /bin/sh -e", Path("/bin/sh")),
        ("#!/usr/bin/env python3", PYTHON),
        ("#!/usr/bin/env python", PYTHON),
        ("#!/usr/bin/env -S python3 -u", PYTHON),
        ("#!/usr/bin/env -S NAME=value python3 -u", PYTHON),
        ("#!/usr/bin/env -i", None),
        ("#!/usr/bin/env", None),
        ("#!/nowhere/at/all", None),
        ("#!/bin/sh\r", None),  # the kernel looks for a file whose name ends in CR
        ("#!\t/bin/sh\t-e", Path("/bin/sh")),
        ("#!", None),
        ("#!   ", None),
        ("", None),
        ("no script", None),
        ("\x7fELF", None),
    ],
)
def test_interpreter_of_a_script(tmp_path: Path, line: str, expected: Path | None) -> None:
    program = make_program(tmp_path / "bot")
    program.write_bytes(line.encode() + b"\nmore\n")
    assert interpreter_of(program) == expected


def test_env_looks_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = make_program(tmp_path / "tools" / "bin" / "tool")
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("tool") == str(tool)
    program = make_program(tmp_path / "bot", "#!/usr/bin/env tool\n")
    assert interpreter_of(program) == tool
    assert program_directories(program) == [str(tool.parent)]
    assert tool.parent.parent in needed_paths(program)
    assert program_directories(make_program(tmp_path / "plain", f"#!{tool}\n")) == []


def test_first_line(tmp_path: Path) -> None:
    assert first_line(tmp_path / "gone") == b""
    assert first_line(tmp_path) == b""
    (tmp_path / "long").write_bytes(b"#!" + b"x" * 10_000)
    assert len(first_line(tmp_path / "long")) == needs.FIRST_LINE_BYTES
