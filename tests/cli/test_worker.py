"""`kalarena worker` on a lab machine: refusals, joining, leaving."""

import os
import signal
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import trio
from distributed import Client

from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import Probe, probe
from tests.engines.games import becomes
from tests.engines.lab_machines import LIMIT_S, machine
from tests.support.builders import invoke
from tests.support.processes import descendants
from tournaments.cli import worker
from tournaments.cli.doctor import Health, examine
from tournaments.cli.worker import ended_message, refusal_of_tier
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import Versions
from tournaments.engines.remote.scheduler import open_scheduler
from tournaments.engines.remote.waiting import DEMANDS, Demands
from tournaments.engines.remote.worker import lab_worker
from tournaments.engines.remote.worker.worker_plugin import Lifetime

WEAK = Probe(Sandbox(Tier.WEAK), "bubblewrap (bwrap) is not installed", "apt-get install -y bubblewrap")
CONFINED = Probe(Sandbox(Tier.BUBBLEWRAP), "no control group was delegated to us")

pytestmark = pytest.mark.any_database


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    return Credentials.made(tmp_path_factory.mktemp("cluster") / "credentials")


def joining(scheduler: str, credentials: Path) -> tuple[str, ...]:
    return ("worker", "--scheduler", scheduler, "--credentials", str(credentials))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786", ""])
def test_an_unencrypted_scheduler_is_refused(address: str, tmp_path: Path) -> None:
    result = invoke(*joining(address, tmp_path))
    assert result.exit_code == 2
    assert "must be an address like tls://HOST:PORT; anything else is not encrypted" in result.stderr


def test_missing_credentials(tmp_path: Path) -> None:
    result = invoke(*joining("tls://127.0.0.1:1", tmp_path))
    assert result.exit_code == 2
    why = f"{tmp_path / 'ca.pem'}: cannot be read: No such file or directory; copy the whole"
    assert why in result.stderr


def test_an_address_without_a_scheduler(credentials: Credentials, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_worker, "CONNECT_LIMIT_S", 0.5)
    result = invoke(*joining("tls://127.0.0.1:1", credentials.directory))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"Error: tls://127.0.0.1:1: no scheduler at this address accepts the credentials of "
        f"{credentials.directory}"
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
    refusal = refusal_of_tier(wanted, found, replace(health, confines=held))
    if why is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.startswith("this host does not join: ")
        assert why in refusal


@pytest.fixture(scope="module")
def health() -> Health:
    return examine(Probe(Sandbox()))


