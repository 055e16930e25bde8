"""`kalarena verify`."""

import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from referee.errors import RefereeError
from referee.judge.verdict_text import counted
from referee.sandbox.host_resources import core_count
from tournaments.cli.main import Fault, Usage
from tournaments.database.location import SLUG, Database
from tournaments.files.durable import os_errors_as
from tournaments.processes.process_pool import WorkerDiedError
from tournaments.reporting.tables import json_text
from tournaments.reporting.tournament_directory import STORE_FILE
from tournaments.reporting.verification import RecordFinding, Remark, Verification, read_record
from tournaments.results.chain_check import ExpectedHead, HeadError
from tournaments.results.store import StoreError

WRONG = 1
"""Exit status if a value does not follow."""
PROGRESS_S = 0.2
"""Seconds between two updates of the progress line."""


@click.command("verify")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--json", "as_json", is_flag=True, help="Print what was found as one JSON object, nothing else."
)
@click.option(
    "--head",
    metavar="DIGEST",
    help="A head digest that was noted elsewhere, or its first 16 digits: find changes since then.",
)
@click.option(
    "--head-number",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of the entry that had this digest.",
)
@click.option(
    "--database",
    "url",
    metavar="URL",
    help="postgresql://USER@HOST/DATABASE of a server; PATH is DATA/competitions/NAME then.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Processes that judge games.  [default: one per core]",
)
def command(
    paths: tuple[Path, ...],
    as_json: bool,
    head: str | None,
    head_number: int | None,
    url: str | None,
    jobs: int | None,
) -> None:
    """Judge games again from their records, and report differences.

    PATH is a game record (`kalarena play --record`) or the directory of a tournament, of which the store,
    the games' files and the tables are verified too, and the hash chain over all that was stored.

    While a run is active, its tables are not compared.  Tables that a killed run left behind are older, which
    is only a remark.

    If one of several paths cannot be verified, the others still are.

    Exit status: 0 no difference, 1 a difference, 2 bad usage, an unreadable store, or nothing to verify.
    With several paths, 1 if there is a difference, although another path cannot be verified.
    """
    database = _database(url)
    expected = _expected(paths, head, head_number, is_on_server=database is not None)
    progress = _Progress()
    verification = Verification(processes=jobs or core_count(), progress=progress.show)
    complaints = []
    refused: list[dict[str, str]] = []
    try:
        for path in paths:
            try:
                for found in _verify(verification, path, expected, database):
                    if as_json:
                        complaints.append(found.to_json())
                    else:
                        progress.clear()
                        click.echo(f"{found}{_remark_text(found)}")
            except Usage as refusal:
                if len(paths) == 1:
                    raise
                refused.append({"path": str(path), "why": refusal.message})
                progress.clear()
                refusal.show()
    finally:
        progress.clear()
    if as_json:
        counts = {
            "games": verification.games,
            "wrong": verification.wrong,
            "elsewhere": verification.elsewhere,
            "heads": [
                {"path": directory, "head": one.digest, "head_number": one.number}
                for directory, one in verification.heads.items()
            ],
        }
        refusals = {"refused": refused} if refused else {}
        click.echo(json_text({**counts, "complaints": complaints, **refusals}))
    else:
        # Scripts compare the output of the plain command with that of versions without heads.
        if expected or (sys.stdout is not None and sys.stdout.isatty()):
            for directory, one in verification.heads.items():
                click.echo(f"head of {directory}: {one.digest} (entry {one.number})")
        if len(refused) < len(paths):
            click.echo(_conclusion(verification))
    if refused:
        click.echo(f"{len(refused)} of {len(paths)} paths could not be verified; see above", err=True)
    if not verification.is_clean:
        raise SystemExit(WRONG)
    if refused:
        raise SystemExit(Usage.exit_code)


