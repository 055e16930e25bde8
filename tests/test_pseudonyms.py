"""Pseudonyms and the file that keeps them."""

import csv
import random
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.reporting.pseudonyms import BIRDS, COLOURS, HEAD, PseudonymError, draw, pseudonyms_for

NAMES = ["alice", "bob", "eve"]


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_there_are_enough() -> None:
    assert len({f"{colour} {bird}" for colour in COLOURS for bird in BIRDS}) >= 200


def test_they_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    known = pseudonyms_for(path, NAMES)
    before = path.read_bytes()
    assert set(known) == set(NAMES)
    assert len(set(known.values())) == len(NAMES)
    assert pseudonyms_for(path, NAMES) == known
    assert pseudonyms_for(path, ["bob"]) == known
    assert path.read_bytes() == before
    assert rows(path) == [HEAD, *([pseudonym, name] for name, pseudonym in known.items())]


def test_only_the_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    pseudonyms_for(path, NAMES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_bot_changes_no_other(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    known = pseudonyms_for(path, NAMES)
    before = path.read_bytes()
    more = pseudonyms_for(path, [*NAMES, "late"])
    assert {name: more[name] for name in NAMES} == known
    assert list(more) == [*known, "late"]
    assert path.read_bytes().startswith(before)


def test_a_file_that_cannot_be_written_will_do(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    known = pseudonyms_for(path, NAMES)
    path.chmod(0o400)
    assert pseudonyms_for(path, NAMES) == known


def test_the_order_says_nothing_of_the_names() -> None:
    names = [f"bot {number}" for number in range(40)]
    orders = {tuple(draw(names, {}, random.Random(seed))) for seed in range(5)}
    assert len(orders) == 5
    assert tuple(names) not in orders


def test_no_pseudonym_has_a_word_of_a_name() -> None:
    drawn = draw(["Heron", "teal", "bob"], {"amber": "Azure Crane"}, random.Random(1))
    many = draw([*drawn, *(f"x{number}" for number in range(300))], {}, random.Random(1))
    assert not any(word in name for word in ("Heron", "Teal") for name in many.values())
    assert "Azure Crane" not in drawn.values()


def test_more_bots_than_words() -> None:
    names = [f"bot {number}" for number in range(900)]
    drawn = draw(names, {}, random.Random(1))
    assert len(set(drawn.values())) == 900


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, max_size=6))
def test_any_names_come_back(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    path = tmp_path_factory.mktemp("key") / "key.csv"
    known = pseudonyms_for(path, names, random.Random(1))
    assert pseudonyms_for(path, names, random.Random(2)) == known
    assert set(known) == set(names)


def test_no_spreadsheet_takes_a_name_for_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    pseudonyms_for(path, ["=1+1", "'@x"])
    assert sorted(name for _, name in rows(path)[1:]) == ["''@x", "'=1+1"]


def test_a_last_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    path.write_text("pseudonym,name\nTeal Tern,bob", encoding="utf-8")
    known = pseudonyms_for(path, ["bob", "eve"])
    assert known["bob"] == "Teal Tern"
    assert pseudonyms_for(path, ["eve"]) == known


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,mark\nbob,1\n", "no list of pseudonyms"),
        ("pseudonym,name\nTeal Tern\n", "row 2"),
        ("pseudonym,name\nTeal Tern,\n", "row 2"),
        ("pseudonym,name\nTeal Tern,bob\nTeal Tern,eve\n", "twice"),
        ("pseudonym,name\nTeal Tern,bob\nTeal Owl,bob\n", "twice"),
        ('pseudonym,name\nTeal Tern,"bo\n', "cannot be read"),
    ],
)
def test_a_file_that_somebody_broke(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "key.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PseudonymError, match=says):
        pseudonyms_for(path, NAMES)
    assert path.read_text(encoding="utf-8") == text


def test_nowhere_to_keep_them(tmp_path: Path) -> None:
    with pytest.raises(PseudonymError, match="cannot be kept here"):
        pseudonyms_for(tmp_path / "missing" / "key.csv", NAMES)
    with pytest.raises(PseudonymError, match="cannot be read"):
        pseudonyms_for(tmp_path, NAMES)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key.csv"
    pseudonyms_for(path, NAMES)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tournaments.reporting.pseudonyms.os.fsync", full)
    with pytest.raises(PseudonymError, match="No space left"):
        pseudonyms_for(path, ["late"])
    assert path.read_bytes() == before