@pytest.mark.slow
async def test_a_scheduler_that_does_not_start_in_time_is_an_error(
    credentials: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tournaments.engines.remote.scheduler.START_LIMIT_S", 0.0)
    with pytest.raises(ClusterError, match=r"did not start within 0 s; .*log may have the reason"):
        async with open_scheduler(credentials, tmp_path / "log", "127.0.0.1"):
            pass


@pytest.mark.slow
async def test_a_worse_host_than_the_tournament_demands_does_not_join(
    credentials: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "probe", lambda: WEAK)
    monkeypatch.setattr(lab_worker, "CONNECT_LIMIT_S", LIMIT_S)
    async with open_scheduler(credentials, tmp_path / "log", "127.0.0.1") as address:

        def refusal(demands: Demands, *more: str) -> str:
            with Client(address, security=credentials.security(), set_as_default=False) as client:
                client.set_metadata([DEMANDS], demands.to_json())
            result = invoke(*joining(address, credentials.directory), *more)
            assert (result.exit_code, result.stdout) == (2, "")
            return result.stderr

        for demands, options, why in (
            (
                Demands(tier=Tier.BUBBLEWRAP),
                (),
                "confined by bubblewrap, and weak is the best that there is here",
            ),
            (
                Demands(),
                ("--require-tier", "bubblewrap+cgroup"),
                "confined by bubblewrap+cgroup, and weak is the best",
            ),
            (
                Demands(versions=Versions("99.9", "3.99")),
                (),
                f"has {Versions()}, and this tournament needs kalarena 99.9 on Python 3.99",
            ),
            (
                Demands(programs=("sh", "/opt/befunge", "befunge")),
                (),
                f"Error: {os.uname().nodename} lacks befunge, and all bots of this tournament need that",
            ),
        ):
            assert why in await trio.to_thread.run_sync(refusal, demands, *options)
        others = Credentials.made(tmp_path / "others")
        monkeypatch.setattr(lab_worker, "CONNECT_LIMIT_S", 1.0)
        result = await trio.to_thread.run_sync(invoke, *joining(address, others.directory))
        assert (result.exit_code, result.stdout) == (1, "")
        refused = f"Error: {address}: no scheduler at this address accepts the credentials of"
        assert result.stderr.startswith(refused)


@pytest.mark.slow
def test_a_lifetime_includes_the_time_until_the_worker_joins(
    credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0

    def slow_probe() -> Probe:
        nonlocal now
        now += 30.0
        return WEAK

    joined: list[dict[str, Any]] = []
    monkeypatch.setattr(worker, "probe", slow_probe)
    monkeypatch.setattr(lab_worker, "fetch_demands", lambda *_: Demands())
    monkeypatch.setattr(lab_worker, "work", lambda _address, _trusted, how, **_calls: joined.append(how))
    monkeypatch.setattr("time.time", lambda: now)
    command = joining("tls://127.0.0.1:1", credentials.directory)
    assert invoke(*command, "--lifetime", "100").exit_code == 0
    (lifetime,) = (plugin for plugin in joined[0]["plugins"] if isinstance(plugin, Lifetime))
    assert lifetime.ends_at == 1100.0


@pytest.mark.cluster
async def test_a_worker_joins_and_ends_by_a_signal_or_its_lifetime_or_with_the_scheduler(
    credentials: Credentials, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(open_scheduler(credentials, tmp_path / "log", "127.0.0.1"))
        join = (*joining(address, credentials.directory), "--slots", "3")
        brief_life = (*join, "--lifetime", "21")  # 20 s of it are kept free for leaving
        async with (
            machine(tmp_path, "stopped", join) as stopped,
            machine(tmp_path, "killed", join) as killed,
            machine(tmp_path, "brief", brief_life) as brief,
            machine(tmp_path, "early", join) as early,
            machine(tmp_path, "last", join) as last,
        ):
            await early.says(", sandbox ")  # and now it joins
            early.process.send_signal(signal.SIGTERM)
            said = await stopped.says("joined")
            await killed.says("joined")
            said_last = await last.says("joined")
            assert await early.ends() == 0
            assert early.said.endswith("\nstopped\n")
            assert "joined" not in early.said
            await becomes(lambda: is_empty(early.process.pid), LIMIT_S)
            assert said.startswith(f"{os.uname().nodename}: ")
            assert f"sandbox {probe().sandbox.tier.value}, " in said
            assert f"joined {address}: plays 3 games at a time until this is stopped\n" in said
            found = await trio.to_thread.run_sync(offload_thresholds, address, credentials)
            assert set(found.values()) == {False}
            below = descendants(stopped.process.pid)
            assert below
            stopped.process.send_signal(signal.SIGTERM)
            assert await stopped.ends() == 0
            assert stopped.said == f"{said}stopped\n"
            await becomes(lambda: not any(map(is_running, below)), LIMIT_S)
            # SIGKILL leaves no process either.
            assert killed.process.returncode is None
            below = descendants(killed.process.pid)
            killed.process.kill()
            await becomes(lambda: not any(map(is_running, below)), LIMIT_S)
            assert await brief.ends() == 0
            assert brief.said.endswith(f"{ended_message(address)}\n")
            await stack.aclose()
            assert await last.ends() == 0
            assert last.said.removeprefix(said_last) == f"{ended_message(address)}\n"


def offload_thresholds(address: str, credentials: Credentials) -> dict[str, object]:
    """Return the minimum size of messages that each worker packs in a thread."""
    with Client(address, security=credentials.security(), set_as_default=False) as client:
        # The module by its name: the value of the worker, not of this process.  A leaving worker is ignored.
        comm = "distributed.comm.utils"
        return dict(client.run(lambda: import_module(comm).OFFLOAD_THRESHOLD, on_error="ignore"))


def is_empty(group: int) -> bool:
    """Return True if no process of a group runs."""
    running = (status(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit())
    return not any(state != "Z" and int(its) == group for state, its in running)


def is_running(pid: int) -> bool:
    return status(pid)[0] != "Z"


def status(pid: int) -> tuple[str, str]:
    """State and group of a process.

    A process that is gone counts as a zombie: its adopter, perhaps this process, may never read its status.
    """
    try:
        state, _parent, group = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[:3]
    except OSError:
        return "Z", "0"
    return state, group
