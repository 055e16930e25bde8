"""Standard output that takes nothing: a full disk, a reader that has gone, and a closed descriptor."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, TextMessage

from tests.reporting.reports import write_store
from tests.support.builders import KALARENA, RUN_LIMIT_S, run_command

FULL_DISK = Path("/dev/full")
COMMANDS = {
    "games": ("games",),
    "table": ("tournament", "table", "cup"),
    "export": ("tournament", "export", "cup", "--what", "games"),
    "verify": ("verify", "--json", "--jobs", "1", "cup"),
}
FORKS = """
import io, json, os, sys, traceback
from tournaments.cli import games, verify
from tournaments.cli.main import entry
from tournaments.cli.remote import connect
from tournaments.cli.tournament import export, table

commands, disk = json.loads(sys.argv[1]), sys.argv[2]
found = []
for name, command in commands.items():
    for output in ("disk", "reader"):
        for unbuffered in (False, True):
            errors, its_errors = os.pipe()
            if (child := os.fork()) == 0:
                reader, pipe = os.pipe()
                os.close(reader)
                os.dup2(os.open(disk, os.O_WRONLY) if output == "disk" else pipe, 1)
                os.dup2(its_errors, 2)
                raw = io.FileIO(1, "w", closefd=False)
                # As PYTHONUNBUFFERED has it: no buffer, and each text is written at once.
                buffer = raw if unbuffered else io.BufferedWriter(raw)
                sys.stdout = io.TextIOWrapper(buffer, write_through=unbuffered)
                sys.argv = ["kalarena", *command]
                status = 0
                try:
                    entry()
                except SystemExit as end:
                    status = end.code or 0
                except BaseException:
                    traceback.print_exc()
                try:
                    sys.stdout.flush()  # as the interpreter does at its end
                except OSError:
                    traceback.print_exc()
                sys.stderr.flush()
                os._exit(status)
            os.close(its_errors)
            with open(errors) as said:
                text = said.read()
            found.append((name, output, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text))
print(json.dumps(found))
"""
"""Forks for each command, after one import of their modules."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    write_store(folder / "cup", ["ada", "bob", "cleo"])
    return folder


@pytest.fixture
def welcoming_server() -> Iterator[str]:
    """The address of a server that welcomes each remote bot, and then sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                protocol = WSConnection(ConnectionType.SERVER)
                with connection:
                    protocol.receive_data(connection.recv(65_536))
                    assert list(protocol.events())
                    welcome = TextMessage(json.dumps({"type": "welcome", "game": "kalah(2,1)"}))
                    connection.sendall(protocol.send(AcceptConnection()) + protocol.send(welcome))
                    while connection.recv(65_536):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.slow
@pytest.mark.skipif(not FULL_DISK.exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_message_and_a_reader_that_has_gone_is_none(
    folder: Path, welcoming_server: str
) -> None:
    at_home = ("connect", "first_legal", "--server", welcoming_server, "--token", "kal_x", "--sandbox", "off")
    commands = {**COMMANDS, "connect": at_home}
    done = run_command([sys.executable, "-c", FORKS, json.dumps(commands), str(FULL_DISK)], folder)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert len(found) == 4 * len(commands)
    for name, output, status, errors in found:
        assert status == 1, (name, output, errors)
        if output == "disk":
            assert errors.splitlines()[-1] == "Error: standard output: No space left on device", name
            assert errors.count("Error") == 1, (name, errors)
        else:
            assert "rror" not in errors, (name, errors)
        assert "Traceback" not in errors, (name, output, errors)


@pytest.mark.parametrize(
    "command",
    [
        "games",
        "check first_legal --game kalah(2,1) --sandbox off",
        "gauntlet first_legal --levels 1 --games 2 --game kalah(2,1) --out closed",
        "verify cup",
        "tournament show cup 1 --stderr ada",
    ],
)
@pytest.mark.slow
def test_a_closed_standard_output_shows_no_traceback(command: str, folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", KALARENA, *command.split()],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )
    assert "Traceback" not in done.stderr


NARROW = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"}
"""Environment in which output is Latin-1 and files' names are ASCII."""


@pytest.mark.slow
def test_an_encoding_without_a_bots_letters(tmp_path: Path) -> None:
    """Text and JSON have the letters as JSON escapes them; a file's name with them is refused."""
    options = ("--sandbox", "off", "--game", "kalah(2,2)")
    (tmp_path / "bot.toml").write_text('command = "python3 nothing.py"\nname = "B日\U0001d49c"\n')
    command: list[str | Path] = [KALARENA, "play", ".", "greedy", *options]
    text = run_command(command, tmp_path, **NARROW)
    assert (text.returncode, "Traceback" in text.stderr) == (0, False), text.stderr
    assert "B\\u65e5\\ud835\\udc9c" in text.stdout
    value = json.loads(run_command([*command, "--json"], tmp_path, **NARROW).stdout)
    assert "B日\U0001d49c" in json.dumps(value, ensure_ascii=False)
    refused = run_command([KALARENA, "duel", "greedy", ".", "--games", "2", *options], tmp_path, **NARROW)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith(
        "Error: '\\u65e5\\U0001d49c' cannot be part of a file's name in this locale, whose encoding is ascii"
    )
    assert "Traceback" not in refused.stderr
