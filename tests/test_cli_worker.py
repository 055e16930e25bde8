"""`kalarena worker` as the owner of a lab machine meets it."""

import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import trio
from distributed import Client

from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import Probe, probe
from tests.builders import invoke
from tests.lab_machines import LIMIT_S, machine
from tests.test_engines import becomes
from tests.test_resume import descendants
from tournaments.cli import worker
from tournaments.cli.doctor import Health, examine
from tournaments.cli.worker import ended_message, refusal_of_tier
from tournaments.engines.remote import requirements
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import MODULES
from tournaments.engines.remote.host import Versions
from tournaments.engines.remote.requirements import publish_demands
from tournaments.engines.remote.scheduler import open_scheduler
from tournaments.engines.remote.waiting import Demands

WEAK = Probe(Sandbox(Tier.WEAK), "bubblewrap (bwrap) is not installed", "apt-get install -y bubblewrap")
CONFINED = Probe(Sandbox(Tier.BUBBLEWRAP), "no control group was delegated to us")
COMM = "distributed.comm.utils"

pytestmark = pytest.mark.any_database


@pytest.fixture(scope="module")
def health() -> Health:
    return examine(Probe(Sandbox()))


@pytest.mark.parametrize("module", MODULES)
def test_without_the_extra_it_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = invoke("worker", "--scheduler", "tls://127.0.0.1:1", "--credentials", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"Error: playing on a cluster needs what is not installed here ({module}): "
        "pip install 'kalarena[cluster]'\n"
    )


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786", ""])
def test_a_scheduler_that_is_not_encrypted(address: str, tmp_path: Path) -> None:
    result = invoke("worker", "--scheduler", address, "--credentials", str(tmp_path))
    assert result.exit_code == 2
    assert "must be an address like tls://HOST:PORT; anything else is not encrypted" in result.stderr


def test_credentials_that_are_not_there(tmp_path: Path) -> None:
    result = invoke("worker", "--scheduler", "tls://127.0.0.1:1", "--credentials", str(tmp_path))
    assert result.exit_code == 2
    assert (
        f"{tmp_path / 'ca.pem'}: cannot be read: No such file or directory; copy the whole" in result.stderr
    )


@pytest.mark.parametrize(
    ("wanted", "found", "held", "why"),
    [
        (Tier.OFF, WEAK, False, None),
        (Tier.WEAK, WEAK, False, None),
        (Tier.WEAK, CONFINED, False, None),
        (Tier.BUBBLEWRAP, CONFINED, True, None),
        (Tier.BUBBLEWRAP, CONFINED, False, "its sandbox has a hole"),
        (
            Tier.BUBBLEWRAP,
            WEAK,
            False,
            "bots must be confined by bubblewrap, and weak is the best that there is here: bubblewrap "
            "(bwrap) is not installed; try: apt-get install -y bubblewrap",
        ),
        (Tier.CGROUP, CONFINED, True, "bubblewrap is the best that there is here: no control group was"),
    ],
)
def test_a_host_joins_if_it_confines_bots_well_enough(
    wanted: Tier, found: Probe, held: bool, why: str | None, health: Health
) -> None:
    said = refusal_of_tier(wanted, found, replace(health, confines=held))
    if why is None:
        assert said is None
    else:
        assert said is not None
        assert said.startswith("this host does not join: ")
        assert why in said


async def test_a_host_with_other_credentials_does_not_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "CONNECT_LIMIT_S", 1.0)
    mine, others = (Credentials.made(tmp_path / name) for name in ("mine", "others"))
    async with open_scheduler(mine, tmp_path / "log", "127.0.0.1") as address:
        asked = ("worker", "--scheduler", address, "--credentials", str(others.directory))
        result = await trio.to_thread.run_sync(invoke, *asked)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"Error: {address}: no scheduler there lets us in with the credentials of"
    )


async def test_the_tournament_demands_and_a_worse_host_does_not_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = Credentials.made(tmp_path / "credentials")
    monkeypatch.setattr(worker, "probe", lambda: WEAK)
    async with open_scheduler(credentials, tmp_path / "log", "127.0.0.1") as address:

        def ask(demands: Demands, *more: str) -> str:
            publish_demands(address, credentials, demands)
            asked = ("--scheduler", address, "--credentials", str(credentials.directory), *more)
            result = invoke("worker", *asked)
            assert (result.exit_code, result.stdout) == (2, "")
            return result.stderr

        confined = Demands(tier=Tier.BUBBLEWRAP)
        said = await trio.to_thread.run_sync(ask, confined)
        assert "confined by bubblewrap, and weak is the best that there is here" in said
        said = await trio.to_thread.run_sync(ask, Demands(), "--require-tier", "bubblewrap+cgroup")
        assert "confined by bubblewrap+cgroup, and weak is the best" in said
        said = await trio.to_thread.run_sync(ask, Demands(versions=Versions("99.9", "3.99")))
        assert f"has {Versions()}, and kalarena 99.9 on Python 3.99 is played with" in said
        said = await trio.to_thread.run_sync(ask, Demands(programs=("sh", "/opt/befunge", "befunge")))
        assert f"Error: {os.uname().nodename} lacks befunge, and bots of this tournament need that" in said


