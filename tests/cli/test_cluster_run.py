"""`kalarena tournament run --engine dask`, and the table [cluster] of its file."""

import asyncio
import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from distributed import Security

from referee.judge.results import GameRecord
from referee.sandbox.bubblewrap import Sandbox, Tier
from tests.engines.games import becomes
from tests.engines.lab_machines import (
    LIMIT_S,
    REFUSED_S,
    SCHEDULER,
    Machine,
    machine,
    printed_command,
    why_refused,
)
from tests.support.builders import invoke, kalarena, make_record, write_tournament
from tests.support.processes import all_end, descendants, open_pidfds
from tournaments.cli.main import INTERRUPTED, Usage
from tournaments.cli.tournament.engine_options import CLUSTER_FOLDER, DASK, EngineOptions, Notify, open_engine
from tournaments.cli.tournament.run import LOST_ADVICE
from tournaments.config.load import load_tournament
from tournaments.engines.remote import remote_engine
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.head import dask_engine
from tournaments.engines.remote.head.head import GONE
from tournaments.engines.remote.remote_engine import unique_name
from tournaments.reporting.game_verification import DeclaredTournament
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store

CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nrounds = {rounds}\nbots = ["first_legal", "greedy", "random:3"]\n'
ONE_ROUND = CUP.format(rounds=1)
ROUNDS = 3
GAMES = 6 * ROUNDS
UNCONFINED = ("--sandbox", "off")
"""Quicker, and whatever is left is easily seen."""
HERE = '[cluster]\nhost = "127.0.0.1"\n'

pytestmark = pytest.mark.any_database


def run_options(out: str, *more: str) -> tuple[str, ...]:
    return ("tournament", "run", "cup.toml", "--out", out, *more)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ("local", "tls://a:1", None),
            "--scheduler is for games that are played elsewhere: add --engine dask",
        ),
        (("local", None, Path("c")), "--credentials is for games that are played elsewhere"),
        ((DASK, "tls://a:1", None), "--scheduler needs --credentials"),
        ((DASK, "tcp://a:1", Path("c")), "must be an address like tls://HOST:PORT, not 'tcp://a:1'"),
    ],
)
def test_options_that_make_no_sense(options: tuple[Any, ...], why: str) -> None:
    with pytest.raises(Usage, match=why):
        EngineOptions(*options)


async def test_the_command_for_workers_and_refusals_are_passed_to_alert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def scheduler(*_: object) -> AsyncIterator[tuple[str, Credentials]]:
        yield "tls://head:1", Credentials.made(tmp_path / "credentials")

    @asynccontextmanager
    async def engine(*_: object, refused: Notify, **__: object) -> AsyncIterator[SimpleNamespace]:
        refused("lab-2 was refused")
        yield SimpleNamespace(slots=1, hosts=["lab-1"])

    monkeypatch.setattr(remote_engine, "open_scheduler_here", scheduler)
    monkeypatch.setattr(dask_engine, "open_dask_engine", engine)
    tournament = load_tournament(write_tournament(tmp_path, ONE_ROUND))
    alerts: list[str] = []
    async with open_engine(
        EngineOptions(DASK), tournament, tmp_path, Sandbox(), None, lambda _: None, alerts.append
    ):
        pass
    assert alerts[0] == "lab-2 was refused"
    assert alerts[1].startswith("on each machine that is to play, run:\n  kalarena worker --scheduler tls://")
    assert len(alerts) == 2


def test_no_worker_is_awaited_if_all_games_are_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scheduler(*_: object) -> None:
        raise AssertionError("a scheduler was started")

    monkeypatch.setattr(remote_engine, "open_scheduler_here", scheduler)
    command = (
        "tournament",
        "run",
        write_tournament(tmp_path, ONE_ROUND),
        "--out",
        tmp_path / "out",
        *UNCONFINED,
    )
    assert invoke(*command).exit_code == 0
    result = invoke(*command, "--engine", DASK)
    assert result.exit_code == 0, result.output
    assert "all of 6 games are in" in result.stderr


def test_control_groups_are_not_required_of_other_hosts() -> None:
    best = Sandbox(Tier.CGROUP, cgroup="/sys/fs/cgroup/x")
    assert EngineOptions(DASK).sandbox(best) == Sandbox(Tier.BUBBLEWRAP)
    assert EngineOptions().sandbox(best) == best
    for tier in (Tier.BUBBLEWRAP, Tier.WEAK, Tier.OFF):
        assert EngineOptions(DASK).sandbox(Sandbox(tier)) == Sandbox(tier)


def test_games_of_two_tournaments_have_different_names(tmp_path: Path) -> None:
    def name(text: str) -> str:
        return unique_name(load_tournament(write_tournament(tmp_path, text)))

    assert name(ONE_ROUND) == name(CUP.format(rounds=2))  # the same one, going on
    assert name(ONE_ROUND) != name(ONE_ROUND.replace("random:3", "random:4"))


