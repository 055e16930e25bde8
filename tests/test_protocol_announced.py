"""What bots are told before their conversation begins."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.announced import TIME_VARIABLE, AnnouncedTime, parse_announced_time
from referee.judge.clock import TimeControl, announced
from referee.judge.results import Player
from referee.play import Job, play_alone

limits = st.integers(min_value=1, max_value=10**9)


@given(st.builds(AnnouncedTime, limits, st.none() | limits, st.integers(0, 10**6)))
def test_texts_say_it_all(time: AnnouncedTime) -> None:
    assert parse_announced_time(str(time)) == time


@pytest.mark.parametrize(
    ("control", "text"),
    [
        (TimeControl(move_s=1), "move_ms=1000"),
        (TimeControl(game_s=60, increment_s=0.5), "game_ms=60000;increment_ms=500"),
        (TimeControl(move_s=0.0001), "move_ms=1"),
        (TimeControl(move_s=1e12), "move_ms=1000000000000000"),
        (TimeControl(move_s=10, game_s=120), "move_ms=10000;game_ms=120000"),
    ],
)
def test_time_controls_as_texts(control: TimeControl, text: str) -> None:
    assert announced(control) == text


def test_unknown_keys_are_passed_over() -> None:
    assert parse_announced_time("move_ms=5;moon_phase=3") == AnnouncedTime(5)


@pytest.mark.parametrize(
    "text", ["", "move_ms", "move_ms=-1", "move_ms=1.5", "move_ms=1 ;game_ms=2", "=3", "1"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no time control"):
        parse_announced_time(text)


def test_a_bot_finds_it_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, TIME_VARIABLE, "move_ms=1")  # somebody else's
    bot = tmp_path / "bot.py"
    bot.write_text(f"import os, sys; sys.exit(os.environ[{TIME_VARIABLE!r}])")
    player = Player("told", (sys.executable, str(bot)), str(tmp_path), "")
    record = play_alone(Job("told", "manchester", (player, player), TimeControl(move_s=2, game_s=20)))
    assert record.stderr[0].strip() == "move_ms=2000;game_ms=20000"
