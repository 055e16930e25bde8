"""The store in a file: clear words for every file that is no store of ours."""

from pathlib import Path

import pytest

from tests.builders import make_record
from tournaments.results.store import Store, StoreError

CONFIG = {"game": "manchester", "bots": ["one", "two"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.mark.parametrize(
    "content", [b"this is a text\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="this file is no SQLite database"):
        Store(path)
    assert path.read_bytes() == content


def test_a_store_that_was_damaged(path: Path) -> None:
    """Pages in the middle overwritten: an error of ours, whatever is read."""
    with Store(path) as store:
        store.claim("cup", CONFIG, {})
        for number in range(40):
            store.add(make_record(f"r{number:03d}-1v2"), 1)
    whole = path.read_bytes()
    pages = len(whole) // 4096
    assert pages > 6
    messages = []
    for page in range(1, pages):
        damaged = bytearray(whole)
        damaged[page * 4096 : (page + 1) * 4096] = b"\x55" * 4096
        path.write_bytes(damaged)
        try:
            with Store(path) as store:
                store.config()
                store.played()
                store.games()
                store.record("r000-1v2")
        except StoreError as error:
            messages.append(str(error))
    assert messages
    assert all(str(path) in message and "\n" not in message for message in messages)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "results.db", tmp_path):
        with pytest.raises(StoreError, match="cannot be written here"):
            Store(path)


@pytest.mark.parametrize("name", ["a b", "what?", "50%", "a#b", "a&b=c", "Größe", "x?mode=memory"])
def test_names_of_folders_are_taken_literally(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with Store(folder / "results.db") as store:
        store.add(make_record(), 1)
    assert (folder / "results.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]
