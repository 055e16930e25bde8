"""`kalarena doctor`."""

import json
import os
import platform
import shutil
import socket
import statistics
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from referee.judge.limits import DEFAULT_MEMORY_MB, MIB
from referee.process.process_tree import has_counters
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import Probe, Run, probe, run_as_bot
from referee.sandbox.host_resources import default_memory_here, host_memory_bytes, usable_cores
from tournaments.cli.main import DATA_VARIABLE, config_option

if TYPE_CHECKING:  # importing the database layer takes longer than the rest of the command
    from tournaments.database.base import Connections
    from tournaments.server.mail.mail_table import Mailing

SERVERS_DATA = Path("kalarena-data")
"""Default data directory of `kalarena serve`."""
STARTS = 10
"""Programs started for each median."""
SHIM_STARTS = 3
"""Interpreters started for each median; they take longer."""
SLOW_SHIM = 1.5
"""Ratio of the start times of the python3 on PATH and of our own interpreter above which it is called
slow."""
WIDTH = 79
INDENT = 13

HOLDS = {
    Tier.CGROUP: (
        "A bot has no network, sees none of your files but its own, and no other processes; the kernel "
        "bounds the memory of all its processes together, and its share of the processors."
    ),
    Tier.BUBBLEWRAP: "A bot has no network, sees none of your files but its own, and no other processes.",
    Tier.WEAK: "Each process of a bot has limits of memory, file size and open files.",
    Tier.OFF: "Nothing.",
}
"""Protection that a tier provides."""
HOLDS_NOT = {
    Tier.CGROUP: "Bots that play at the same time still share the processor's caches.",
    Tier.BUBBLEWRAP: (
        "The memory of several processes together is checked every 50 ms, so that for a moment a bot "
        "can hold more."
    ),
    Tier.WEAK: (
        "A bot can use the network, read and change your files, and disturb others: for bots that you trust."
    ),
    Tier.OFF: "Anything: for bots that you trust.",
}
"""Gaps in the protection of a tier."""

PROBE_PROGRAM = """
import os, socket, sys
facts = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Seccomp"))
def reaches(address):
    try:
        socket.create_connection(address, 1).close()
    except OSError as error:
        return isinstance(error, TimeoutError)
    return True
net = reaches(("127.0.0.1", int(sys.argv[1]))) or reaches(("192.0.2.1", 9))
print("facts", os.getuid(), facts.get("Seccomp", "0"), facts.get("Seccomp_filters", "-1"), net)
"""
"""Program that runs as a bot.  It prints its user, its filters of system calls, and whether it reaches a port
of ours or has a route to a documentation address (RFC 5737).  A connection that times out had a route."""


@dataclass(frozen=True, slots=True)
class Health:
    """Findings on this host; None for those that could not be examined."""

    tier: str
    confines: bool
    """True if hostile bots can be held here."""
    holds: str
    holds_not: str
    why_not_better: str
    advice: str
    """The one command that would make a better tier available; empty if there is none."""
    seccomp: bool | None
    """True if the sandbox's own filter of system calls works on a bot."""
    network_unreachable: bool | None
    bot_user: int | None
    """Number of the user that a bot runs as."""
    other_user: bool | None
    """True if that user is not root, where we are root; None where we are not."""
    interpreter: str
    interpreter_runs: bool
    """True if the Python that runs bots runs in the sandbox, wherever it is installed."""
    interpreter_says: str
    """Error message of that Python; empty if it runs."""
    fair_clock: bool
    """True if the system counts how long a process waits for a CPU."""
    cores: int
    """Number of cores that are usable by us."""
    python: str
    python3: str
    """The python3 on PATH; empty if there is none."""
    python3_is_slow: bool
    start_bare_ms: float
    start_confined_ms: float | None
    """Median from the start to the end of a program that does nothing."""
    memory_mb: int = 0
    """Memory that our processes may use, in MiB; 0 if the system does not report it."""
    default_memory_mb: int = DEFAULT_MEMORY_MB
    """Memory limit of a bot where none is chosen, in MiB, with one game on each core."""
    disk: str = ""
    """Free space for the server's data directory; empty without a directory."""
    database: str = ""
    """State of the server's database; empty without a data directory."""
    database_works: bool = True
    mail: str = ""
    """State of the server's mails: off, or the number that waits; empty without a data directory."""


