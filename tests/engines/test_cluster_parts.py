"""Parts of a cluster: credentials, the optional extra, the scheduler's log, games that end with a worker."""

import asyncio
import logging
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from distributed import Scheduler, Security
from distributed.comm import CommClosedError

from referee.judge.results import MatchResult, Reason
from tests.engines.lab_machines import LIMIT_S, why_refused
from tests.support.builders import make_record, one_object, run_command, write_tournament
from tests.support.ordinary_user import forbid
from tournaments.engines.remote.credentials import FILES, KEY, Credentials
from tournaments.engines.remote.extra import MODULES, ClusterError
from tournaments.engines.remote.scheduler_process import ClientGone
from tournaments.engines.remote.worker.game_process import ended_before_its_time

pytestmark = pytest.mark.any_database


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_private_and_there_is_nothing_else(tmp_path: Path) -> None:
    made = Credentials.made(tmp_path / "cluster" / "credentials")
    assert mode(made.directory) == 0o700
    assert {path.name: mode(path) for path in made.directory.iterdir()} == dict.fromkeys(FILES, 0o600)
    assert [path.name for path in made.directory.parent.iterdir()] == ["credentials"]


def test_those_that_are_there_are_used_again(tmp_path: Path) -> None:
    made = Credentials.made(tmp_path / "credentials")
    texts = [(made.directory / name).read_bytes() for name in FILES]
    assert [(Credentials.made(made.directory).directory / name).read_bytes() for name in FILES] == texts
    other = Credentials.made(tmp_path / "other")
    assert (other.directory / KEY).read_bytes() != (made.directory / KEY).read_bytes()


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, "exists", tmp_path)
    with pytest.raises(ClusterError, match=r"credentials cannot be read: Permission denied$"):
        Credentials.made(tmp_path / "credentials")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"ca\.pem: cannot be read: No such file .* copy the whole dir"):
        Credentials(tmp_path)
    made = Credentials.made(tmp_path / "credentials")
    key = made.directory / KEY
    key.chmod(0o640)
    with pytest.raises(ClusterError, match=rf"other users can read it.*chmod 600 {key}"):
        Credentials(made.directory)
    key.chmod(0o600)
    key.write_text("no key")
    with pytest.raises(ClusterError, match="this is no cluster's certificate and key"):
        Credentials(made.directory)
    with pytest.raises(ClusterError, match="credentials cannot be kept: File exists"):
        Credentials.made(key / "credentials")


def test_a_key_of_another_certificate(tmp_path: Path) -> None:
    made, other = Credentials.made(tmp_path / "made"), Credentials.made(tmp_path / "other")
    (made.directory / KEY).write_bytes((other.directory / KEY).read_bytes())
    with pytest.raises(ClusterError, match=r"certificate and key \(KEY_VALUES_MISMATCH\)"):
        Credentials(made.directory)


def test_they_end(tmp_path: Path) -> None:
    made = Credentials.made(tmp_path / "credentials")
    assert timedelta(days=360) < made.valid_until - datetime.now(UTC) < timedelta(days=366)
    Credentials(made.directory, made.valid_until)
    with pytest.raises(ClusterError, match=f"were valid until {made.valid_until:%Y-%m-%d}: remove them"):
        Credentials(made.directory, made.valid_until + timedelta(seconds=1))


def test_a_host_whose_clock_is_behind_is_named_as_the_cause(tmp_path: Path) -> None:
    made = Credentials.made(tmp_path / "credentials")
    with pytest.raises(ClusterError, match=r"credentials: this host's clock is behind: .* set the clock"):
        Credentials(made.directory, datetime.now(UTC) - timedelta(hours=1))


