"""`kalarena verify`."""

from collections.abc import Iterator
from pathlib import Path

import click

from referee.errors import RefereeError
from tournaments.cli.main import Usage
from tournaments.directory import STORE_FILE
from tournaments.store import StoreError
from tournaments.tables import json_text
from tournaments.verification import Found, Remark, Verification, read_record

WRONG = 1
"""Exit status if something does not follow."""


@click.command("verify")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--json", "as_json", is_flag=True, help="Print what was found as one JSON object, nothing else."
)
def command(paths: tuple[Path, ...], as_json: bool) -> None:
    """Judge games again from their records; report whatever does not follow.

    PATH is a game record (`kalarena play --record`) or the directory of a tournament, of which the store,
    the games' files and the tables are verified too.

    While a run is at work its tables are not compared; those that a killed run left are old, which is a
    remark.

    Exit status: 0 all follows, 1 something does not, 2 bad usage, not to be read, or nothing to verify.
    """
    verification = Verification()
    complaints = []
    for path in paths:
        for found in _verify(verification, path):
            if as_json:
                complaints.append(found.to_json())
            else:
                click.echo(f"{found}{_remarked(found)}")
    if as_json:
        counts = {
            "games": verification.games,
            "wrong": verification.wrong,
            "elsewhere": verification.elsewhere,
        }
        click.echo(json_text({**counts, "complaints": complaints}))
    else:
        click.echo(_conclusion(verification))
    if not verification.is_clean:
        raise SystemExit(WRONG)


def _verify(verification: Verification, path: Path) -> Iterator[Found]:
    """Raises Usage if there is nothing that could be verified."""
    try:
        if not path.is_dir():
            yield from verification.of_record(read_record(path))
        elif (path / STORE_FILE).is_file():
            yield from verification.of_directory(path)
        else:
            raise Usage(f"{path} holds no {STORE_FILE}: is it the directory of a tournament?")
    except OSError as error:
        raise Usage(f"{path}: cannot be read: {error.strerror}") from error
    except RefereeError as error:
        raise Usage(f"{path}: {error}") from error
    except StoreError as error:
        raise Usage(str(error)) from error


def _remarked(found: Found) -> str:
    if not found.complaint.remark:
        return ""
    return " (a remark)" if isinstance(found.complaint, Remark) else " (a remark: another version wrote it)"


def _conclusion(verification: Verification) -> str:
    games, wrong, elsewhere = verification.games, verification.wrong, verification.elsewhere
    if verification.is_clean:
        return f"{_counted(games, 'game')} verified, nothing wrong"
    text = f"{wrong} of {_counted(games, 'game')} {'does' if wrong == 1 else 'do'} not follow"
    return text + (f"; {_counted(elsewhere, 'complaint')} about what is made from them" if elsewhere else "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
