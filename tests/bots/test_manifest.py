"""bot.toml: its keys and their errors, and the build of a directory's bot without a sandbox."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.processes import all_end, living_with, open_pidfds
from tournaments.bots.errors import BotError, ManifestError
from tournaments.bots.manifest import MANIFEST_FILE, load_manifest
from tournaments.bots.resolve import resolve_bot

BUILT = 'command = "./engine"\nbuild = "sh make.sh"'
MAKE = "echo built >> log\nprintf '#!/bin/sh\\n' > engine\nchmod +x engine\n"


def directory(folder: Path, manifest: str, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST_FILE).write_text(manifest)
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
        path.chmod(0o755)
    return folder


def test_all_keys_of_a_manifest(tmp_path: Path) -> None:
    text = (
        'command = "python3 mine.py --fast"\nname = "Ada\'s"\nauthors = ["Ada"]\ngames = ["manchester"]\n'
        'capabilities = ["time", "openings"]'
    )
    directory(tmp_path / "bot", text, mine_py="")
    player = resolve_bot("bot", tmp_path, game="manchester(6,4)")
    assert player.name == "Ada's"
    assert player.command == (sys.executable, "mine.py", "--fast")
    assert player.cwd == str(tmp_path / "bot")
    assert player.capabilities == ("openings", "time")
    assert player.how == "as its bot.toml says"
    assert resolve_bot("bot", tmp_path, name="other").name == "other"


def test_without_a_manifest_the_choice_is_explained(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "bot.py").write_text("")
    player = resolve_bot("bot", tmp_path)
    assert player.how.startswith("no bot.toml; bot.py was found and is run as: ")
    assert player.capabilities == ()
    assert load_manifest(tmp_path / "bot") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "command: is missing"),
        ("command = []", "command: must be a text as for a shell, or a list of words"),
        ('command = ""', "command: must be a text as for a shell"),
        ('command = ["a\\u0000"]', "command: holds a NUL"),
        ('command = "x"\nname = "a\\nb"', "name: a name is 1 to 60"),
        ('command = "java -cp . Bot"\nbuild = "make"', "build needs made"),
        ('command = "x"\ncomand = 1', r"comand: unknown key; did you mean 'command'\?"),
        ('command = "x"\ngames = ["chess"]', "no game 'chess'"),
        ('command = "x"\ncapabilities = ["opening"]', "no capability 'opening'; did you mean 'openings'"),
        ('command = "x"\nauthors = ["a", 3]', r"authors\[2\]: must be a text, not 3"),
        ('command = "x"\nmade = "a"', "made: must be a list, such as .\"a\"., not 'a'"),
        ("command = 3", "command: must be a text"),
        ('command = "a \'b"', "command"),
        ("command = ", "this is not TOML"),
    ],
)
def test_bad_manifests(tmp_path: Path, text: str, words: str) -> None:
    directory(tmp_path / "bot", text)
    with pytest.raises(ManifestError, match=words):
        load_manifest(tmp_path / "bot")
    with pytest.raises(BotError, match=MANIFEST_FILE):
        resolve_bot("bot", tmp_path)


def test_a_bot_that_does_not_play_the_game_is_refused(tmp_path: Path) -> None:
    directory(tmp_path / "bot", 'command = "python3 x.py"\ngames = ["bga"]')
    with pytest.raises(BotError, match="does not play manchester"):
        resolve_bot("bot", tmp_path, game="manchester")
    assert resolve_bot("bot", tmp_path, game="bga(6,6)+pie").name == "bot"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("./engine", r"\./engine, which is not there"),
        ("no-such-program-anywhere x", "is not on PATH"),
        ("./bot.toml", "is not executable"),
    ],
)
def test_a_program_that_cannot_be_run(tmp_path: Path, command: str, words: str) -> None:
    directory(tmp_path / "bot", f'command = "{command}"')
    with pytest.raises(BotError, match=words):
        resolve_bot("bot", tmp_path)


def test_a_bot_is_built_when_its_program_is_missing_or_a_source_is_newer(tmp_path: Path) -> None:
    built = directory(tmp_path / "bot", BUILT, make_sh=MAKE)
    source = built / "src" / "engine.CPP"
    source.parent.mkdir()
    source.write_text("")
    first = resolve_bot("bot", tmp_path, game="manchester")
    assert first.command == (str(built / "engine"),)
    made = float(int((built / "engine").stat().st_mtime))  # whole seconds, which no rounding changes
    os.utime(built / "engine", (made, made))

    def times_built_after(path: Path, seconds: float, *, may_build: bool = True) -> int:
        os.utime(path, (made + seconds, made + seconds))
        resolve_bot("bot", tmp_path, game="manchester", may_build=may_build)
        return len((built / "log").read_text().splitlines())

    os.utime(source, (made, made))
    assert times_built_after(source, 0) == 1
    assert resolve_bot("bot", tmp_path, game="manchester").digest == first.digest
    assert times_built_after(built / "log", 60) == 1  # no source
    (built / "engine.d").write_text("engine: src/engine.CPP\n")
    assert times_built_after(built / "engine.d", 60) == 1  # cargo writes such a list after the program
    assert times_built_after(source, 60, may_build=False) == 1  # the existing program plays
    assert times_built_after(source, 60) == 2
    (built / "src" / "gone.c").symlink_to("nowhere")
    os.utime(built / "engine", (made + 120, made + 120))
    assert times_built_after(source, 90) == 2
    (built / "node_modules").mkdir()
    (built / "node_modules" / "x.c").write_text("")
    assert times_built_after(built / "node_modules" / "x.c", 600) == 2


def test_a_directory_is_as_new_as_its_newest_file(tmp_path: Path) -> None:
    """A file that is overwritten does not change the time of its directory."""
    manifest = 'command = "sh bot.sh"\nbuild = "sh make.sh"\nmade = ["out"]'
    make = "mkdir -p out/deep; touch out/old; echo built > out/deep/new; echo made >> log"
    built = directory(tmp_path / "bot", manifest, make_sh=make, bot_c="")
    log = built / "log"

    def times_built() -> int:
        resolve_bot("bot", tmp_path, game="manchester")
        return len(log.read_text().splitlines())

    assert times_built() == 1
    made = log.stat().st_mtime - 1000
    for path in (built / "out").rglob("*"):
        os.utime(path, (made, made))
    os.utime(built / "out", (made, made))
    os.utime(built / "bot.c", (made + 60, made + 60))
    assert times_built() == 2
    assert times_built() == 2


def test_an_empty_directory_says_nothing_about_the_time_of_a_build(tmp_path: Path) -> None:
    """A build that finds the directory does not change the directory's time."""
    manifest = 'command = "sh bot.sh"\nbuild = "sh make.sh"\nmade = ["out", "cache"]'
    make = "mkdir -p out cache; echo > out/part; echo made >> log"
    built = directory(tmp_path / "bot", manifest, make_sh=make, bot_c="")
    for _ in range(2):
        resolve_bot("bot", tmp_path, game="manchester")
    assert (built / "log").read_text() == "made\n"
    before = (built / "log").stat().st_mtime - 1000
    for path in (built / "out" / "part", built / "cache"):
        os.utime(path, (before, before))
    os.utime(built / "bot.c", (before + 60, before + 60))
    for _ in range(2):
        resolve_bot("bot", tmp_path, game="manchester")
    assert (built / "log").read_text() == "made\nmade\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no compiler >&2\nexit 4\n", r"ended with exit status 4: no compiler"),
        ("true", r"\./engine, which is not there"),
    ],
)
def test_a_build_that_fails(tmp_path: Path, script: str, words: str) -> None:
    directory(tmp_path / "bot", BUILT, make_sh=script)
    with pytest.raises(BotError, match=words):
        resolve_bot("bot", tmp_path, game="manchester")


@pytest.mark.parametrize(
    ("manifest", "products"),
    [
        ('command = "java -jar x.jar"\nbuild = "make"', ["x.jar"]),
        ('command = "java Bot"\nbuild = "make"\nmade = ["Bot.class"]', ["Bot.class"]),
        ('command = "./x"\nbuild = "make"', ["./x"]),
        ('command = "/usr/bin/java -jar x.jar"\nbuild = "make"', ["x.jar"]),
    ],
)
def test_products_of_a_build(tmp_path: Path, manifest: str, products: list[str]) -> None:
    found = load_manifest(directory(tmp_path / "bot", manifest))
    assert found is not None
    assert found.products == products


def test_processes_of_a_build_end_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tournaments.bots.build.BUILD_LIMIT_S", 0.2)
    mark = f"{600 + os.getpid() / 1e7:.7f}"
    directory(tmp_path / "bot", f'command = "./x"\nbuild = ["sh", "-c", "sleep {mark}; true"]')
    with pytest.raises(BotError, match=r"took over 0\.2 s"):
        resolve_bot("bot", tmp_path, game="manchester")
    assert all_end(open_pidfds(living_with(mark)))  # it was killed, and may still have to end
