"""Digests by which a mark sheet can be traced to the rules and results that it was made from.  Pure."""

import hashlib
from collections.abc import Iterable


def results_digest(games: Iterable[tuple[str, str]], rulings: int) -> str:
    """SHA-256 of the results, in hexadecimal: of a sorted line ``KEY FINGERPRINT`` for each game that
    counts, and a last line ``journal N`` with the number of rulings; each has a line end, all in UTF-8.

    ``games`` are these keys and fingerprints (tournaments/results/game_summary.py).
    """
    lines = sorted(f"{key} {fingerprint}\n" for key, fingerprint in games)
    return file_digest("".join([*lines, f"journal {rulings}\n"]).encode())


def file_digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content in hexadecimal, as ``sha256sum`` prints it."""
    return hashlib.sha256(content).hexdigest()
