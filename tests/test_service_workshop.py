"""The workshop: bots appear whole or not at all, are what was built, and are made of their sources."""

import os
import stat
from pathlib import Path

import pytest

from referee.judge.results import Reason
from referee.play import Job, play_alone
from referee.sandbox.bubblewrap import Sandbox
from tests.builders import CONTROL
from tests.confinement import needs_sandbox
from tests.test_faults import honest
from tournaments.bots.digest_store import INCOMING
from tournaments.bots.errors import BotError
from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.server.bot_storage import BotStorage, BotStorageError, NotBuiltError

STARTER = Path(__file__).resolve().parent.parent / "sample_bots" / "starters" / "python"
GAME = "kalah(4,3)"
BARE = Sandbox()


def starter() -> list[SubmittedFile]:
    return [SubmittedFile(name, (STARTER / name).read_bytes()) for name in ("bot.py", "bot.toml")]


def built_bot(build: str, made: str = "bot.py", **files: str) -> list[SubmittedFile]:
    """A bot whose build is a shell command."""
    manifest = f"command = ['python3', 'bot.py']\nbuild = ['sh', '-c', {build!r}]\nmade = [{made!r}]\n"
    texts = {"bot.toml": manifest} | {name.replace("_", "."): text for name, text in files.items()}
    return [SubmittedFile(name, text.encode()) for name, text in texts.items()]


@pytest.fixture
def contents(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "submissions")


@pytest.fixture
def workshop(contents: ContentStore, tmp_path: Path) -> BotStorage:
    return BotStorage(contents, tmp_path / "bots")


def incoming(workshop: BotStorage) -> list[str]:
    return os.listdir(workshop.root / INCOMING)  # noqa: PTH208


def test_a_bot_is_built_once_and_plays(contents: ContentStore, workshop: BotStorage) -> None:
    content = contents.put(starter())
    with pytest.raises(NotBuiltError):
        workshop.player(content, "Team 1 v1", GAME)
    workshop.build(content, GAME, BARE)
    player = workshop.player(content, "Team 1 v1", GAME)
    assert (player.name, player.capabilities) == ("Team 1 v1", ("openings",))
    record = play_alone(Job("k", GAME, (player, honest()), CONTROL))
    assert record.result.reason is Reason.SCORE
    inode = workshop.bot(content).stat().st_ino
    workshop.build(content, GAME, BARE)
    assert workshop.bot(content).stat().st_ino == inode
    assert incoming(workshop) == []
    contents.verify(content)


def test_a_copy_can_be_read_by_the_user_a_confined_bot_has(
    contents: ContentStore, workshop: BotStorage
) -> None:
    before = os.umask(0o077)
    try:
        shop = BotStorage(contents, workshop.root.with_name("other"))
        content = contents.put([*starter(), SubmittedFile("lib/run.sh", b"#!/bin/sh\n", executable=True)])
        shop.build(content, GAME, BARE)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [shop.root, *shop.root.rglob("*")]}
    assert all(mode & 0o005 == 0o005 for path, mode in modes.items() if path.is_dir())
    assert all(mode & 0o004 for path, mode in modes.items() if path.is_relative_to(shop.bot(content)))
    assert modes[shop.bot(content) / "lib" / "run.sh"] == 0o755
    assert modes[shop.bot(content) / "bot.py"] == 0o644


def test_a_confined_build_is_what_plays(contents: ContentStore, workshop: BotStorage) -> None:
    sandbox = needs_sandbox()
    build = "cp source.c bot.py; echo more > other; touch /tmp/outside"
    content = contents.put(built_bot(build, source_c=(STARTER / "bot.py").read_text()))
    workshop.build(content, GAME, sandbox)
    assert sorted(path.name for path in workshop.bot(content).iterdir()) == ["bot.py", "bot.toml", "source.c"]
    assert workshop.player(content, "x", GAME).command[1] == "bot.py"


