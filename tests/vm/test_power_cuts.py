"""Power cuts of a machine with a tournament and a server at work: nothing acknowledged is lost or doubled.

After each cut the disk is made as a power cut leaves it (``disk.py``) and is read on the host, which is
faster than the machine.  Then the machine starts again from that disk.

``KALARENA_VM_CUTS`` is the number of cuts, and ``KALARENA_VM_SEED`` the seed of their moments.
"""

import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.running.test_resume import run_to_the_end, table
from tests.support.builders import invoke
from tests.support.courses import FAST_PASSWORDS, add_account
from tests.vm import guest_power_cuts as guest
from tests.vm.disk import Disk
from tests.vm.machine import Machine, MachineError, needs_machine
from tests.vm.results import result_of
from tournaments.bots.storage import ContentStore, content_digest
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.course.course import Course
from tournaments.course.model import Role, VersionState
from tournaments.database.location import Database
from tournaments.results.game_files import has_game_files
from tournaments.results.store import Store
from tournaments.web.server_main import utc_now

CUTS = int(os.environ.get("KALARENA_VM_CUTS", "3"))
SEED = int(os.environ.get("KALARENA_VM_SEED", "20"))
EVENTS = {"mounted": 60.0, "game": 20.0, "upload": 20.0}
"""Event before a cut -> the most seconds between both: the disk is mounted, or the first game or upload of
this life is acknowledged."""
ROUNDS = 6
"""Least number of rounds that are not complete when the machine starts."""
LIFE_LIMIT_S = 1800.0
"""Bound for the machine to start and to play a few rounds, on a busy host."""
DISK_MB = 96
GOALS = {"ended", "files", "checked"}
"""Results that show that everything goes on: the tournament's end, its files, and the server's checks."""

pytestmark = pytest.mark.vm


def make_disk(image: Path, folder: Path) -> Disk:
    """Make a disk with a new course."""
    data = folder / guest.COURSE
    data.mkdir(parents=True)
    with Course(Database(data).course(), FAST_PASSWORDS) as course:
        course.settings.change(
            game=guest.GAME, sandbox_mode="off", references=["first_legal"], practice_on=False
        )
        student = add_account(course, Role.STUDENT, "student", course.teams.add("Team", utc_now()))
        token, _ = course.tokens.make(student.id, "tests", utc_now(), None)
    (folder / guest.TOKEN).write_text(token)
    return Disk.make(image, DISK_MB, folder)


