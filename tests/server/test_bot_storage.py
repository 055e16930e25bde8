"""The store of built bots: bots appear whole or not at all, unchanged, and built from their sources."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from referee.judge.results import Reason
from referee.playing import Job, play_alone
from referee.sandbox.bubblewrap import Sandbox
from tests.process.test_faults import honest
from tests.server.harness import GAME, STARTER, built_bot, starter
from tests.support.builders import CONTROL
from tests.support.confinement import needs_sandbox
from tournaments.bots.digest_store import INCOMING
from tournaments.bots.errors import BotError
from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.server.bot_storage import BotStorage, BotStorageError, NotBuiltError

pytestmark = pytest.mark.any_database

BARE = Sandbox()


@pytest.fixture
def storage(tmp_path: Path) -> BotStorage:
    return BotStorage(ContentStore(tmp_path / "submissions"), tmp_path / "bots")


def incoming(storage: BotStorage) -> list[str]:
    return os.listdir(storage.root / INCOMING)  # noqa: PTH208


def build(storage: BotStorage, files: list[SubmittedFile], sandbox: Sandbox = BARE) -> str:
    """Build a bot; return the digest of its submission."""
    content = storage.contents.put(files)
    storage.build(content, GAME, sandbox)
    assert incoming(storage) == []
    return content


def refused(storage: BotStorage, files: list[SubmittedFile], sandbox: Sandbox = BARE) -> BotError:
    """Return the error of a build, which names no path of the server."""
    with pytest.raises(BotError) as caught:
        build(storage, files, sandbox)
    assert str(storage.root) not in str(caught.value)
    assert not caught.value.is_ours
    assert incoming(storage) == []
    return caught.value


def test_a_bot_is_built_once_and_plays(storage: BotStorage) -> None:
    content = storage.contents.put(starter())
    with pytest.raises(NotBuiltError):
        storage.player(content, "Team 1 v1", GAME)
    build(storage, starter())
    player = storage.player(content, "Team 1 v1", GAME)
    assert (player.name, player.capabilities) == ("Team 1 v1", ("openings",))
    record = play_alone(Job("k", GAME, (player, honest()), CONTROL))
    assert record.result.reason is Reason.SCORE
    inode = storage.bot(content).stat().st_ino
    build(storage, starter())
    assert storage.bot(content).stat().st_ino == inode
    storage.contents.verify(content)


def test_a_copy_is_readable_by_the_user_of_a_confined_bot(storage: BotStorage) -> None:
    before = os.umask(0o077)
    try:
        other = BotStorage(storage.contents, storage.root.with_name("other"))
        content = build(other, [*starter(), SubmittedFile("lib/run.sh", b"#!/bin/sh\n", executable=True)])
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [other.root, *other.root.rglob("*")]}
    assert all(mode & 0o005 == 0o005 for path, mode in modes.items() if path.is_dir())
    assert all(mode & 0o004 for path, mode in modes.items() if path.is_relative_to(other.bot(content)))
    assert modes[other.bot(content) / "lib" / "run.sh"] == 0o755
    assert modes[other.bot(content) / "bot.py"] == 0o644


def test_the_products_of_a_confined_build_play(storage: BotStorage) -> None:
    command = "cp source.c bot.py; echo more > other; touch /tmp/outside"
    files = built_bot(command, source_c=(STARTER / "bot.py").read_text())
    content = build(storage, files, needs_sandbox())
    assert sorted(path.name for path in storage.bot(content).iterdir()) == ["bot.py", "bot.toml", "source.c"]
    assert storage.player(content, "x", GAME).command[1] == "bot.py"


def test_the_size_of_built_bots(storage: BotStorage) -> None:
    content = build(
        storage, built_bot("head -c 3000000 /dev/urandom > table; cp source.c bot.py", source_c="")
    )
    small = build(storage, starter())
    assert 3_000_000 <= storage.size([content, content]) < 4_000_000
    assert storage.size(storage.digests()) == storage.size([content]) + storage.size([small])
    assert storage.size(["0" * 64]) == 0


def test_uploaded_products_are_built_again(storage: BotStorage) -> None:
    content = build(storage, built_bot("cp source.c bot.py", source_c="new", bot_py="old"))
    assert (storage.bot(content) / "bot.py").read_text() == "new"
    in_folder = built_bot("cp source.c out/part", "./out/", source_c="new", bot_py="")
    content = build(storage, [*in_folder, SubmittedFile("out/part", b"old"), SubmittedFile("out/x.c", b"")])
    assert (storage.bot(content) / "out" / "part").read_text() == "new"


def test_uploaded_products_are_built_again_in_every_language(storage: BotStorage) -> None:
    """Suffixes such as .d and .cu are not among those of sources whose times are compared."""
    content = build(storage, built_bot("cp source.d bot.py", source_d="new", bot_py="old"))
    assert (storage.bot(content) / "bot.py").read_text() == "new"
    in_folder = built_bot("cp source.cu out/part", "out", source_cu="new", bot_py="")
    content = build(storage, [*in_folder, SubmittedFile("out/part", b"old")])
    assert (storage.bot(content) / "out" / "part").read_text() == "new"


def test_an_uploaded_program_without_a_build_stays(storage: BotStorage) -> None:
    files = [
        SubmittedFile("bot.toml", b"command = './run'"),
        SubmittedFile("run", b"#!/bin/sh\n", executable=True),
    ]
    content = build(storage, files)
    assert (storage.bot(content) / "run").read_text() == "#!/bin/sh\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_uploaded_intermediate_files_are_built_again(storage: BotStorage) -> None:
    """An object file may be of another system, or older than its source."""
    makefile = "bot.py: part.o table\n\tcat part.o table > bot.py\npart.o: part.c\n\tcp part.c part.o\n"
    content = build(storage, built_bot("make", Makefile=makefile, part_c="new ", part_o="old ", table="data"))
    assert (storage.bot(content) / "bot.py").read_text() == "new data"


def test_a_build_can_make_a_zip_archive_of_uploaded_files(storage: BotStorage) -> None:
    """These have no times before 1980; a jar or a .pyz is such an archive."""
    files = built_bot("python3 -m zipapp source -o bot.py")
    build(storage, [*files, SubmittedFile("source/__main__.py", b"pass")])


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (built_bot("echo all is lost; exit 3"), "the upload: its build command "),
        ([SubmittedFile("readme.txt", b"hello")], "the upload holds no bot"),
        ([SubmittedFile("bot.toml", b"command = 3")], "bot.toml: command"),
        (
            [SubmittedFile("bot.toml", b'command="python3 bot.py"\ngames=["kalamala"]')],
            "the upload does not play kalah",
        ),
    ],
)
def test_an_upload_that_is_no_bot_leaves_nothing(
    storage: BotStorage, files: list[SubmittedFile], sentence: str
) -> None:
    error = refused(storage, files)
    assert str(error).startswith(sentence)
    if "build" in sentence:
        assert "exit status 3: all is lost" in str(error)
        assert error.printed == "all is lost\n"
    with pytest.raises(NotBuiltError):
        storage.player(storage.contents.put(files), "x", GAME)


@pytest.mark.parametrize("way", ["absolute", "upwards"])
def test_a_product_elsewhere_is_refused_and_not_touched(
    storage: BotStorage, tmp_path: Path, way: str
) -> None:
    """Its existence is no reason not to build."""
    elsewhere = tmp_path / "secret"
    elsewhere.write_text("the key")
    before = elsewhere.stat().st_mtime_ns
    made = str(elsewhere) if way == "absolute" else "../../../../secret"
    error = refused(storage, built_bot("true", made, bot_py="pass"), needs_sandbox())
    assert "is not below the bot's directory" in str(error)
    assert elsewhere.stat().st_mtime_ns == before


def test_a_bot_that_was_changed_is_built_again(storage: BotStorage) -> None:
    content = build(storage, starter())
    digest = storage.player(content, "x", GAME).digest
    (storage.bot(content) / "bot.py").write_text("import os")
    with pytest.raises(NotBuiltError, match="changed"):
        storage.player(content, "x", GAME)
    build(storage, starter())
    assert storage.player(content, "x", GAME).digest == digest


def test_a_sweep_removes_other_bots_and_leftovers_of_killed_builders(storage: BotStorage) -> None:
    kept, other = build(storage, starter()), build(storage, [*starter(), SubmittedFile("more", b"1")])
    (storage.root / INCOMING / "of a killed builder" / "bot").mkdir(parents=True)
    with storage._new_directory() as of_a_running_builder:
        assert storage.sweep({kept}) == 2
        assert incoming(storage) == [of_a_running_builder.name]
    storage.player(kept, "x", GAME)
    with pytest.raises(NotBuiltError):
        storage.player(other, "x", GAME)
    assert storage.sweep({kept}) == 0


def test_a_directory_that_cannot_be_used_is_the_servers_fault(storage: BotStorage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BotStorageError, match="bots cannot be kept here"):
        BotStorage(storage.contents, tmp_path / "file" / "bots")
