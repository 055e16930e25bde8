"""The program of the machine whose power fails: ``python -m tests.vm.guest_power_cuts FIRST ROUNDS SEED``.

It runs on a disk with a course's server and a tournament, and prints each acknowledgement as a line of
``RESULT``.  The host cuts the machine off at any moment, and starts it again.
"""

import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.vm.guest import result
from tournaments.config.load import load_tournament
from tournaments.engines.local import open_local_engine
from tournaments.processes.process_settings import prepare_for_many_games
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import has_game_files
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store
from tournaments.running.runner import Observer, Run, open_run, play_all
from tournaments.schedule.pairing import Pairing

DISK = Path("/mnt")
CUP, COURSE, TOKEN = "cup", "course", "token"
"""Names on the disk: the tournament's results, the server's data, and a file with a student's token."""
GAME, ROUND_GAMES = "kalah(3,2)", 6
"""Game of the tournament, and games in a round of its three bots."""
SHELL_BOT = Path(__file__).parent / "bots" / "shell" / "bot.sh"
UPLOADS = 2
"""Uploads in each life of the server."""
PAUSE_S = 5.0
"""Most seconds between two of them."""
WRITEBACK = {"dirty_expire_centisecs": 100, "dirty_writeback_centisecs": 50}
"""Settings of the kernel with which it writes files to the disk after a second, in place of 30, and does not
flush them: more of what the programs have not flushed is on the disk by chance."""
REQUEST_LIMIT_S = 600.0
POLL_S = 1.0


def tournament_file(folder: Path, rounds: int) -> Path:
    """Write the tournament's file; its bots start in milliseconds."""
    bots = [f'{{bot = "sh {SHELL_BOT} {name}", name = "{name}"}}' for name in ("first", "last", "fullest")]
    path = folder / "cup.toml"
    path.write_text(
        f"name = 'Cup'\ngame = '{GAME}'\nrounds = {rounds}\nseed = 1\nbots = [{', '.join(bots)}]\n"
        "[time]\nmove_s = 60.0\nstart_s = 300.0\n[sandbox]\nmode = 'off'\n"
    )
    return path


def archive(number: int) -> bytes:
    """Return the upload of a number: the same bytes each time."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as zipped:
        for name, content in files(number).items():
            zipped.writestr(zipfile.ZipInfo(name), content)
    return written.getvalue()


def files(number: int) -> dict[str, bytes]:
    """Return the files of an upload of a number."""
    return {
        "bot.sh": SHELL_BOT.read_bytes(),
        "bot.toml": b'command = ["sh", "bot.sh", "first"]\n',
        "notes.txt": b"%d" % number,
    }


class Acknowledging(Observer):
    """Prints each stored game."""

    def __init__(self) -> None:
        self.first = threading.Event()
        """Set when the run has stored its first game."""

    def ended(self, pairing: Pairing, game: GameSummary, host: str = "") -> None:
        """Print the key and the fingerprint of a game."""
        result("game", key=game.key, fingerprint=game.fingerprint)
        self.first.set()


async def play(run: Run, directory: Path, observer: Observer) -> None:
    """Play the games that are missing."""
    async with open_local_engine(directory, 1) as engine:
        await play_all(run, engine, directory, observer)


def compare_files(observer: Acknowledging, before: set[str]) -> None:
    """Once the run has begun, compare the files of the older games with the store."""
    observer.first.wait()
    with Store(DISK / CUP / "results.db", read_only=True) as store:
        differ = [key for key in sorted(before) if not has_game_files(DISK / CUP, store.record(key))]
    result("files", games=len(before), differ=differ)


def serve(first_upload: int, pauses: random.Random) -> None:
    """Run the server, submit versions, and report when all versions were checked."""
    command = "from tournaments.cli.main import entry; entry()"
    server = subprocess.Popen(
        [sys.executable, "-c", command, "serve", "--data", str(DISK / COURSE), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    ready = server.stdout.readline()
    url = ready.split()[3].rstrip(",")
    result("server", ready=ready)
    for number in range(first_upload, first_upload + UPLOADS):
        answer = request(f"{url}/api/v1/submissions?name=bot.zip", archive(number))
        result("upload", number=number, version=answer["version"]["id"])
        time.sleep(pauses.uniform(0.0, PAUSE_S))
    while True:
        versions = request(f"{url}/api/v1/submissions")["versions"]
        if not {version["state"] for version in versions} & {"queued", "checking"}:
            break
        time.sleep(POLL_S)
    result("checked", states=sorted({version["state"] for version in versions}), versions=len(versions))


def request(url: str, body: bytes | None = None) -> Any:
    """Send a request to the server as the student."""
    headers = {"Authorization": f"Bearer {(DISK / TOKEN).read_text()}"}
    asked = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=REQUEST_LIMIT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        result("refused", status=error.code, body=error.read().decode(errors="replace"))
        raise


def mounted() -> None:
    """Mount the disk."""
    subprocess.run(["mount", "-t", "ext4", "/dev/vda", str(DISK)], check=True)
    result("mounted")


def main() -> None:
    """Let the server and the tournament run until the power fails."""
    first_upload, rounds, seed = map(int, sys.argv[1:])
    mounted()
    for name, value in WRITEBACK.items():
        Path("/proc/sys/vm", name).write_text(str(value))
    directory = TournamentDirectory(DISK / CUP)
    observer = Acknowledging()
    server = partial(serve, first_upload, random.Random(seed))
    threading.Thread(target=server, daemon=True).start()
    tournament = load_tournament(tournament_file(Path("/tmp"), rounds))
    with directory.locked(), Store(directory.store_path) as store:
        before = store.played()
        threading.Thread(target=compare_files, args=(observer, before), daemon=True).start()
        with prepare_for_many_games():
            run = open_run(tournament, store)
            trio.run(play, run, directory.path, observer)
        directory.write_reports(TournamentResults.load(store))
        result("ended", unplayed=run.report.unplayed)
    signal.pause()


def write_two_files() -> None:
    """Write a file that is flushed, and another one that is not."""
    mounted()
    for name in ("flushed", "unflushed"):
        with (DISK / name).open("wb") as file:
            file.write(name.encode() * 1000)
            file.flush()
            if name == "flushed":
                os.fsync(file.fileno())
    result("written")
    signal.pause()


if __name__ == "__main__":
    write_two_files() if sys.argv[1:] == ["two-files"] else main()
