"""Paths of the host that a program needs, and those that a bot may not choose."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from referee.sandbox import runtime_paths
from referee.sandbox.runtime_paths import (
    first_line,
    interpreter_of,
    is_installed,
    needed_paths,
    program_directories,
)


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


def make_installation(prefix: Path) -> Path:
    """An installed Python; the program."""
    (prefix / "lib" / "python3.11").mkdir(parents=True)
    return make_program(prefix / "bin" / "python3")


def shown(program: Path, wanted: Path, own: Sequence[Path] = (), *, trusted: bool = True) -> bool:
    return any(wanted.is_relative_to(path) for path in needed_paths(program, own, trusted=trusted))


def put_on_path(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("program", ["/usr/bin/env", "/bin/sh", "/usr/bin/nowhere"])
def test_the_systems_programs_need_nothing(program: str) -> None:
    assert needed_paths(Path(program)) == []


def test_programs_of_the_host_and_of_a_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = make_program(tmp_path / "bots" / "bin" / "solve")
    (tmp_path / "bots" / "lib").mkdir()
    python = make_installation(tmp_path / "jdk")
    tool = make_program(tmp_path / "tools" / "solve")
    assert [is_installed(program, tmp_path) for program in (own, python, tool)] == [False, True, False]
    elsewhere = tmp_path / "cup"
    assert [is_installed(program, elsewhere) for program in (own, python, tool)] == [True, True, False]
    put_on_path(monkeypatch, tool.parent)
    assert is_installed(tool, tmp_path)
    assert is_installed(Path("/usr/bin/env"), tmp_path)
    assert is_installed(Path("/nix/store/abc-lua/bin/lua"), tmp_path)
    assert not is_installed(Path("/usr/bin/../../root/solve"), tmp_path)
    (tmp_path / "java21").symlink_to(python)
    assert is_installed(tmp_path / "java21", tmp_path)
    assert not is_installed(tmp_path / "java21", tmp_path, follow=False)


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("", []),
        ("secret", []),  # a project with a ``bin`` holds more than its programs need
        ("lib/code.so", ["lib"]),
        *((mark, ["."]) for mark in ("pyvenv.cfg", "lib/python3.11/os.py", "lib/rt.jar", "lib/modules")),
        *((mark, ["."]) for mark in ("lib/node_modules/x", "pkg/tool/x")),
    ],
)
def test_an_installation_is_known_by_its_files(tmp_path: Path, file: str, shown: list[str]) -> None:
    prefix = tmp_path / ".pyenv" / "prefix"
    program = make_program(prefix / "bin" / "tool")
    if file:
        make_program(prefix / file)
    assert set(needed_paths(program, trusted=True)) == {program, *(prefix / name for name in shown)}
    assert needed_paths(program, [tmp_path], trusted=True) == []  # it is seen anyway


@pytest.mark.parametrize(
    ("name", "file"), [("dotnet", "host/fxr/8.0.0/libhostfxr.so"), ("zig", "lib/std/std.zig")]
)
def test_an_installation_without_a_bin(tmp_path: Path, name: str, file: str) -> None:
    """Those of .NET and Zig, whose archives have the program beside its libraries."""
    program = make_program(tmp_path / "installed" / name)
    make_program(tmp_path / "installed" / file)
    (tmp_path / "link").symlink_to(program)
    assert shown(program, tmp_path / "installed" / file)
    assert shown(tmp_path / "link", tmp_path / "installed" / file)
    assert is_installed(program, tmp_path / "cup")
    own = make_program(tmp_path / "installed" / "solve")
    assert needed_paths(own, trusted=True) == [own]
    assert not is_installed(own, tmp_path / "cup")


# Paths that a bot may not choose


def test_only_what_we_would_run_ourselves_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = make_installation(tmp_path / "prefix")
    assert needed_paths(python) == []
    bot = make_program(tmp_path / "bot" / "run", f"#!{python}\n")
    assert needed_paths(bot, [bot.parent]) == []
    assert set(needed_paths(python, trusted=True)) == {python, tmp_path / "prefix"}
    put_on_path(monkeypatch, python.parent)
    assert set(needed_paths(python)) == {python, tmp_path / "prefix"}
    assert set(needed_paths(bot, [bot.parent])) == {python, tmp_path / "prefix"}


def make_manager(root: Path, answer: Path) -> Path:
    """A version manager with a shim for python3, behind which is ``answer``; its directory of shims."""
    make_program(root / "shims" / "python3")
    make_program(root / "libexec" / root.name.lstrip("."), f'#!/bin/sh\n[ "$1" = which ] && echo {answer}\n')
    return root / "shims"


def test_the_version_that_a_manager_names_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shims of a version manager are on PATH, and not the directories of its programs."""
    manager = tmp_path / ".pyenv"
    python = make_installation(manager / "versions" / "3.11")
    shims = make_manager(manager, python)
    assert needed_paths(python) == []
    monkeypatch.setenv("PATH", str(shims))
    bot = make_program(tmp_path / "bot" / "run", f"#!{python}\n")
    assert set(needed_paths(python)) == set(needed_paths(bot, [bot.parent])) == {python, python.parent.parent}
    assert is_installed(python, tmp_path)


