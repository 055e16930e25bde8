"""Keeps statistics in the user's home, and a temporary file for each game."""

import tempfile
from pathlib import Path

import kalah

folder = Path.home() / ".kalahbot"
folder.mkdir(exist_ok=True)
statistics = folder / "statistics.txt"
statistics.write_text("0\n")

with tempfile.NamedTemporaryFile("w", prefix="kalah") as scratch, open("/tmp/kalahbot.txt", "w") as shared:

    def choose(own, other):
        hole = kalah.best_hole(own, other)
        for file in (scratch, shared):
            print(own, other, hole, file=file, flush=True)
        statistics.write_text(f"{int(statistics.read_text()) + 1}\n")
        return hole

    kalah.play(choose)
