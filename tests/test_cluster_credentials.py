"""The temporary credentials of a cluster: files, and a real scheduler that lets nobody else in."""

import asyncio
import stat
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from distributed import Scheduler, Security

from tests.lab_machines import LIMIT_S, why_refused
from tournaments.engines.remote.credentials import FILES, KEY, Credentials
from tournaments.engines.remote.extra import ClusterError


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


def run(waited_for: Awaitable[Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(LIMIT_S):
            await waited_for

    asyncio.run(bounded())


def test_a_scheduler_lets_in_who_has_them_and_nobody_else(tmp_path: Path) -> None:
    made, other = Credentials.made(tmp_path / "made"), Credentials.made(tmp_path / "other")

    async def play() -> None:
        async with Scheduler(
            host="127.0.0.1",
            port=0,
            protocol="tls",
            security=made.security(),
            dashboard_address="127.0.0.1:0",
        ) as scheduler:
            address = scheduler.address
            assert address.startswith("tls://")
            plain = address.replace("tls://", "tcp://")
            assert await why_refused(address, made.security()) == ""
            assert await why_refused(address, other.security())
            assert await why_refused(plain, Security(require_encryption=False))
            assert not scheduler.workers
            assert await why_refused(address, made.security()) == ""  # it is still there
            with pytest.raises(RuntimeError, match="encryption required"):
                await why_refused(plain, made.security())

    run(play())