def test_a_version_manager_that_cannot_be_run_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = tmp_path / ".pyenv"
    python = make_installation(manager / "versions" / "3.11")
    monkeypatch.setenv("PATH", str(make_manager(manager, python)))
    (manager / "libexec" / "pyenv").write_bytes(b"\x7fELF")
    assert needed_paths(python) == []


def test_no_other_version_of_a_manager_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot's author can name each of them, and with it the packages and settings of that environment."""
    manager = tmp_path / ".pyenv"
    python = make_installation(manager / "versions" / "3.11")
    private = make_installation(manager / "versions" / "private-env")
    deep = make_program(manager / "versions" / "3.11" / "src" / "project" / "python3")
    monkeypatch.setenv("PATH", str(make_manager(manager, python)))
    for program in (private, deep, make_program(python.parent / "without-shim")):
        bot = make_program(tmp_path / "bot" / "run", f"#!{program}\n")
        assert needed_paths(program) == needed_paths(bot, [bot.parent]) == [], program
    assert not is_installed(deep, tmp_path)


def test_a_directory_of_shims_without_a_known_manager_shows_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_installation(tmp_path / "own" / "versions" / "3.11")
    monkeypatch.setenv("PATH", str(make_manager(tmp_path / "own", python)))
    assert needed_paths(python) == []


def test_a_manager_is_called_again_for_a_program_that_it_did_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It failed, or its user has chosen another version since: a server runs for months."""
    manager = tmp_path / ".pyenv"
    old, new = (make_installation(manager / "versions" / name) for name in ("3.11", "3.12"))
    monkeypatch.setenv("PATH", str(make_manager(manager, tmp_path / "missing")))
    assert needed_paths(old) == []
    make_manager(manager, old)
    assert needed_paths(old) != []
    make_manager(manager, new)
    assert needed_paths(new) != []


def test_our_own_interpreter_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the environment nor its base has to be on PATH."""
    base = make_installation(tmp_path / "base")
    python = make_environment(tmp_path / "venv", base.parent)
    script = make_program(tmp_path / "bot" / "run", "#!/usr/bin/env python3\n")
    monkeypatch.setattr(sys, "executable", str(python))
    for program in (python, script):
        for prefix in ("venv", "base"):
            assert shown(program, tmp_path / prefix / "lib", [script.parent], trusted=False)
    assert needed_paths(base) == []
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "base"))
    assert set(needed_paths(base)) == {base, tmp_path / "base"}


def test_no_link_of_a_bots_own_leads_into_what_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_installation(tmp_path / "prefix")
    own = tmp_path / "bot"
    (own / "bin").mkdir(parents=True)
    (own / "bin" / "run").symlink_to(python)
    (own / "again").symlink_to("bin/run")
    (own / "folder").symlink_to(python.parent)
    # By way of an untrusted place, even to a trusted one: that it leads there is not ours to see.
    (own / "round").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").symlink_to(python)
    programs = (own / "bin" / "run", own / "again", own / "folder" / "python3", own / "round")
    scripts = [make_program(own / f"script{at}", f"#!{path}\n") for at, path in enumerate(programs)]
    for program in (*programs, *scripts):
        assert needed_paths(program, [own]) == [], program
    put_on_path(monkeypatch, python.parent)
    for program in (*programs[:3], *scripts[:3]):
        assert set(needed_paths(program, [own])) == {python, tmp_path / "prefix"}, program
    for program in (programs[3], scripts[3]):
        assert needed_paths(program, [own]) == [], program


def test_an_environment_of_a_bots_own_does_not_say_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_installation(tmp_path / "base")
    own = tmp_path / "bot"
    python = make_environment(own / "venv", base.parent)
    script = make_program(own / "run", f"#!{python}\n")
    for program in (python, script):
        assert needed_paths(program, [own]) == []
    make_installation(tmp_path / "secret")  # what pyvenv.cfg alone leads to
    (own / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'secret' / 'bin'}\n")
    put_on_path(monkeypatch, base.parent)
    for program in (python, script):
        assert set(needed_paths(program, [own])) == {base, tmp_path / "base"}


