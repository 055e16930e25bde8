"""How Python runs meanwhile, and afterwards."""

import gc
import sys
from typing import Any

import pytest

from tournaments.processes.process_settings import GC_THRESHOLDS, SWITCH_S, prepare_for_many_games


def settings() -> tuple[Any, float]:
    return gc.get_threshold(), sys.getswitchinterval()


def test_it_runs_as_before_afterwards() -> None:
    before = settings()
    with prepare_for_many_games():
        thresholds, interval = settings()
        assert thresholds == GC_THRESHOLDS != before[0]
        assert interval == pytest.approx(SWITCH_S)
        assert interval < before[1]
    assert settings() == before


def test_it_runs_as_before_after_an_error() -> None:
    before = settings()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert settings() == before


def interrupted() -> None:
    with prepare_for_many_games():
        raise KeyboardInterrupt
