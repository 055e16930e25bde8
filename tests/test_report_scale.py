"""A report of a whole course."""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from referee.judge.results import GameRecord
from tests.builders import kalarena
from tests.reports import Page, write_store
from tests.test_report import made, some

BOTS = 40
LARGEST_PAGE = 2_000_000
"""Bytes that a phone shows at once without complaint."""


@pytest.fixture
def quick_disk(tmp_path: Path) -> Iterator[Path]:
    """In memory if that can be: thousands of transactions, each written through, are not the point."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_the_largest_page_stays_small(tmp_path: Path, quick_disk: Path) -> None:
    """Forty bots with names as long as they may be, 3,120 games, many of them faults.

    The games are short: how large a long one's page is, tests/test_replay_page.py says.
    """
    short = ("--game", "kalah(3,2)", "--sandbox", "off")
    played = kalarena(tmp_path, "play", "random:3", "random:4", "--record", "game.msgpack", *short)
    assert played.returncode == 0, played.stderr
    real = GameRecord.from_msgpack((tmp_path / "game.msgpack").read_bytes())

    def relabelled(record: GameRecord) -> GameRecord:
        players = [
            replace(player, name=own.name) for player, own in zip(real.players, record.players, strict=True)
        ]
        return replace(real, key=record.key, players=(players[0], players[1]), result=record.result)

    names = [f"{number:02d} " + "<&>" * 65 for number in range(BOTS)]
    directory = write_store(quick_disk / "cup", names, some, changed=relabelled, rounds=2)
    started = time.perf_counter()
    site = made(directory)
    print(f"built in {time.perf_counter() - started:.1f} s")
    sizes = {path: path.stat().st_size for path in site.rglob("*.html")}
    assert len(sizes) == 2 + BOTS + 3120
    assert max(sizes.values()) < LARGEST_PAGE, max(sizes, key=lambda path: sizes[path])
    index = Page((site / "index.html").read_text(encoding="utf-8"))
    assert len(index.rows("cross")) == BOTS
    assert {len(row.cells) for row in index.rows("cross")} == {BOTS + 2}
