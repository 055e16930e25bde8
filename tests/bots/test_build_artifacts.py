"""Output of a confined build: only declared products are accepted from it."""

from pathlib import Path

import pytest

from referee.sandbox.build_artifacts import Artifact, ArtifactError, Kind, Unpacker
from tournaments.bots.build import KEPT
from tournaments.bots.build_products import ProductError, check_products, product_names, write_products


def test_names_of_products_are_relative_to_the_directory() -> None:
    assert product_names(Path("/a/bot"), ["x", "./y/../z", "/a/bot/w"], KEPT) == ["x", "z", "w"]


def stream(*parts: str | bytes) -> bytes:
    return b"".join(part if isinstance(part, bytes) else part.encode() + b"\0" for part in parts)


def test_the_stream_may_arrive_in_any_pieces() -> None:
    data = stream("copied", "built", "file 3 ./a b", b"\0x\0", "link 0 ./l", "program 0 ./p", "end")
    for size in (1, 7, len(data)):
        unpacker = Unpacker(100, 10)
        for at in range(0, len(data), size):
            unpacker.feed(data[at : at + size])
        assert (unpacker.copied, unpacker.built, unpacker.ended) == (True, True, True)
        assert unpacker.artifacts == [
            Artifact("./a b", Kind.FILE, b"\0x\0"),
            Artifact("./l", Kind.LINK, b""),
            Artifact("./p", Kind.PROGRAM, b""),
        ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (stream("built"), "the sandbox's own"),
        (stream("copied", "copied"), "the sandbox's own"),
        (stream("copied", "file 0 ./x"), "the sandbox's own"),
        (stream("copied", "built", "end", "file 0 ./x"), "the sandbox's own"),
        (stream("copied", "built", "file x ./x"), "the sandbox's own"),
        (stream("copied", "built", "file -1 ./x"), "the sandbox's own"),
        (stream("copied", "built", f"file {'9' * 16} ./x"), "the sandbox's own"),
        (stream("copied", "built", "file ./x"), "the sandbox's own"),
        (b"x" * 5000, "the sandbox's own"),
        (stream("copied", "built", "door 0 ./x"), "whose name is no text"),
        (stream("copied", "built", b"file 0 ./\xff\0"), "whose name is no text"),
        (stream("copied", "built", "file 2097153 ./x"), "more than 2 MB together"),
        (stream("copied", "built", *["file 0 ./x"] * 4), "more than 3 files"),
    ],
)
def test_invalid_streams_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        Unpacker(2 << 20, 3).feed(data)


@pytest.mark.parametrize("name", ["../engine", "/engine", "./x/../../engine", "./other", ".", "./x.class"])
def test_undeclared_products_are_refused(name: str) -> None:
    with pytest.raises(ProductError, match="no product that was declared"):
        check_products([Artifact(name, Kind.FILE, b"")], ["engine"], KEPT)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    files = check_products([Artifact("./a", Kind.FILE, b"x")], ["a"], KEPT)
    with pytest.raises(ProductError, match="is a directory here"):
        write_products(tmp_path, files)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
