"""Paths of the repository, for tests in any folder."""

from pathlib import Path

REPOSITORY_ROOT = Path(__file__).resolve().parents[2]
TEST_DATA = REPOSITORY_ROOT / "tests" / "data"
SUPPORT = Path(__file__).resolve().parent
"""The folder of scripted_bot.py and thinking_bot.py."""
