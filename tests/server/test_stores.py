"""The connections of a server with many competitions have a bound, which docs/operations.md states."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest
from sqlalchemy import URL

from tests.support.builders import make_record
from tests.support.courses import FAST_PASSWORDS
from tests.support.postgresql import PostgreSQLServer
from tournaments.course.course import Course
from tournaments.database.base import Location, StoreError
from tournaments.database.location import Database
from tournaments.database.postgresql import POOL, POOL_OVERFLOW, SHARED_OVERFLOW, SHARED_POOL
from tournaments.results.store import Store
from tournaments.server.service_context import MOST_UNUSED, Stores

COMPETITIONS = [f"cup-{number}" for number in range(40)]
THREADS = 40
"""As many as Trio has."""
LIMIT_S = 60.0


def open_files(folder: Path) -> set[str]:
    """Return the files below a folder that this process has open."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(f"{folder}/"):
            found.add(target)
    return found


def test_stores_that_nobody_uses_are_closed(tmp_path: Path) -> None:
    stores = Stores(Database(tmp_path))
    with stores.using("cup-0") as used:
        for slug in COMPETITIONS:
            with stores.using(slug) as store:
                assert store.add(make_record(slug), 1)
        opened = {Path(path).parent.name for path in open_files(tmp_path)}
        assert opened == {"cup-0", *COMPETITIONS[-MOST_UNUSED:]}
        assert used.played() == {"cup-0"}
        with stores.using("cup-1") as again:
            assert again.played() == {"cup-1"}
    stores.close()
    assert not open_files(tmp_path)


class SilentDatabase(Database):
    """Database that does not answer for one competition until ``given_up`` is set, and then fails."""

    given_up: Event
    tries: list[str]

    def competition(self, slug: str) -> Location:
        if slug == "silent":
            self.tries.append(slug)
            assert self.given_up.wait(LIMIT_S)
            raise StoreError("the database is away", is_ours=True)
        return super().competition(slug)


def test_a_store_that_is_being_opened_keeps_no_other_one_waiting(tmp_path: Path) -> None:
    database = SilentDatabase(tmp_path)
    vars(database).update(given_up=Event(), tries=[])
    stores = Stores(database)

    def open_silent() -> None:
        with stores.using("silent"):
            pytest.fail("it cannot be opened")

    def play() -> set[str]:
        with stores.using("cup") as store:
            store.add(make_record("a"), 1)
            return store.played()

    with ThreadPoolExecutor(4) as pool:
        try:
            silent = [pool.submit(open_silent) for _ in range(3)]
            assert pool.submit(play).result(LIMIT_S) == {"a"}
        finally:
            database.given_up.set()
        for one in silent:
            with pytest.raises(StoreError, match="is away"):
                one.result(LIMIT_S)
    tries = len(database.tries)
    with pytest.raises(StoreError, match="is away"):
        open_silent()
    assert len(database.tries) == tries + 1  # a later use tries again
    stores.close()
    assert not open_files(tmp_path)


@pytest.mark.slow
def test_the_connections_to_a_database_server_have_a_bound(postgresql: PostgreSQLServer) -> None:
    most = POOL + POOL_OVERFLOW + SHARED_POOL + SHARED_OVERFLOW
    with (
        postgresql.database() as database,
        postgresql.connect() as administrator,
        Course(database.course(), FAST_PASSWORDS) as course,
    ):
        stores = Stores(database)
        assert isinstance(database.address, URL)
        name = database.address.database

        def connections() -> int:
            count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
            ((number,),) = administrator.execute(count, (name,)).fetchall()
            assert isinstance(number, int)
            return number

        for slug in COMPETITIONS:
            with stores.using(slug):
                pass
        assert connections() <= POOL + SHARED_POOL
        together = Barrier(THREADS)

        def work(number: int) -> int:
            slug = COMPETITIONS[number % len(COMPETITIONS)]
            together.wait()
            found = 0
            for _ in range(3):
                with stores.using(slug) as store:
                    store.add(make_record(slug), 1)
                    assert store.played() == {slug}
                course.settings.load()
                found = max(found, connections()) if number == 0 else 0
            return found

        with ThreadPoolExecutor(THREADS) as pool:
            found = max(pool.map(work, range(THREADS)))
        found = max(found, connections())  # the pools keep theirs, also if the first thread was ahead
        assert POOL + SHARED_POOL <= found <= most
        stores.close()
        assert str(most + 1) in (Path(__file__).parents[2] / "docs" / "operations.md").read_text()


@pytest.mark.slow
def test_a_shared_connection_of_a_reader_changes_nothing(postgresql: PostgreSQLServer) -> None:
    """And one connection serves several schemas, each with its own games."""
    with postgresql.database() as database:
        one, other = database.competition("one"), database.competition("other")
        with Store(one) as first, Store(other) as second:
            assert first.add(make_record("a"), 1)
            assert second.add(make_record("b"), 1)
            with Store(one, read_only=True) as reader:
                assert reader.played() == {"a"}
                with pytest.raises(StoreError, match="read-only"):
                    reader.add(make_record("c"), 1)
            assert first.add(make_record("d"), 1)
            assert (first.played(), second.played()) == ({"a", "d"}, {"b"})
