"""What bots do while their opponent thinks: real processes, bare and confined."""

import sys
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job, play_game
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import probe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

BOT = Path(__file__).with_name("thinking_bot.py")
WAYS = ("--ponder", "--child-ponder", "--fork-ponder")
OPPONENT_S = 0.15
"""What the opponent thinks for a move; it has two or more moves in a game."""
LIMITS = Limits(end_grace_s=10.0)


@pytest.fixture(params=["bare", "confined"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if request.param == "bare":
        return Sandbox()
    found = probe()
    if not found.sandbox.tier.confines:
        pytest.skip(f"no sandbox here: {found.why_not_better}")
    return found.sandbox


def thinker(name: str, *arguments: str) -> Player:
    return Player(
        name, (sys.executable, "-S", "-E", str(BOT), *arguments), str(BOT.parent), reads=(str(BOT),)
    )


async def play(
    ponder: str, players: tuple[Player, Player], sandbox: Sandbox, setup_s: float = 0.75, move_s: float = 20.0
) -> GameRecord:
    control = TimeControl(move_s=move_s, start_s=60.0, setup_s=setup_s, ponder=ponder)
    record = await play_game(Job("ponder", "kalah(3,2)", players, control, LIMITS, sandbox=sandbox))
    assert record.result.reason is Reason.SCORE, record.result.detail
    # Both have read END, and have ended by themselves.
    assert record.exit_status == (0, 0)
    assert all(text.startswith("ended") for text in record.stderr), record.stderr
    return record


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("way", WAYS)
async def test_suspend_stops_whatever_ponders(way: str, seat: int, sandbox: Sandbox) -> None:
    ponderer, opponent = thinker("ponderer", way), thinker("opponent", f"--sleep={OPPONENT_S}")
    players = (ponderer, opponent) if seat == 0 else (opponent, ponderer)
    measured = (await play("measure", players, sandbox)).off_turn_cpu_us[seat]
    stopped = (await play("suspend", players, sandbox)).off_turn_cpu_us[seat]
    assert measured is not None
    assert stopped is not None
    # A suspended bot may compute for the moment until the stop reaches it.  On a busy machine the other one
    # gets less than all of the time, but far more than that.
    assert measured > 20_000
    assert stopped < measured / 5


async def test_suspended_bots_that_do_not_ponder_play_as_ever(sandbox: Sandbox) -> None:
    players = (thinker("one", "--sleep=0.01"), thinker("other", "--cpu=0.01"))
    record = await play("suspend", players, sandbox)
    assert len(record.moves) == 5


async def test_the_time_of_being_stopped_is_not_the_bots(sandbox: Sandbox) -> None:
    players = (thinker("one", "--sleep=0.4"), thinker("other"))
    record = await play("suspend", players, sandbox)
    for move in record.moves:
        if move.player == 1:
            assert move.charged_us < 300_000, move


async def test_setup_that_was_suspended_is_free_in_the_second_players_first_turn(sandbox: Sandbox) -> None:
    players = (thinker("one", "--sleep=0.01"), thinker("other", "--setup=0.5"))
    record = await play("suspend", players, sandbox, setup_s=20.0)
    first_of_other = next(move for move in record.moves if move.player == 1)
    assert first_of_other.charged_us == 0
    assert first_of_other.wall_us > 100_000
