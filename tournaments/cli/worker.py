"""`kalarena worker`."""

import os
import time
from pathlib import Path

import click

from referee.sandbox.bubblewrap import Tier
from referee.sandbox.detection import Probe, probe
from referee.sandbox.host_resources import usable_cores
from tournaments.cli.doctor import Health, examine
from tournaments.cli.main import Fault, Usage
from tournaments.engines.remote.extra import ClusterError, require_extra

TIERS = list(Tier)
"""Tiers, the best first."""
LOG_VARIABLE = "DASK_LOGGING__DISTRIBUTED"
"""Dask's own setting.  This command reports errors itself; Dask shows tracebacks when a scheduler ends."""


@click.command("worker")
@click.option(
    "--scheduler", required=True, metavar="ADDRESS", help="tls://HOST:PORT, as the tournament prints it."
)
@click.option(
    "--credentials",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="A copy of the directory that the tournament has made.",
)
@click.option("--slots", type=click.IntRange(1, 1024), metavar="N", help="Games at a time.  [default: cores]")
@click.option(
    "--require-tier",
    type=click.Choice([tier.value for tier in TIERS]),
    default=Tier.OFF.value,
    help="Join only if this host confines bots so well.  [default: as the tournament demands]",
)
@click.option(
    "--lifetime",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Seconds until the batch system ends this worker: it begins no game that would not end by then.",
)
@click.option("--name", hidden=True)  # identifies the jobs of a batch system
def command(
    scheduler: str,
    credentials: Path,
    slots: int | None,
    require_tier: str,
    lifetime: int | None,
    name: str | None,
) -> None:
    """Play games of a tournament that runs on another machine, until it ends or this is stopped.

    Before it joins, it tests how well this host confines bots, as `kalarena doctor` does.  A host that does
    so less well than the tournament requires does not join.
    """
    ends_at = None if lifetime is None else time.time() + lifetime  # now, since joining can take seconds
    try:
        require_extra()
    except ClusterError as error:
        raise Usage(str(error)) from error
    os.environ.setdefault(LOG_VARIABLE, "critical")  # before Dask is imported, and for the worker's process
    from tournaments.engines.remote.credentials import Credentials
    from tournaments.engines.remote.host import facts_of_this_host
    from tournaments.engines.remote.worker.lab_worker import fetch_demands, work
    from tournaments.engines.remote.worker.worker_plugin import worker_options

    if not scheduler.startswith("tls://"):
        raise Usage(
            f"{scheduler}: must be an address like tls://HOST:PORT; anything else is not encrypted, and lets "
            "everybody who reaches it run programs here"
        )
    slots = slots or len(usable_cores())
    try:
        trusted = Credentials(credentials)
    except ClusterError as error:
        raise Usage(str(error)) from error
    try:
        demands = fetch_demands(scheduler, trusted)
        found = probe()
        strictest = min((Tier(require_tier), demands.tier), key=TIERS.index)
        if refusal := refusal_of_tier(strictest, found, examine(found)):
            raise Usage(refusal)
        facts = facts_of_this_host(found.sandbox, programs=demands.programs)
        if refusal := demands.refusal(facts):
            raise Usage(refusal)
        was_stopped = work(
            scheduler,
            trusted,
            {"name": name, **worker_options(facts, slots, ends_at=ends_at)},
            joins=lambda: click.echo(str(facts)),
            joined=lambda: click.echo(
                f"joined {scheduler}: plays {slots} game{'' if slots == 1 else 's'} at a time until this is "
                "stopped"
            ),
        )
    except ClusterError as error:
        raise Fault(str(error)) from error
    click.echo("stopped" if was_stopped else ended_message(scheduler))


def ended_message(scheduler: str) -> str:
    """Return the message after the scheduler has ended the connection."""
    return (
        f"{scheduler} ended the connection: the tournament has ended or was stopped, it refused this host "
        "for a reason that it prints, or the lifetime of this worker is over"
    )


def refusal_of_tier(wanted: Tier, found: Probe, health: Health) -> str | None:
    """Return the reason to refuse a host that does not confine bots as required; None if it does."""
    tier = found.sandbox.tier
    if TIERS.index(tier) > TIERS.index(wanted):
        advice = f"; try: {found.advice}" if found.advice else ""
        return (
            f"this host does not join: bots must be confined by {wanted.value}, and {tier.value} is the best "
            f"that there is here: {found.why_not_better}{advice}"
        )
    if wanted.confines and not health.confines:
        return "this host does not join: its sandbox has a hole, `kalarena doctor` says which"
    return None
