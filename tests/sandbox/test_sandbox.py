"""The command line that confines a player within its limits."""

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from referee.errors import RefereeError
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.sandbox import bot_users, reaper, working_directory
from referee.sandbox.bot_users import FEW_USERS, FEW_USERS_FIRST, FIRST_USER, MAX_BOTS, bot_user
from referee.sandbox.bubblewrap import Confinement, Sandbox, Tier, Tools

TOOLS = Tools("/usr/bin/bwrap", "/usr/bin/setpriv", "/usr/bin/prlimit")
ENVIRONMENT = {b"KALARENA_GAME": b"bga", b"SECRET": b"secret", b"PATH": b"/nowhere", b"HOME": b"/root"}
PLAYER = Player("bot", ("/bin/true", "--fast"), "/")
READ_ONLY = Limits(directory_mb=0)


@contextmanager
def confined(
    sandbox: Sandbox, player: Player = PLAYER, limits: Limits | None = None
) -> Iterator[Confinement]:
    made = sandbox.confine(player, limits or Limits(), ENVIRONMENT)
    try:
        yield made
    finally:
        made.close()
        made.close_status_pipe()
        made.release()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def binds(made: Confinement) -> list[str]:
    words = made.options
    return [words[at + 2] for at, word in enumerate(words) if word == "--ro-bind"]


def words_after(made: Confinement, option: str) -> list[str]:
    return [made.options[at + 1] for at, word in enumerate(made.options) if word == option]


def test_off_changes_nothing() -> None:
    with confined(Sandbox()) as made:
        assert (made.command, made.cwd, made.environment) == (PLAYER.command, "/", ENVIRONMENT)
        assert (made.descriptors, made.status, made.group, made.settings) == ((), None, None, {})


def test_weak_sets_limits_and_keeps_the_environment() -> None:
    with confined(Sandbox(Tier.WEAK, TOOLS), limits=Limits(memory_mb=100, file_mb=3)) as made:
        assert made.command[-2:] == PLAYER.command
        assert {f"--data={(400 << 20) + (2 << 30)}", f"--fsize={3 << 20}"} <= set(made.command)
        assert not any(word.startswith("--nproc") for word in made.command)  # the user's others would count
        settings = {name.encode(): value.encode() for name, value in made.settings.items()}
        assert {b"JAVA_TOOL_OPTIONS", b"NODE_OPTIONS", b"GOMEMLIMIT"} <= set(settings)
        assert made.environment == ENVIRONMENT | settings
    with confined(Sandbox(Tier.WEAK)) as made:  # without any tool
        assert made.command == PLAYER.command


def test_no_limit_is_above_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """We could not raise it, and the bot would not be started."""
    ours = {resource.RLIMIT_DATA: 1 << 30, resource.RLIMIT_NOFILE: 99, resource.RLIMIT_STACK: 16 << 20}
    infinity = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda number: (0, ours.get(number, infinity)))
    for limits, data in ((Limits(), 1 << 30), (Limits(memory_mb=8000), 1 << 30)):
        with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS), limits=limits) as made:
            assert {f"--data={data}", "--nofile=99", f"--stack={8 << 20}:{16 << 20}"} <= set(made.command)
            assert {f"--fsize={limits.file_mb << 20}", f"--nproc={limits.processes}"} <= set(made.command)
            assert {"--core=1", "--msgqueue=0"} <= set(made.command)
    ours[resource.RLIMIT_DATA] = 1 << 40
    with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS)) as made:
        assert f"--data={(Limits().memory_mb << 22) + (2 << 30)}" in made.command


def test_confined_sets_limits_and_passes_only_its_own_environment() -> None:
    with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS), limits=Limits(processes=7, scratch_mb=5)) as made:
        assert made.command[-2:] == PLAYER.command
        assert "--nproc=7" in made.command
        assert str(5 << 20) in words_after(made, "--size")
        own = {name.encode() for name in made.settings}
        assert set(made.environment) - own == {
            *(b"KALARENA_GAME", b"PATH", b"HOME", b"TMPDIR", b"USER", b"LANG")
        }
        assert own
        assert made.environment[b"HOME"] == made.environment[b"TMPDIR"] == b"/scratch"


@pytest.mark.parametrize("user", [0, 1000])
def test_no_bot_runs_as_root(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS)) as made:
        given_up = [word for word in made.command if word.startswith("--reuid=")]
        assert given_up == ([f"--reuid={bot_user(0)}"] if user == 0 else [])
        assert ("--disable-userns" in made.options) == ("--unshare-user" in made.options) == (user != 0)