def examine(found: Probe | None = None) -> Health:
    """Examine this host by running programs as bots are run."""
    found = probe() if found is None else found
    sandbox = found.sandbox
    facts = _facts_inside(sandbox)
    user, filtered, unreachable = (None, None, None) if isinstance(facts, str) else facts
    tier = sandbox.tier
    other_user = None if os.geteuid() or user is None else user != 0
    holes = tier.confines and False in (filtered, unreachable, other_user)
    python3 = shutil.which("python3") or ""
    confined_ms = _start_ms(sandbox, STARTS, _nothing()) if tier is not Tier.OFF else None
    return Health(
        tier=tier.value,
        confines=tier.confines and not holes,
        holds=HOLDS[tier] if tier is not Tier.WEAK or sandbox.tools.prlimit else HOLDS[Tier.OFF],
        holds_not=HOLDS_NOT[tier],
        why_not_better=found.why_not_better,
        advice=found.advice,
        seccomp=filtered,
        network_unreachable=unreachable,
        bot_user=user,
        other_user=other_user,
        interpreter=sys.executable,
        interpreter_runs=not isinstance(facts, str),
        interpreter_says=facts if isinstance(facts, str) else "",
        fair_clock=has_counters(),
        cores=len(usable_cores()),
        python=platform.python_version(),
        python3=python3,
        python3_is_slow=bool(python3) and _is_slow(python3),
        start_bare_ms=_start_ms(Sandbox(), STARTS, _nothing()) or 0.0,
        start_confined_ms=confined_ms,
        memory_mb=host_memory_bytes() // MIB,
        default_memory_mb=default_memory_here(),
    )


def _facts_inside(sandbox: Sandbox) -> tuple[int, bool, bool] | str:
    """Return a bot's user, True if its system calls are filtered, and True if it has no network.

    Returns the error message instead if the interpreter did not run.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        done = run_as_bot(sandbox, (sys.executable, "-S", "-E", "-c", PROBE_PROGRAM, port))
    words = done.output.split()
    if done.status or len(words) != 5:
        return _last_line(done)
    own_filters = _own_filters()
    filtered = words[2] == "2" and not -1 < int(words[3]) <= own_filters
    return int(words[1]), filtered, words[4] == "False"


def _last_line(done: Run) -> str:
    lines = done.errors.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


def _own_filters() -> int:
    """Return the number of filters of our own system calls (a container has one); -1 if unknown."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return -1
    return next((int(line.split()[1]) for line in lines if line.startswith("Seccomp_filters:")), -1)


def _nothing() -> tuple[str, ...]:
    return (shutil.which("true") or "/bin/true",)


def _start_ms(sandbox: Sandbox, times: int, command: tuple[str, ...]) -> float | None:
    """Return the median time from the start to the end of a command, in ms; None if it fails."""
    runs = [run_as_bot(sandbox, command) for _ in range(times)]
    if any(run.status != 0 for run in runs):
        return None
    return round(statistics.median(run.seconds for run in runs) * 1000, 1)


def _is_slow(python3: str) -> bool:
    """Return True if a python3 is slow, as a shim that searches for another one (pyenv's, asdf's)."""
    empty = ("-S", "-E", "-c", "")
    taken = _start_ms(Sandbox(), SHIM_STARTS, (python3, *empty))
    own = _start_ms(Sandbox(), SHIM_STARTS, (sys.executable, *empty))
    return taken is not None and own is not None and taken > SLOW_SHIM * own