class Disturbed:
    """A machine that is cut off again and again, and what it has acknowledged."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.disk = make_disk(folder / "disk", folder / "new")
        self.rounds = 0
        self.games: dict[str, str] = {}
        """Key of each game that was acknowledged, or was on the disk -> its fingerprint."""
        self.uploads: dict[int, int] = {}
        """Number of each acknowledged upload -> the id of its version."""

    def live(self, *, is_last: bool = False) -> None:
        """Start the machine and cut it off; the last time after everything is done."""
        self.rounds = max(self.rounds, len(self.games) // guest.ROUND_GAMES + ROUNDS)
        first_upload = max(self.uploads, default=-1) + 1
        event = self.chance.choice(list(EVENTS))
        after_s = self.chance.uniform(0.0, EVENTS[event])
        arguments = [first_upload, self.rounds, self.chance.randrange(1000)]
        command = [sys.executable, "-m", guest.__name__, *map(str, arguments)]
        machine = Machine(command, disks=[self.disk])
        seen: Counter[str] = Counter()
        began = time.monotonic()
        try:
            for line in machine.lines(LIFE_LIMIT_S):
                found = result_of(line)
                if found is None:
                    continue
                seen[found["check"]] += 1
                self.acknowledge(found)
                if is_last and seen.keys() >= GOALS:
                    break
                if not is_last and machine.cut_at is None and found["check"] == event:
                    machine.cut_at = time.monotonic() + after_s
        finally:
            machine.cut()
        if machine.status is not None or not seen:
            raise MachineError("the program in the machine ended:\n" + "\n".join(machine.log[-40:]))
        loss = self.disk.cut(self.chance)
        moment = "after the end" if is_last else f"{after_s:.1f} s after {event!r}"
        print(
            f"cut {moment}, {time.monotonic() - began:.0f} s after the start; {dict(seen)}; {loss}",
            flush=True,
        )

    def acknowledge(self, found: dict[str, Any]) -> None:
        """Take note of a result of the machine."""
        match found["check"]:
            case "game":
                assert found["key"] not in self.games, "a stored game was played again"
                self.games[found["key"]] = found["fingerprint"]
            case "upload":
                assert found["number"] not in self.uploads
                self.uploads[found["number"]] = found["version"]
            case "files":
                assert found["differ"] == []
            case "failed":
                raise MachineError(found["errors"])

    def check_disk(self) -> Path:
        """Check what is on the disk, and return a folder with its files."""
        found = self.folder / "found"
        shutil.rmtree(found, ignore_errors=True)
        self.disk.copy_files(found)
        self.check_tournament(found / guest.CUP)
        self.check_course(found / guest.COURSE)
        return found

    def check_tournament(self, cup: Path) -> None:
        """All acknowledged games are in the store once, and it can be verified."""
        if not (cup / "results.db").exists():
            assert not self.games
            return
        with Store(cup / "results.db") as store:
            stored = [(game.key, game.fingerprint) for game in store.games()]
        assert len({key for key, _ in stored}) == len(stored)
        assert self.games.items() <= set(stored), "an acknowledged game is gone, or another one"
        self.games.update(stored)
        if stored:
            # The next run compares the games' files with the store: see "files" in the guest.
            (cup / "games").rename(cup / "unread")
            done = invoke("verify", cup)
            assert done.exit_code == 0, done.output
            (cup / "unread").rename(cup / "games")

    def check_course(self, data: Path) -> None:
        """All acknowledged uploads are there once and unchanged."""
        contents = ContentStore(data / "submissions")
        with Course(Database(data).course(), FAST_PASSWORDS) as course:
            versions = {version.id: version for version in course.versions.all(10_000)}
        times = Counter(version.content for version in versions.values())
        for content, count in times.items():
            assert count == 1
            contents.verify(content)
        for number, version_id in self.uploads.items():
            submitted = [SubmittedFile(name, content) for name, content in guest.files(number).items()]
            assert versions[version_id].content == content_digest(submitted)


def test_power_cuts_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    needs_machine()
    print(f"{CUTS} cuts with KALARENA_VM_SEED={SEED}")
    disturbed = Disturbed(tmp_path, random.Random(SEED))
    for _ in range(CUTS):
        disturbed.live()
        disturbed.check_disk()
    disturbed.live(is_last=True)
    found = disturbed.check_disk()

    cup = found / guest.CUP
    with Store(cup / "results.db") as store:
        assert len(store.games()) == disturbed.rounds * guest.ROUND_GAMES
        assert [game.key for game in store.games() if not has_game_files(cup, store.record(game.key))] == []
    done = invoke("verify", cup)
    assert done.exit_code == 0, done.output
    calm = tmp_path / "calm"
    run_to_the_end(guest.tournament_file(tmp_path, disturbed.rounds), calm)
    for form in ("text", "csv", "json", "html"):
        assert table(cup, form) == table(calm, form)
    with Course(Database(found / guest.COURSE).course(), FAST_PASSWORDS) as course:
        states = {version.state for version in course.versions.all(10_000)}
    assert states == {VersionState.QUALIFIED}
    print(f"{len(disturbed.games)} games and {len(disturbed.uploads)} uploads")


def test_a_cut_loses_what_was_not_flushed(tmp_path: Path) -> None:
    """The proof that the other test proves something."""
    needs_machine()
    disk = make_disk(tmp_path / "disk", tmp_path / "new")
    machine = Machine([sys.executable, "-m", guest.__name__, "two-files"], disks=[disk])
    try:
        assert any("written" in line for line in machine.lines(LIFE_LIMIT_S))
    finally:
        machine.cut()
    disk.cut(random.Random(SEED))
    disk.copy_files(tmp_path / "found")
    assert (tmp_path / "found" / "flushed").read_bytes() == b"flushed" * 1000
    unflushed = tmp_path / "found" / "unflushed"
    assert not unflushed.exists() or unflushed.read_bytes() == b""