def test_a_bot_has_a_host_name_unless_none_can_be_set() -> None:
    with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS)) as made:
        assert words_after(made, "--hostname") == ["bot"]
    with confined(Sandbox(Tier.BUBBLEWRAP, replace(TOOLS, host_name=""))) as made:
        assert "--hostname" not in made.options
        assert "--unshare-uts" in made.options


def test_each_bot_of_a_game_is_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bot_user(0) != bot_user(1)
    monkeypatch.setattr(bot_users, "_has_all_users", lambda: True)
    assert bot_user(0) == FIRST_USER + MAX_BOTS * os.getpid()
    monkeypatch.setattr(bot_users, "_has_all_users", lambda: False)
    assert FEW_USERS_FIRST <= bot_user(1) < FEW_USERS_FIRST + FEW_USERS


def test_each_confined_bot_of_a_process_has_a_user_and_a_group_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of two games at a time; numbers are used again when their bots have ended."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    sandbox = Sandbox(Tier.CGROUP, TOOLS, str(tmp_path))
    with ExitStack() as games:
        made = [games.enter_context(confined(sandbox)) for _ in range(MAX_BOTS)]
        assert len({one.group.path for one in made if one.group is not None}) == MAX_BOTS
        users = {word for one in made for word in one.command if word.startswith("--reuid=")}
        assert len(users) == MAX_BOTS
        with pytest.raises(RefereeError, match="32 confined bots already"):
            sandbox.confine(PLAYER, Limits(), ENVIRONMENT)
    shutil.rmtree(tmp_path / f"kalarena-bot-{os.getpid()}-0")  # as the kernel's files go with their group
    with confined(sandbox) as again:
        assert again.group is not None
        assert again.group.path == tmp_path / f"kalarena-bot-{os.getpid()}-0"


def test_a_sandbox_that_cannot_be_made_takes_no_number(tmp_path: Path) -> None:
    for _ in range(MAX_BOTS + 1):
        with pytest.raises(RefereeError, match="no control group could be made"):
            Sandbox(Tier.CGROUP, TOOLS, str(tmp_path / "gone")).confine(PLAYER, Limits(), ENVIRONMENT)


def test_own_files_under_their_own_names_each_once(tmp_path: Path) -> None:
    folder = tmp_path / "bot"
    (folder / "inner").mkdir(parents=True)
    program = folder / "inner" / "run"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    reads = (str(folder), str(folder / "inner"), str(program))
    for cwd in (str(folder), f"{folder}/.", str(folder / "inner"), str(tmp_path)):
        player = Player("bot", (str(program),), cwd, reads=reads)
        with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS), player, READ_ONLY) as made:
            assert [path for path in binds(made) if str(tmp_path) in path] == [str(folder)]
            assert words_after(made, "--chdir") == [cwd]
            made_folders = words_after(made, "--dir")
            assert len(set(made_folders)) == len(made_folders)
            assert str(tmp_path) in made_folders


def test_a_failure_gives_all_descriptors_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(working_directory, "MAX_COPIED_FILES", 2)
    for number in range(3):
        (tmp_path / f"data{number}").touch(mode=0o600)
    player = replace(PLAYER, reads=(str(tmp_path),))
    reaper.mark()  # its pipe stays open until this process ends
    before = open_descriptors()
    with pytest.raises(RefereeError, match="chmod -R"):
        Sandbox(Tier.BUBBLEWRAP, TOOLS).confine(player, Limits(), ENVIRONMENT)
    with pytest.raises(RefereeError, match="no control group could be made"):
        Sandbox(Tier.CGROUP, TOOLS, str(tmp_path / "gone")).confine(PLAYER, Limits(), ENVIRONMENT)
    with confined(Sandbox(Tier.BUBBLEWRAP, TOOLS)):
        assert (
            open_descriptors() == before + 6
        )  # a pipe's two ends, the filter, the options, two files of /etc
    assert open_descriptors() == before


def test_a_control_group_is_joined(tmp_path: Path) -> None:
    with confined(Sandbox(Tier.CGROUP, TOOLS, str(tmp_path)), limits=Limits(memory_mb=50)) as made:
        assert made.group is not None
        assert (made.group.path / "memory.max").read_text() == str(50 << 20)
        assert str(made.group.path / "cgroup.procs") in made.command
        for path in made.group.path.iterdir():
            path.unlink()
    assert list(tmp_path.iterdir()) == []
