"""The tier bubblewrap+cgroup on a real kernel without autogroup: shares, cores, and the ends of groups."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY_ROOT
from tests.vm.guest import MOVE_CPU_S
from tests.vm.results import Results, booted

SPINNER_GAMES = int(os.environ.get("KALARENA_VM_GAMES", "3"))
"""Games against a spinner, by root and by a user each."""
BOOT_LIMIT_S = 1800.0 + 240.0 * SPINNER_GAMES
OF_WHAT_IS_LEFT = 0.1
"""Most CPU time of a bot off turn with weight 1, as a share of its opponent's time: the kernel's is 1 %."""

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def bots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled bots of these tests."""
    folder = tmp_path_factory.mktemp("bots")
    folder.chmod(0o755)  # an ordinary user of the machine reads it
    for source in (Path(__file__).parent / "bots").iterdir():
        shutil.copytree(source, folder / source.name)
        shutil.copy(REPOSITORY_ROOT / "sample_bots" / "first_legal.py", folder / source.name)
    spinner = folder / "spinner"
    subprocess.run(["cc", "-O1", "-pthread", "-o", spinner / "spin", spinner / "spin.c"], check=True)
    return folder


@pytest.fixture(scope="module")
def boot(bots: Path) -> Results:
    return booted("tests.vm.guest", "tiers", str(bots), str(SPINNER_GAMES), limit_s=BOOT_LIMIT_S)


def test_doctor_finds_the_best_tier(boot: Results) -> None:
    health = boot.one("doctor as root")
    assert (health["tier"], health["confines"], health["why_not_better"]) == ("bubblewrap+cgroup", True, "")


def test_doctor_finds_it_as_a_user_to_whom_systemd_has_delegated_a_group(boot: Results) -> None:
    health = boot.one("doctor as user")
    assert health["user"] != 0
    assert (health["tier"], health["confines"], health["why_not_better"]) == ("bubblewrap+cgroup", True, "")


def test_doctor_names_controllers_that_are_missing(boot: Results) -> None:
    health = boot.one("doctor without processors")
    assert (health["tier"], health["confines"]) == ("bubblewrap+cgroup", True)
    assert "the controller cpu is not delegated" in health["why_not_better"]
    assert "the controller cpuset is not delegated" in health["why_not_better"]


def test_doctor_says_that_user_namespaces_are_off(boot: Results) -> None:
    said = boot.one("user namespaces off")
    assert said["status"] == 1
    text = " ".join(said["output"].split())
    assert "hostile bots are NOT held" in text
    assert "no better Bubblewrap cannot make its namespaces here (bwrap: " in text
    assert "max_*_namespaces exceeded (ENOSPC))" in text
    assert "sudo sysctl -w user.max_user_namespaces=15000" in text
    assert said["errors"] == ""


def test_the_groups_counters_are_those_of_the_bots_own_clocks(boot: Results) -> None:
    game = boot.one("cpu.stat")
    assert game["sandbox"] == "bubblewrap+cgroup"
    moves = [int(word) / 1e6 for word in game["stderr"][0].split("took")[0].split()[1:]]
    assert sum(moves) < game["cpu_s"][0], "its start takes time, too"
    assert all(MOVE_CPU_S <= move < 2 * MOVE_CPU_S for move in moves)
    assert game["off_turn_cpu_s"][1] > 0, "its opponent computes off turn"
    assert all(0 < peak < 256 for peak in game["peak_memory_mb"])


def test_a_suspended_bot_uses_no_processor(boot: Results) -> None:
    game = boot.one("suspend")
    assert game["reason"] == "score"
    assert game["off_turn_cpu_s"][1] == 0


@pytest.mark.parametrize(
    ("check", "reported"),
    [
        pytest.param("own core", ["widened", "1"], id="by the cpuset and the system call"),
        pytest.param("own cpuset", ["widened", "1"], id="by the cpuset alone"),
        pytest.param("no cpuset", ["widened", "0", "1"], id="but for these"),
    ],
)
def test_a_bot_cannot_leave_its_core(boot: Results, check: str, reported: list[str]) -> None:
    """Core 1 is its game's: its group has no other one, and with ``own_core`` its mask cannot be changed."""
    game = boot.one(check)
    assert game["sandbox"] == "bubblewrap+cgroup"
    assert game["stderr"][0].split() == reported


@pytest.mark.parametrize("who", ["root", "user"])
def test_a_spinner_costs_its_opponent_no_game(boot: Results, who: str) -> None:
    games = boot.all("spinner" if who == "root" else "spinner as user")
    print(f"{len(games)} games, the longest turn took {max(game['longest_wall_s'] for game in games):.1f} s")
    for game in games:
        assert game["void"] == ""
        # On its own turn the spinner has 64 threads too many, and loses some games on time by itself.
        assert game["reason"] == "score" or game["winner"] == game["thinker"], game["detail"]
        spinner = 1 - game["thinker"]
        assert game["off_turn_cpu_s"][spinner] < OF_WHAT_IS_LEFT * game["cpu_s"][game["thinker"]]


def test_the_autogroups_were_off(boot: Results) -> None:
    assert boot.one("autogroup")["enabled"] == "0"


def test_the_spinner_does_starve_its_opponent_without_weights(boot: Results) -> None:
    game = boot.one("spinner without weights")
    assert game["void"] or game["reason"] != "score" or game["longest_wall_s"] > 10 * MOVE_CPU_S


def test_groups_are_gone_after_their_games(boot: Results) -> None:
    for check in ("cpu.stat", "suspend", "own core", "own cpuset"):
        assert boot.one(check)["groups"] == []
    assert boot.one("groups of the user")["groups"] == []


def test_groups_are_gone_after_a_kill_of_the_referee_and_the_next_start(boot: Results) -> None:
    killed = boot.one("killed referee")
    assert len(killed["during"]) == 2
    assert killed["populated"] == []
    assert killed["groups"] == []