@pytest.mark.slow
async def test_it_joins_says_who_it_is_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    credentials = Credentials.made(tmp_path / "credentials")
    async with open_scheduler(credentials, tmp_path / "log", "127.0.0.1") as address:
        asked = (
            "worker",
            "--scheduler",
            address,
            "--credentials",
            str(credentials.directory),
            "--slots",
            "3",
        )
        brief = (*asked, "--lifetime", "21")  # 20 s of it are kept free for leaving
        async with (
            machine(tmp_path, "told", asked) as told,
            machine(tmp_path, "left", asked) as left,
            machine(tmp_path, "brief", brief) as over,
            machine(tmp_path, "early", asked) as early,
        ):
            await early.says(", sandbox ")  # and now it joins
            early.process.send_signal(signal.SIGTERM)
            said = await told.says("joined")
            await left.says("joined")
            assert await early.ends() == 0
            assert early.said.endswith("\nstopped\n")
            assert "joined" not in early.said
            await becomes(lambda: is_empty(early.process.pid), LIMIT_S)
            assert said.startswith(f"{os.uname().nodename}: ")
            assert f"sandbox {probe().sandbox.tier.value}, " in said
            assert f"joined {address}: plays 3 games at a time until this is stopped\n" in said
            found = await trio.to_thread.run_sync(offload_thresholds, address, credentials)
            assert set(found.values()) == {False}
            below = descendants(told.process.pid)
            assert below
            told.process.send_signal(signal.SIGTERM)
            assert await told.ends() == 0
            assert told.said == f"{said}stopped\n"
            await becomes(lambda: not any(map(is_there, below)), LIMIT_S)
            # Who is killed at once leaves no process either.
            assert left.process.returncode is None
            below = descendants(left.process.pid)
            left.process.kill()
            await becomes(lambda: not any(map(is_there, below)), LIMIT_S)
            # Who has only so long leaves by itself.
            assert await over.ends() == 0
            assert over.said.endswith(f"{ended_message(address)}\n")


def offload_thresholds(address: str, credentials: Credentials) -> dict[str, object]:
    """Of each worker, from which size on it packs messages in a thread."""
    with Client(address, security=credentials.security(), set_as_default=False) as client:
        # By its name: what a worker has, not what we have.  Ignored is one that leaves.
        found = client.run(lambda: import_module(COMM).OFFLOAD_THRESHOLD, on_error="ignore")
        return dict(found)


def is_empty(group: int) -> bool:
    """Whether no process of a group runs."""
    running = (status(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit())
    return not any(state != "Z" and int(its) == group for state, _parent, its in running)


def is_there(pid: int) -> bool:
    """Whether a process runs."""
    return status(pid)[0] != "Z"


def status(pid: int) -> tuple[str, str, str]:
    """State, parent and group of a process; one that is gone is like one that has ended, which stays until
    somebody asks for its status: who adopts it, as tests before this one may have made us do, may never ask.
    """
    try:
        state, parent, group = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[:3]
    except OSError:
        return "Z", "0", "0"
    return state, parent, group


@pytest.mark.slow
async def test_it_ends_with_the_scheduler(tmp_path: Path) -> None:
    credentials = Credentials.made(tmp_path / "credentials")
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(open_scheduler(credentials, tmp_path / "log", "127.0.0.1"))
        asked = ("worker", "--scheduler", address, "--credentials", str(credentials.directory))
        async with machine(tmp_path, "lab", asked) as lab:
            said = await lab.says("joined")
            await stack.aclose()
            assert await lab.ends() == 0
        assert lab.said.removeprefix(said) == f"{ended_message(address)}\n"


def test_nobody_is_at_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "CONNECT_LIMIT_S", 0.5)
    credentials = str(Credentials.made(tmp_path / "credentials").directory)
    result = invoke("worker", "--scheduler", "tls://127.0.0.1:1", "--credentials", credentials)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        f"127.0.0.1:1: no scheduler there lets us in with the credentials of {credentials}" in result.stderr
    )
