"""`kalarena solve`: texts and JSON of solutions, limits, and messages for bad input."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tournaments.cli import solve


def run(*arguments: str) -> Result:
    return CliRunner().invoke(solve.command, arguments)


def test_solution_for_people() -> None:
    result = run("kalah(3,2)+empty-capture")
    assert result.exit_code == 0
    assert "South, the first player, wins by 4" in result.stdout
    assert "Best for South: " in result.stdout
    assert "positions searched in" in result.stdout
    assert "seeds in the pits)" in result.stdout
    assert result.stderr == ""
    assert "South, the first player, loses by 2" in run("kalah(2,2)").stdout
    assert "South, the first player, draws" in run("kalah(1,1)+empty-capture").stdout
    won = run("kalah(3,2)+empty-capture+majority-end").stdout
    assert "South, the first player, wins\n" in won
    assert "by" not in won.splitlines()[0]


def test_position() -> None:
    # North has one move, which takes the last seed of both sides: 4 + 1 to 3.
    result = run("kalah(2,2)", "--position", "0,1,3,0,2,2;North", "--json")
    found = json.loads(result.stdout)
    assert found["to_move"] == "North"
    assert found["first_player"] == "South"
    assert found["best"] == ["2"]
    assert found["value"] == (2 + 2) - (3 + 1)


def test_json() -> None:
    result = run("kalah(4,2)", "--json", "--all-moves")
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["value"] == found["low"] == found["high"] == 6
    assert found["unit"] == "margin"
    assert found["complete"] is True
    values = {each["move"]: each["value"] for each in found["moves"]}
    assert set(values) == {"1", "2", "3", "4"}
    assert found["best"] == [move for move, value in values.items() if value == 6]
    assert all(value is not None and value <= 6 for value in values.values())
    assert found["line"][0]["seat"] == "South"
    assert found["line"][0]["moves"][0] in found["best"]
    assert found["database_positions"] > 0


def test_limit_tells_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sample_bots.solver.prover.SLICE", 20)
    result = run("kalah(4,3)", "--positions", "40")
    assert result.exit_code == 1
    assert "South, the first player, ends between" in result.stdout
    assert "A limit was reached" in result.stdout
    found = json.loads(run("kalah(4,3)", "--positions", "40", "--json").stdout)
    assert found["complete"] is False
    assert found["value"] is None
    assert found["low"] <= 6 <= found["high"]
    majority = run("kalah(4,3)+majority-end", "--positions", "40")
    assert majority.exit_code == 1
    assert "at most wins" in majority.stdout


def test_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_watch: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(solve._Progress, "on_slice", stop)
    result = run("kalah(4,3)")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr.startswith(
        "Stopped after 0 positions: South, the first player, ends between -24 and +24"
    )
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kalamala",), "only Kalah can be solved"),
        (("kalah(9)",), "a board is (PITS,SEEDS)"),
        (("draughts",), "draughts"),
        (("kalah(20,20)",), "800 seeds in 40 pits are too many"),
        (("kalah(3,2)", "--position", "1,2"), "numbers"),
        (("kalah(1,1)", "--position", "0,1,0,1"), "the game is over in this position: 1 to 1"),
        (("kalah(3,2)", "--seconds", "0"), "--seconds"),
        (("kalah(3,2)", "--memory-mb", "0"), "--memory-mb"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