# What the file says.


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('same_sped = "10%"', ".same_sped: unknown key; did you mean 'same_speed'?"),
        ("same_speed = 0.1", '.same_speed: must be a percentage like "10%", above 0 and below 100, not 0.1'),
        ('same_speed = "100%"', ".same_speed: must be a percentage like"),
        ('same_speed = "0%"', ".same_speed: must be a percentage like"),
        ('memory = "lots"', '.memory: must be an amount like "4 GiB" or "500 MB", not \'lots\''),
        ('walltime = "1 h"', ".walltime: must be hours, minutes and seconds like \"04:00:00\", not '1 h'"),
        ("minimum = 3\nmaximum = 2", ": minimum = 3 is more than maximum = 2"),
        ('scale_time = true\nsame_speed = "5%"', ": takes either same_speed or scale_time"),
        ("reference_speed = 5e5", ": reference_speed is what scale_time = true scales from"),
        ("scale_time = true\nreference_speed = 0.0", ".reference_speed: must be"),
    ],
)
def test_bad_settings_in_the_file(text: str, complaint: str, tmp_path: Path) -> None:
    path = write_tournament(tmp_path, f"{ONE_ROUND}[cluster]\n{text}")
    result = invoke("tournament", "run", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {path}: cluster{complaint}")


def test_settings_of_the_file(tmp_path: Path) -> None:
    text = '[cluster]\nsame_speed = "12.5%"\nminimum = 4\nport = 8786\nqueue = "short"\n'
    tournament = load_tournament(write_tournament(tmp_path, ONE_ROUND + text))
    settings = tournament.cluster
    assert (settings.same_speed, settings.minimum, settings.port, settings.queue) == (0.125, 4, 8786, "short")
    assert tournament.scaled_control is None


def test_scaled_time_belongs_to_the_tournaments_identity_and_to_the_verification(tmp_path: Path) -> None:
    text = f"{ONE_ROUND}[time]\nmove_s = 1.0\n"
    plain = load_tournament(write_tournament(tmp_path, text))
    text += "[cluster]\nscale_time = true\nreference_speed = 5e5"
    scaled = load_tournament(write_tournament(tmp_path, text))
    assert scaled.identity() == {**plain.identity(), "time limits": "scaled from 500000 positions/s"}
    with Store(tmp_path / "results.db") as store:
        store.claim("Cup", TournamentResults.of(scaled).config(), scaled.identity())
        declared = DeclaredTournament.of(TournamentResults.load(store))
    assert declared.control_of(make_record()).startswith("1 s per move (")
    assert declared.control_of(make_record(host_speed=250_000.0)).startswith("2 s per move (")


# Whole tournaments.


def table(folder: Path, out: str) -> str:
    return invoke("tournament", "table", folder / out).stdout


def records(out: Path) -> list[GameRecord]:
    with Store(TournamentDirectory(out).store_path) as store:
        return [store.record(game.key) for game in store.games()]


def played(out: Path) -> set[str]:
    with Store(TournamentDirectory(out).store_path) as store:
        return store.played()


async def kill(head: Machine) -> None:
    """SIGKILL; nothing that it had started is left."""
    below = open_pidfds(descendants(head.process.pid))
    assert below
    head.process.kill()
    assert await head.ends() == -signal.SIGKILL
    assert await trio.to_thread.run_sync(all_end, below)


@pytest.mark.kill
@pytest.mark.cluster
async def test_another_engine_continues_after_a_kill_to_the_same_table(tmp_path: Path) -> None:
    scaling = HERE + "scale_time = true\nreference_speed = 1e9\n"  # no host is as fast: all get more time
    write_tournament(tmp_path, CUP.format(rounds=ROUNDS) + scaling)
    assert kalarena(tmp_path, *run_options("here", *UNCONFINED)).returncode == 0
    mixed = tmp_path / "mixed"
    on_dask = run_options("mixed", "--engine", "dask", *UNCONFINED)

    async with machine(tmp_path, "head-1", on_dask) as head:
        said = await head.says("waiting for workers: 0 of 1 slots")
        async with machine(tmp_path, "lab-1", printed_command(said)) as lab:
            await head.says(f" of {GAMES} games\n")
            await kill(head)
            assert await lab.ends() == 0
    on_cluster = played(mixed)
    async with machine(tmp_path, "local", run_options("mixed", *UNCONFINED)) as local:
        assert await local.ends() == 0
    assert 0 < len(on_cluster) < GAMES
    assert f"Cup: going on with {len(on_cluster)} of {GAMES} games in mixed\n" in local.said
    assert table(tmp_path, "mixed") == table(tmp_path, "here")
    there = [record for record in records(mixed) if record.host_speed is not None]
    assert {record.key for record in there} == on_cluster
    for record in there:
        assert record.host == os.uname().nodename
        assert record.host_speed is not None
        assert record.control.move_s == round(10.0 * 1e9 / record.host_speed, 6)
    verified = invoke("verify", mixed)
    assert (verified.exit_code, verified.stdout) == (0, f"{GAMES} games verified, nothing wrong\n")
    folder = mixed / CLUSTER_FOLDER / "credentials"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


@pytest.mark.cluster
@pytest.mark.long
async def test_messages_without_a_worker_and_after_the_loss_of_the_scheduler(tmp_path: Path) -> None:
    games = 4 * GAMES  # a part of them is left when the second worker is named, also on a quick machine
    write_tournament(tmp_path, CUP.format(rounds=4 * ROUNDS))
    write_tournament(tmp_path, ONE_ROUND + "[cluster]\nminimum = 99\n", "large.toml")
    credentials = str(Credentials.made(tmp_path / "credentials").directory)
    async with machine(tmp_path, "scheduler", (credentials, "--host", "127.0.0.1"), SCHEDULER) as scheduler:
        address = json.loads(await scheduler.says("\n"))["address"]
        joining = ("--scheduler", address, "--credentials", credentials)
        on_dask = ("--engine", "dask", *joining, *UNCONFINED)
        waiting_options = ("tournament", "run", "large.toml", "--out", "large", *on_dask)
        async with (
            machine(tmp_path, "head", run_options("out", *on_dask)) as head,
            machine(tmp_path, "waiting", waiting_options) as waiting,
        ):
            await head.says("Cup: waiting for workers: 0 of 1 slots\n")
            async with machine(tmp_path, "lab-1", ("worker", *joining, "--slots", "1")) as lab:
                await head.says(f" of {games} games\n")
                lab.process.terminate()
                assert await lab.ends() == 0
            await head.says("Cup: no worker is left: games go on as soon as one joins\n")
            await waiting.says("Cup: waiting for workers: 1 of 99 slots\n")
            async with machine(tmp_path, "lab-2", ("worker", *joining, "--slots", "1")) as lab:
                await lab.says("joined")  # before that, the loss would be a failure to join
                await becomes(lambda: head.said.count("Cup: 1 game at a time, on ") == 2, LIMIT_S)
                scheduler.process.kill()
                for one in (head, waiting):
                    assert await one.ends() == 1
                    assert one.said.splitlines()[-1] == f"Error: {GONE}: {LOST_ADVICE}"
                    assert "Traceback" not in one.said
                assert await lab.ends() == 0
    told = max(map(int, re.findall(rf"Cup: (\d+) of {games} games\n", head.said)))
    assert told <= len(played(tmp_path / "out")) < games


@pytest.mark.cluster
async def test_an_interrupted_run_ends_its_encrypted_scheduler(tmp_path: Path) -> None:
    write_tournament(tmp_path, ONE_ROUND + HERE)
    async with machine(tmp_path, "head", run_options("out", "--engine", "dask")) as head:
        _, _, address, _, credentials = printed_command(await head.says("waiting for workers"))
        trusted = Credentials(Path(credentials)).security()
        plain = address.replace("tls://", "tcp://")
        assert await refusal(address, trusted, LIMIT_S) == ""
        assert await refusal(plain, Security(require_encryption=False))
        head.process.send_signal(signal.SIGINT)
        assert await head.ends() == INTERRUPTED
        assert "stopped with 6 of 6 games to play; the same command goes on:" in head.said
        assert await refusal(address, trusted)


async def refusal(address: str, security: Security, timeout_s: float = REFUSED_S) -> str:
    """The reason why a scheduler is not reached; empty if it is."""
    return await trio.to_thread.run_sync(lambda: asyncio.run(why_refused(address, security, timeout_s)))


@pytest.mark.cluster
def test_a_scheduler_that_cannot_listen(tmp_path: Path) -> None:
    write_tournament(tmp_path, ONE_ROUND + '[cluster]\nhost = "192.0.2.1"\n')  # RFC 5737: nobody's
    done = kalarena(tmp_path, *run_options("out", "--engine", "dask"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "Error: the scheduler could not be started: [Errno 99] Cannot assign requested address"
    )


@pytest.mark.cluster
@pytest.mark.skipif(shutil.which("sbatch") is not None, reason="Slurm is installed here")
def test_the_message_without_slurm(tmp_path: Path) -> None:
    write_tournament(tmp_path, ONE_ROUND + HERE)
    done = kalarena(tmp_path, *run_options("out", "--engine", "slurm"))
    assert done.returncode == 1
    assert "Error: sbatch was not found: --engine slurm is for a login node" in done.stderr
