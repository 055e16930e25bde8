"""`kalarena serve`."""

import contextlib
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
import trio

from tournaments.cli.main import CONFIG_VARIABLE, DATA_VARIABLE, Fault, Usage, config_of_directory
from tournaments.database.base import StoreError
from tournaments.engines.remote.extra import ClusterError
from tournaments.processes.process_settings import raised_priority
from tournaments.web.data_directory import DataDirectoryError
from tournaments.web.server import ListenError
from tournaments.web.server_config import SERVER_FILE, ServerFile, ServerFileError, read_server_file
from tournaments.web.server_main import Ready, open_host

DATA = Path("kalarena-data")
"""Default data directory: in the folder in which the server is started, like `results` of tournaments."""
SWITCH_S = 0.0005
"""Seconds for which a computing thread may keep the interpreter while others wait.  A page might wait several
times for Python's own 5 ms, while a table is being made in another thread."""
GC_THRESHOLDS = (5_000, 10, 10)
"""Thresholds of the garbage collector: new objects, and collections of the younger generations.  With
Python's own 700, 10 and 10 a loaded server spent a fourteenth of its CPU time on it."""
NICENESS = -10
"""Nice value of the server.  It weighs nine times as much as a bot, so that pages do not wait for games,
which are not charged for waiting.  The processes that it starts have nice values from 0 on."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@click.command("serve")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA,
    envvar=DATA_VARIABLE,
    show_default=True,
    show_envvar=True,
    metavar="DIR",
    help="The data directory, which is created if it is missing.",
)
@click.option(
    "--host", metavar="ADDRESS", help="Listen at this address.  [default: 127.0.0.1, this machine alone]"
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Listen at this port; 0 is any free one.  [default: 8000]"
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar=CONFIG_VARIABLE,
    callback=config_of_directory,
    show_envvar=True,
    metavar="FILE",
    help=f"The configuration, see docs/server.md.  [default: DIR/{SERVER_FILE}, if it is there]",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Log as text, or as one JSON object a line.  [default: text]",
)
@click.option("--demo", is_flag=True, help="Add three teams, a lecturer and two bots, to try it out.")
def command(
    data: Path, host: str | None, port: int | None, config: Path | None, log_format: str | None, demo: bool
) -> None:
    """Run the server of a course: students submit bots, which are checked and play, and everybody watches.

    SIGTERM and Ctrl-C end it within two seconds, or some more with a cluster.  Interrupted work is continued
    at the next start.
    """
    try:
        file = _file(data, config, {"host": host, "port": port, "log_format": log_format})
        _log(file.log_level, file.log_format)
        with open_host(data, file, demo=demo) as server:
            _ignore_further_signals()
            sys.setswitchinterval(SWITCH_S)
            _collect_seldom()
            with raised_priority(NICENESS):
                trio.run(server.run, partial(_print_ready, data))
    except (ListenError, DataDirectoryError, ServerFileError, ClusterError) as error:
        raise Usage(str(error)) from error
    except StoreError as error:
        raise (Fault if error.is_ours else Usage)(str(error)) from error
    click.echo("The server has ended.", err=True)
    _leave()


def _file(data: Path, config: Path | None, given: Mapping[str, object]) -> ServerFile:
    """Return the file's values, overridden by those of the command line.  Raises ServerFileError."""
    file = read_server_file(data, config)
    return file.model_copy(update={name: value for name, value in given.items() if value is not None})


def _log(level: str, log_format: str) -> None:
    handler = logging.StreamHandler()  # to standard error
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(LOG_FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for name in ("alembic", "python_multipart", "hypercorn"):
        logging.getLogger(name).setLevel(logging.WARNING)


class JsonFormatter(logging.Formatter):
    """Formatter of a record as a JSON object in one line; docs/operations.md lists its keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _ignore_further_signals() -> None:
    """Ignore the signals that stop the server, except while it handles them itself.

    Another signal while the server ends has no effect, such as a second Ctrl-C, or the second SIGHUP of a
    terminal that is closed.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # SIG_IGN would be taken for the choice of nohup


def _collect_seldom() -> None:
    """Collect garbage in cycles less often, and never among the objects that exist from the beginning."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _leave() -> None:
    """Exit at once, since all is closed.  Finalizing 1,200 modules would take seconds on a busy host."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def _print_ready(data: Path, ready: Ready) -> None:
    lines = [f"Kalarena is at {ready.url}, its data in {data}. Ctrl-C ends it."]
    if ready.admin_link is not None:
        lines += ["", "Open this link once, and choose the admin's password:", f"  {ready.admin_link}"]
    if ready.demo:
        lines += ["", "Links of the demo course, each for one account:"]
        lines += [f"  {login:<10} {ready.url}/links/{secret}" for login, secret in ready.demo.items()]
    click.echo("\n".join(lines))