def report(health: Health) -> Iterator[str]:
    """Yield the lines of the report for people."""
    yield from _item(
        "Sandbox", f"{health.tier}: hostile bots {'are held' if health.confines else 'are NOT held'}"
    )
    yield from _item("  holds", health.holds)
    yield from _item("  but", health.holds_not)
    if health.why_not_better:
        yield from _item("  no better", f"{_capital(health.why_not_better)}.")
    if health.advice:
        yield f"{'  try':{INDENT}}{health.advice}"  # not wrapped: it is there to be copied
    checks = []
    if health.seccomp is not None:
        checks.append("system calls are filtered" if health.seccomp else "system calls are NOT filtered")
    if health.network_unreachable is not None:
        checks.append("no network is reached" if health.network_unreachable else "the network is REACHED")
    if health.bot_user is not None:
        checks.append(f"bots run as {'ROOT' if health.bot_user == 0 else f'user {health.bot_user}'}")
    if checks:
        yield from _item("  tried", f"{_capital('; '.join(checks))}.")
    where = "in the sandbox" if health.tier not in (Tier.WEAK, Tier.OFF) else "for bots"
    ran = f"runs {where}" if health.interpreter_runs else f"does NOT run {where}: {health.interpreter_says}"
    yield from _item("Interpreter", f"{health.interpreter} {ran}")
    if health.python3_is_slow:
        yield from _item(
            "", f"python3 on PATH ({health.python3}) is a slow shim; python3 bots are run by the one above."
        )
    confined = health.start_confined_ms
    sandboxed = "" if confined is None else f", {confined:g} ms with the sandbox"
    yield from _item(
        "Start", f"{health.start_bare_ms:g} ms bare{sandboxed} (median of {STARTS} of /bin/true)"
    )
    yield from _item(
        "Fair clock",
        "yes: this system counts how long a bot waits for a CPU"
        if health.fair_clock
        else "no: this system does not count how long a bot waits for a CPU, so wall time is charged",
    )
    yield from _item("Cores", f"{health.cores}, so play up to {max(1, health.cores)} games at a time")
    there = f"{health.memory_mb} MB; " if health.memory_mb else ""
    yield from _item(
        "Memory", f"{there}a bot may use {health.default_memory_mb} MB unless memory_mb says otherwise"
    )
    yield from _item("Python", health.python)
    if health.disk:
        yield from _item("Disk", health.disk)
    if health.database:
        yield from _item("Database", health.database)
    if health.mail:
        yield from _item("Mail", health.mail)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _item(name: str, text: str) -> Iterator[str]:
    first = f"{name:{INDENT}}"
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _mail_text(mailing: "Mailing | None", connections: "Connections", identity: Path) -> str:
    """Return whether a server sends mail, and what waits.  Raises StoreError.

    ``identity`` is the file with the identity of the data directory, which may be missing.
    """
    from sqlalchemy import inspect

    from tournaments.course.mail.outbox import mail_numbers
    from tournaments.database.base import StoreError
    from tournaments.files.durable import os_errors_as

    if mailing is None:
        return "off: server.toml has no table [mail]"
    text = f"sent by {mailing.table.host}:{mailing.table.port_used}"
    name = None
    with os_errors_as(StoreError, f"{identity} cannot be read"):
        if identity.is_file():
            name = identity.read_text(encoding="ascii", errors="replace").strip()
    with connections.reading() as connection:
        if not inspect(connection).has_table("mail"):  # the database of an earlier version
            return text
        waiting, held, failed = mail_numbers(connection, name)
    held_text = f", {held} held (see kalarena admin mail release)" if held else ""
    return f"{text}; {waiting} waiting{held_text}, {failed} failed"


def examine_server(data: Path, config: Path | None) -> dict[str, Any]:
    """Return the fields of ``Health`` on a server's data directory and its database."""
    # Imported here: the database layer takes longer to load than the rest of the command.
    from tournaments.cli.admin.opening import server_file
    from tournaments.course.course import MIGRATIONS
    from tournaments.database.base import Connections, StoreError
    from tournaments.database.location import Database
    from tournaments.database.state import database_state
    from tournaments.server.status import Disk
    from tournaments.web.data_directory import IDENTITY_FILE, DataDirectoryError
    from tournaments.web.server_config import SERVER_FILE, ServerFileError, exists_for_server

    found: dict[str, Any] = {"disk": str(Disk.of(data) or "")}
    try:
        if not exists_for_server(data) or not data.is_dir():
            return {"database": f"does NOT work: {data} is no directory", "database_works": False}
        file = server_file(data, config)
        if file.database is None and _is_unused(data, SERVER_FILE):
            return found | {
                "database": f"none yet: no server has been started with {data} (or its disk is not mounted)"
            }
        database = Database.at(file.database or data)
        with Connections(database.course(), read_only=True) as connections:
            MIGRATIONS.refuse_newer(connections)
            state = database_state(database, connections)
            mail = _mail_text(file.mailing, connections, data / IDENTITY_FILE)
            return found | {"database": str(state), "mail": mail}
    except (DataDirectoryError, ServerFileError, StoreError) as error:
        return found | {"database": f"does NOT work: {error}", "database_works": False}


def _is_unused(data: Path, configuration: str) -> bool:
    """Return whether a directory has no files but its configuration, and hidden ones as in a user's home."""
    return os.access(data, os.R_OK) and all(
        path.name.startswith(".") or path.name in ("lost+found", configuration) for path in data.iterdir()
    )


@click.command("doctor")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar=DATA_VARIABLE,
    show_envvar=True,
    metavar="DIR",
    help="Also look at a server's data directory.  [default: kalarena-data, if it is there]",
)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(data: Path | None, config: Path | None, as_json: bool) -> None:
    """Report how well this host can confine bots, what would help, and whether a server's database works.

    Each property is tested by running a program.  Exit status: 0 if hostile bots can be held here, 1 if not,
    or if the database of --data does not work.
    """
    health = examine()
    if data is not None or SERVERS_DATA.is_dir():
        health = replace(health, **examine_server(data or SERVERS_DATA, config))
    if as_json:
        click.echo(json.dumps(asdict(health), indent=2))
    else:
        click.echo("\n".join(report(health)))
    is_well = health.confines and (health.database_works or data is None)
    click.get_current_context().exit(0 if is_well else 1)