async def let_in(made: Credentials, other: Credentials) -> None:
    options = {"host": "127.0.0.1", "port": 0, "protocol": "tls", "dashboard_address": "127.0.0.1:0"}
    async with asyncio.timeout(LIMIT_S), Scheduler(security=made.security(), **options) as scheduler:
        address = scheduler.address
        assert address.startswith("tls://")
        plain = address.replace("tls://", "tcp://")
        assert await why_refused(address, made.security(), LIMIT_S) == ""
        assert await why_refused(address, other.security())
        assert await why_refused(plain, Security(require_encryption=False))
        assert not scheduler.workers
        assert await why_refused(address, made.security(), LIMIT_S) == ""  # it is still there
        with pytest.raises(RuntimeError, match="encryption required"):
            await why_refused(plain, made.security())


def test_a_scheduler_lets_in_holders_of_its_credentials_only(tmp_path: Path) -> None:
    asyncio.run(let_in(Credentials.made(tmp_path / "made"), Credentials.made(tmp_path / "other")))


# The extra, in processes that cannot import its modules


CUP = 'name = "Cup"\ngame = "kalah(1,1)"\nbots = ["first_legal", "greedy"]\n'
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys(("dask", "tornado", *{MODULES!r})))
from tournaments.cli.main import entry
entry()
"""
"""None in the place of a module: it cannot be imported, and is not found."""


@pytest.mark.slow
def test_without_the_extra_tournaments_are_played_here_only(tmp_path: Path) -> None:
    write_tournament(tmp_path, CUP)
    for command in (
        "tournament run cup.toml --engine dask",
        "worker --scheduler tls://127.0.0.1:1 --credentials credentials",
    ):
        done = run_command([sys.executable, "-c", WITHOUT, *command.split()], tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"Error: playing on a cluster needs packages that are not installed here ({', '.join(MODULES)}): "
            "pip install 'kalarena[cluster]'\n"
        )
        assert [path.name for path in tmp_path.iterdir()] == ["cup.toml"]
    done = run_command([sys.executable, "-c", WITHOUT, "tournament", "run", "cup.toml", "--json"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert one_object(done.stdout)["games_done"] == 2


# The scheduler's log


@pytest.mark.parametrize(
    ("error", "is_logged"),
    [
        (KeyError("Client-56c0b500-e715-11f1-8683-02fc00000001"), False),
        (CommClosedError("Comm <TLS (closed) Scheduler->Client> already closed."), False),
        (KeyError("tls://127.0.0.1:40659"), True),
        (RuntimeError("Client-56c0b500"), True),
        (None, True),
    ],
)
def test_a_client_that_vanished_is_not_logged(
    caplog: pytest.LogCaptureFixture, error: Exception | None, is_logged: bool
) -> None:
    logger = logging.getLogger("tests.scheduler")
    gone = ClientGone()
    logger.addFilter(gone)
    try:
        if error is None:
            logger.error("it cannot listen")
        else:
            try:
                raise error
            except Exception:
                logger.exception("Exception while handling op register-client")
    finally:
        logger.removeFilter(gone)
    assert bool(caplog.records) is is_logged


# Games that a bot's end decided


def lost(reason: Reason, status: int | None, winner: int | None = 1) -> dict[str, Any]:
    """Return the record's facts if player 0 lost, or nobody; the referee ends the other's process."""
    return {
        "result": MatchResult(winner, reason, "a sentence", None),
        "exit_status": (status, -9) if winner else (-9, status),
    }


@pytest.mark.parametrize(
    ("changes", "is_so"),
    [
        (lost(Reason.EXIT, -15), True),
        (lost(Reason.EXIT, -15, winner=0), True),
        (lost(Reason.EXIT, 0), True),  # a bot may handle the signal
        (lost(Reason.EXIT, 128 + 15), True),
        (lost(Reason.START, -15), True),
        (lost(Reason.TIMEOUT, -9), False),  # the referee's doing
        (lost(Reason.SCORE, -9), False),
        (lost(Reason.SCORE, -9, winner=None), False),
    ],
)
def test_which_games_were_ended_by_a_bots_end(changes: dict[str, Any], is_so: bool) -> None:
    assert ended_before_its_time(make_record(**changes)) is is_so