def test_products_that_were_uploaded_are_made_again(contents: ContentStore, workshop: BotStorage) -> None:
    content = contents.put(built_bot("cp source.c bot.py", source_c="new", bot_py="old"))
    workshop.build(content, GAME, BARE)
    assert (workshop.bot(content) / "bot.py").read_text() == "new"


def test_a_failed_build_says_why_without_telling_where_and_leaves_nothing(
    contents: ContentStore, workshop: BotStorage
) -> None:
    content = contents.put(built_bot("echo all is lost; exit 3"))
    with pytest.raises(
        BotError, match=r"the upload: its build command .* exit status 3: all is lost"
    ) as caught:
        workshop.build(content, GAME, BARE)
    assert str(workshop.root) not in str(caught.value)
    assert caught.value.printed == "all is lost\n"
    assert not caught.value.is_ours
    assert incoming(workshop) == []
    with pytest.raises(NotBuiltError):
        workshop.player(content, "x", GAME)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ([SubmittedFile("readme.txt", b"hello")], "the upload holds no bot"),
        ([SubmittedFile("bot.toml", b"command = 3")], r"^bot\.toml: command"),
        (
            [SubmittedFile("bot.toml", b'command="python3 bot.py"\ngames=["kalamala"]')],
            "the upload does not play kalah",
        ),
    ],
)
def test_what_is_no_bot_is_told_of_the_upload(
    contents: ContentStore, workshop: BotStorage, files: list[SubmittedFile], sentence: str
) -> None:
    content = contents.put(files)
    with pytest.raises(BotError, match=sentence) as caught:
        workshop.build(content, GAME, BARE)
    assert str(workshop.root) not in str(caught.value)


@pytest.mark.parametrize("way", ["absolute", "upwards"])
def test_what_lies_elsewhere_is_no_product(
    contents: ContentStore, workshop: BotStorage, tmp_path: Path, way: str
) -> None:
    """Its times are not set, and that it is there is no reason not to build."""
    sandbox = needs_sandbox()
    elsewhere = tmp_path / "secret"
    elsewhere.write_text("the key")
    before = elsewhere.stat().st_mtime_ns
    made = str(elsewhere) if way == "absolute" else "../../../../secret"
    content = contents.put(built_bot("true", made, bot_py="pass"))
    with pytest.raises(BotError, match="is not below the bot's directory"):
        workshop.build(content, GAME, sandbox)
    assert elsewhere.stat().st_mtime_ns == before


def test_a_bot_that_was_changed_is_built_again(contents: ContentStore, workshop: BotStorage) -> None:
    content = contents.put(starter())
    workshop.build(content, GAME, BARE)
    digest = workshop.player(content, "x", GAME).digest
    (workshop.bot(content) / "bot.py").write_text("import os")
    with pytest.raises(NotBuiltError, match="changed"):
        workshop.player(content, "x", GAME)
    workshop.build(content, GAME, BARE)
    assert workshop.player(content, "x", GAME).digest == digest
    assert incoming(workshop) == []


def test_sweeping_removes_what_nobody_needs_and_no_builder_uses(
    contents: ContentStore, workshop: BotStorage
) -> None:
    kept, other = contents.put(starter()), contents.put([*starter(), SubmittedFile("more", b"1")])
    for content in (kept, other):
        workshop.build(content, GAME, BARE)
    (workshop.root / INCOMING / "of a killed builder" / "bot").mkdir(parents=True)
    with workshop._new_directory() as of_a_living_one:
        assert workshop.sweep({kept}) == 2
        assert incoming(workshop) == [of_a_living_one.name]
    workshop.player(kept, "x", GAME)
    with pytest.raises(NotBuiltError):
        workshop.player(other, "x", GAME)
    assert workshop.sweep({kept}) == 0


def test_a_directory_that_cannot_be_used_is_our_fault(contents: ContentStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BotStorageError, match="bots cannot be kept here"):
        BotStorage(contents, tmp_path / "file" / "bots")