class _Progress:
    """One line on standard error, if that is a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown_at = 0.0
        self._is_shown = False

    def show(self, done: int, total: int) -> None:
        """Show how many games were judged, at most every PROGRESS_S seconds."""
        now = time.monotonic()
        if self._is_terminal and now - self._shown_at >= PROGRESS_S:
            self._write(f"game {done} of {total}")
            self._shown_at, self._is_shown = now, True

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            self._write("")
            self._is_shown = False

    def _write(self, text: str) -> None:
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)


def _expected(
    paths: tuple[Path, ...], digest: str | None, number: int | None, *, is_on_server: bool
) -> ExpectedHead | None:
    """Return the head that was noted elsewhere.  Raises Usage."""
    if digest is None:
        if number is not None:
            raise Usage("--head-number belongs to a head digest: give the digest, too, with --head")
        return None
    with os_errors_as(Usage, f"{paths[0]}: cannot be read"):
        is_tournament = paths[0].is_dir() or (is_on_server and not paths[0].exists())
    if len(paths) != 1 or not is_tournament:
        raise Usage("--head is of one tournament: name its directory, and nothing else")
    try:
        return ExpectedHead(digest.strip().lower(), number)
    except HeadError as error:
        raise Usage(str(error)) from error


def _database(url: str | None) -> Database | None:
    """Return the PostgreSQL database of a server.  Raises Usage."""
    if url is None:
        return None
    try:
        database = Database.at(url)
    except StoreError as error:
        raise Usage(str(error)) from error
    if isinstance(database.address, Path):
        raise Usage(
            f"--database: {url!r} is no address of a database, such as postgresql://USER@HOST/DATABASE"
        )
    return database


def _verify(
    verification: Verification, path: Path, expected: ExpectedHead | None, database: Database | None
) -> Iterator[RecordFinding]:
    """Verify a record or a directory.  Raises Usage if there is nothing that could be verified."""
    try:
        if database is not None and (path.is_dir() or not path.exists()):
            name = path.resolve().name
            if not SLUG.fullmatch(name):
                raise Usage(f"{path}: with --database, name a directory DATA/competitions/NAME of the server")
            yield from verification.of_directory(path, expected, database.competition(name))
        elif not path.is_dir():
            yield from verification.of_record(read_record(path))
        elif (path / STORE_FILE).is_file():
            yield from verification.of_directory(path, expected)
        else:
            advice = _tournament_of(path) or ": is it the directory of a tournament?"
            raise Usage(f"{path} holds no {STORE_FILE}{advice}")
    except OSError as error:
        raise Usage(f"{path}: cannot be read: {error.strerror}") from error
    except RefereeError as error:
        raise Usage(f"{path}: {error}{_tournament_of(path)}") from error
    except (HeadError, StoreError) as error:
        raise Usage(str(error)) from error
    except WorkerDiedError as error:
        raise Fault("a process that judged games was killed: is there enough memory? See --jobs") from error


def _tournament_of(path: Path) -> str:
    """Return advice for a file or folder within a tournament's directory; empty for another one."""
    for folder in path.absolute().parents:
        if (folder / STORE_FILE).is_file():
            return f"; it is a part of a tournament, so verify its directory: {shlex.quote(str(folder))}"
    return ""


def _remark_text(found: RecordFinding) -> str:
    if not found.complaint.remark:
        return ""
    return " (a remark)" if isinstance(found.complaint, Remark) else " (a remark: another version wrote it)"


def _conclusion(verification: Verification) -> str:
    games, wrong, elsewhere = verification.games, verification.wrong, verification.elsewhere
    if verification.is_clean:
        return f"{counted(games, 'game')} verified, nothing wrong"
    does, record = ("does", "its record") if wrong == 1 else ("do", "their records")
    text = f"{wrong} of {counted(games, 'game')} {does} not follow from {record}"
    return text + (
        f"; {counted(elsewhere, 'finding')} in the files of games, the tables or the hash chain"
        if elsewhere
        else ""
    )
