"""Keeps the positions of its games in a SQLite database beside itself."""

import sqlite3
from pathlib import Path

import kalah

database = sqlite3.connect(Path(__file__).parent / "games.db")
database.execute("CREATE TABLE IF NOT EXISTS positions (own TEXT, other TEXT, hole INTEGER)")


def choose(own, other):
    hole = kalah.best_hole(own, other)
    with database:
        database.execute("INSERT INTO positions VALUES (?, ?, ?)", (str(own), str(other), hole))
    return hole


kalah.play(choose)
database.close()
