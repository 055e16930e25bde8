"""Exchange of requirements on workers, which are stored at the scheduler."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from distributed import Client

from referee.sandbox.bubblewrap import Tier
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import Versions
from tournaments.engines.remote.waiting import Demands

KEY = "kalarena-demands"
"""Key in the scheduler's metadata."""
CONNECT_LIMIT_S = 10.0
"""Connection limit in seconds; a scheduler in the same network answers within 0.1 s."""


def fetch_demands(scheduler: str, credentials: Credentials) -> Demands | None:
    """Return the demands of the tournament at a scheduler; None if there is none yet.

    Raises ClusterError if the scheduler refuses the connection, or is lost.
    """

    async def fetch() -> Demands | None:
        async with _connected(scheduler, credentials) as client:
            found: dict[str, Any] | None = await client.get_metadata([KEY], default=None)
        if found is None:
            return None
        return Demands(
            tier=Tier(found["tier"]),
            versions=Versions(found["kalarena"], found.get("python", "of an unknown version")),
            programs=tuple(found["programs"]),
        )

    return asyncio.run(fetch())


def publish_demands(scheduler: str, credentials: Credentials, demands: Demands) -> None:
    """Store the demands for workers that will join.  Raises ClusterError, as ``fetch_demands``."""

    async def publish() -> None:
        async with _connected(scheduler, credentials) as client:
            message = {
                "tier": demands.tier.value,
                "kalarena": demands.versions.kalarena,
                "python": demands.versions.python,
                "programs": list(demands.programs),
            }
            await client.set_metadata([KEY], message)

    asyncio.run(publish())


@asynccontextmanager
async def _connected(scheduler: str, credentials: Credentials) -> AsyncIterator[Client]:
    client = Client(
        scheduler,
        security=credentials.security(),
        asynchronous=True,
        timeout=CONNECT_LIMIT_S,
        set_as_default=False,
    )
    try:
        await _join(client, scheduler, credentials)
        yield client
    except OSError as error:
        raise ClusterError(f"{scheduler}: the connection to the scheduler was lost") from error
    finally:
        await client.close()


async def _join(client: Client, scheduler: str, credentials: Credentials) -> None:
    try:
        await client
    except (OSError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"{scheduler}: no scheduler there lets us in with the credentials of {credentials.directory}: "
            "is the tournament running, are these its own, is the address right, and does no firewall lie "
            "between?"
        ) from error
