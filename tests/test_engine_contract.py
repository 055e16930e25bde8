"""The contract of engines, for each of them."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.cluster_places import Cluster, open_cluster
from tests.engine_contract import PLACES, EngineContract, Place, sleeper
from tests.test_engines import is_worker
from tests.test_resume import descendants
from tournaments.engines.base import Engine
from tournaments.engines.local import open_local_engine

__all__ = ["sleeper"]


class LocalPlace:
    """Worker processes of this one."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        async with open_local_engine(self._scratch, PLACES) as engine:
            yield engine

    def kill_worker(self, seconds: str) -> None:
        (worker,) = [pid for pid in descendants(os.getpid()) if is_worker(pid, seconds)]
        os.kill(worker, signal.SIGKILL)


class TestLocal(EngineContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        return LocalPlace(scratch)


class ClusterPlace:
    """Workers of Dask, of which one process is killed: ``who`` is it."""

    def __init__(self, cluster: Cluster, who: str) -> None:
        self._cluster = cluster
        self._who = who

    def engine(self) -> AbstractAsyncContextManager[Engine]:
        return self._cluster.engine()

    def kill_worker(self, seconds: str) -> None:
        self._cluster.kill(self._cluster.process_that_plays(f"sleep {seconds}", self._who))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with open_cluster(tmp_path_factory.mktemp("cluster"), workers=PLACES) as opened:
        yield opened


class TestDask(EngineContract):
    @pytest.fixture
    def place(self, cluster: Cluster) -> Place:
        return ClusterPlace(cluster, "worker")