def test_no_way_back_out_of_a_trusted_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = make_program(tmp_path / "secret" / "key")
    own = tmp_path / "bot"
    trusted = make_installation(tmp_path / "prefix").parent
    put_on_path(monkeypatch, trusted)
    for way in (f"/usr/..{secret}", f"/usr/bin/../..{secret}", f"{trusted}/../../secret/key"):
        bot = make_program(own / "run", f"#!{way}\n")
        assert interpreter_of(bot) == Path(way)
        assert needed_paths(bot, [own]) == []
        (own / "link").unlink(missing_ok=True)
        (own / "link").symlink_to(way)
        assert needed_paths(own / "link", [own]) == []
        assert needed_paths(Path(way), [own]) == []


# Environments, links, homes


def test_an_environment_made_with_one_in_another(tmp_path: Path) -> None:
    real = make_installation(tmp_path / "base")
    make_installation(tmp_path / "secret")
    inner = make_environment(tmp_path / "inner", real.parent)
    outer = make_environment(tmp_path / "outer", inner.parent)
    (tmp_path / "link").symlink_to("outer")
    for python in (outer, tmp_path / "link" / "bin" / "python"):
        for prefix in (python.parent.parent, tmp_path / "inner", tmp_path / "base"):
            assert shown(python, prefix / "lib"), prefix
        assert not shown(python, tmp_path / "secret")
    assert needed_paths(outer) == []  # where it is not trusted
    assert needed_paths(make_program(tmp_path / "bot" / "run", f"#!{outer}\n"), [tmp_path / "bot"]) == []


def test_links_that_lead_around_end(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).symlink_to(other)
    assert len(needed_paths(tmp_path / "a", trusted=True)) == 2
    assert needed_paths(tmp_path / "a", [tmp_path]) == []


def test_an_environment_whose_settings_are_nonsense(tmp_path: Path) -> None:
    python = make_program(tmp_path / "venv" / "bin" / "python")
    for content in (b"\xff\xfe", b"home", b"", b"home ="):
        (tmp_path / "venv" / "pyvenv.cfg").write_bytes(content)
        assert shown(python, tmp_path / "venv" / "lib")
        assert not shown(python, tmp_path / "other")


@pytest.mark.parametrize("below", ["bin", ".local/bin"])
@pytest.mark.parametrize("home", ["real", "link"])
def test_a_home_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, below: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("HOME", str(tmp_path / home))
    program = make_program(tmp_path / home / below / "tool")
    (program.parent.parent / "lib" / "python3.11").mkdir(parents=True)  # as pip install --user makes it
    assert set(needed_paths(program, trusted=True)) == {program, program.resolve()}


def test_neither_is_the_root_nor_all_homes() -> None:
    assert runtime_paths._installation(Path("/home/bin/tool")) is None
    assert runtime_paths._installation(Path("/bin/tool")) is None


def test_a_program_in_a_store_needs_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    monkeypatch.setattr(runtime_paths, "STORES", (store,))
    real = make_program(store / "abc-python" / "bin" / "python3")
    (tmp_path / "profile" / "bin").mkdir(parents=True)
    (tmp_path / "profile" / "bin" / "python3").symlink_to(real)
    program = tmp_path / "profile" / "bin" / "python3"
    assert store in needed_paths(program, trusted=True)
    assert needed_paths(program) == needed_paths(real) == []
    put_on_path(monkeypatch, program.parent)
    assert store in needed_paths(program)


PYTHON = Path(sys.executable)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#!/bin/sh", Path("/bin/sh")),
        ("#! /bin/sh -e", Path("/bin/sh")),
        ("#!/usr/bin/env python3", PYTHON),
        ("#!/usr/bin/env python", PYTHON),
        ("#!/usr/bin/env -S python3 -u", PYTHON),
        ("#!/usr/bin/env -S NAME=value python3 -u", None),  # no env that sets or changes anything
        ("#!/usr/bin/env NAME=value", None),
        ("#!/usr/bin/env -S -i python3", None),
        ("#!/usr/bin/env -u NAME python3", None),
        ("#!/usr/bin/env --split-string=python3", None),
        ("#!/usr/bin/env -S", None),
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


def test_an_interpreter_in_a_directory_that_is_closed_to_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(path)

    program = make_program(tmp_path / "bot", "#!/root/closed/python3\n")
    monkeypatch.setattr(Path, "exists", refuse)  # root is refused nothing
    assert interpreter_of(program) is None


def test_env_looks_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = make_program(tmp_path / "tools" / "bin" / "tool")
    (tmp_path / "tools" / "lib" / "node_modules").mkdir(parents=True)
    put_on_path(monkeypatch, tool.parent)
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
    assert len(first_line(tmp_path / "long")) == runtime_paths.FIRST_LINE_BYTES
