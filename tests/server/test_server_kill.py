"""kill -9 of `kalarena serve` at random moments: nothing lost, nothing doubled, nothing left.

Before each kill students submit by the API, versions are checked, the practice ladder and a tournament are
played.  A submission whose answer did not come is sent again after the restart, as a student would.
"""

import json
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx2
import pytest
from sqlalchemy import URL

from referee.judge.replay_check import check_replay
from tests.server.harness import starter
from tests.server.server_process import Served, served
from tests.support.courses import FAST_PASSWORDS, PASSWORD, add_account
from tests.support.databases import address
from tests.support.processes import all_end, descendants, open_pidfds
from tournaments.bots.storage import ContentStore, content_digest
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.course.course import Course
from tournaments.course.model import CompetitionKind, CompetitionState, Role, VersionState
from tournaments.database.location import Database
from tournaments.engines.local import PIPE_PATTERN
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.web.server_config import SERVER_FILE
from tournaments.web.server_main import utc_now

KILLS = {Path: 6, URL: 3}
"""Number of kills for a database in files, and on a PostgreSQL server."""
MOST_S = 1.5
"""Latest moment of a kill, in seconds after the server is ready."""
SUBMITS_S = 0.4
"""A submission begins at most this long before the kill; its response takes a tenth of a second or more."""
LIMIT_S = 900.0
"""Bound for events on a busy machine: the last life has several checks of a minute, and most of the games."""
GAME = "kalah(3,2)"
REFERENCES = ("random:1", "greedy", "first_legal")
TEAMS = 4
TEAMS_AT_FIRST = 2
"""Teams whose bots play in the tournament."""
ROUNDS = 3
"""60 games: few of them are played in the lives that end by a kill, the others after the last of these."""
MARKER = "KALARENA_TEST_SERVER"
SWEPT = ("scratch", "submissions/incoming", "bots/incoming")
CSRF = re.compile(r'name="csrf" value="([^"]+)"')

pytestmark = [
    pytest.mark.kill,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)"),
]


def files(number: int) -> list[SubmittedFile]:
    """Return the starter kit's bot with a file that makes it another upload."""
    return sorted([*starter(), SubmittedFile("notes.txt", b"%d" % number)], key=lambda file: file.path)


def archive(number: int) -> bytes:
    written = BytesIO()
    with ZipFile(written, "w") as zipped:
        for file in files(number):
            zipped.writestr(file.path, file.content)
    return written.getvalue()


@dataclass
class KilledServer:
    """A course whose server is killed again and again, and the submissions to it."""

    data: Path
    database: Database
    tokens: list[str]
    """A token of each team."""
    acknowledged: dict[int, list[int]] = field(default_factory=dict)
    """Number of a submission -> the id of its version in each response."""
    next_number: int = 0

    @classmethod
    def open(cls, data: Path, database: Database) -> "KilledServer":
        data.mkdir(exist_ok=True)
        with Course(database.course(), FAST_PASSWORDS) as course:
            course.settings.change(
                game=GAME, sandbox_mode="off", references=list(REFERENCES), check_total_s=60.0
            )
            add_account(course, Role.ADMIN, "lecturer")
            tokens = []
            for number in range(TEAMS):
                team = course.teams.add(f"Team {number}", utc_now())
                student = add_account(course, Role.STUDENT, f"student-{number}", team)
                tokens.append(course.tokens.make(student.id, "tests", utc_now(), None)[0])
        return cls.open_existing(data, database, tokens)

    @classmethod
    def open_existing(cls, data: Path, database: Database, tokens: Sequence[str] = ()) -> "KilledServer":
        if isinstance(database.address, URL):
            (data / SERVER_FILE).write_text(f"database = {json.dumps(address(database.address))}\n")
        return cls(data, database, list(tokens))

    @contextmanager
    def course(self) -> Iterator[Course]:
        with Course(self.database.course(), FAST_PASSWORDS) as course:
            yield course

    @contextmanager
    def server(self) -> Iterator[Served]:
        with served(self.data, environment={**os.environ, MARKER: str(self.data)}) as server:
            yield server

    def submit(self, server: Served) -> bool:
        """Submit the next version; return False without a response: then it is submitted again next time."""
        number = self.next_number
        try:
            answer = httpx2.post(
                f"{server.url}/api/v1/submissions?name=bot.zip",
                content=archive(number),
                headers={"Authorization": f"Bearer {self.tokens[number % TEAMS]}"},
                timeout=LIMIT_S,
            )
        except httpx2.TransportError:
            return False
        assert answer.status_code in (200, 201), answer.text
        self.acknowledged.setdefault(number, []).append(answer.json()["version"]["id"])
        self.next_number += 1
        return True

    def kept(self) -> dict[str, dict[str, str]]:
        """Return the games of each competition: key -> fingerprint."""
        with self.course() as course:
            slugs = [competition.slug for competition in course.competitions.all()]
        games = {}
        for slug in slugs:
            with Store(self.database.competition(slug)) as store:
                games[slug] = {game.key: game.fingerprint for game in store.games()}
        return games


def make_tournament(server: Served) -> None:
    """Make a tournament of the qualified versions with the lecturer's pages."""
    with httpx2.Client(base_url=server.url, headers={"Origin": server.url}, timeout=LIMIT_S) as browser:

        def submit(page: str, action: str, **fields: str) -> str:
            (csrf, *_) = CSRF.findall(browser.get(page).text)
            answer = browser.post(action, data={"csrf": csrf, **fields})
            assert answer.status_code == 303, answer.text
            return answer.headers["location"]

        submit("/sign-in", "/sign-in", login="lecturer", password=PASSWORD)
        page = submit(
            "/teach/tournaments/new",
            "/teach/tournaments/new",
            format="round-robin",
            title="Cup",
            rounds=str(ROUNDS),
            game=GAME,
            **{"time.move_s": "20", "seed": "1", "bots": "current", "do": "create"},
            references=" ".join(REFERENCES),
        )
        submit(page, f"{page}/start")


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def relatives(data: Path) -> list[str]:
    """Return the processes that were started by a server of this directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            where = (process / "cwd").readlink()
        except OSError:  # no process, or over
            continue
        if os.fsencode(data) in words or where.is_relative_to(data):
            found.append(f"{process.name}: {words[:200]!r}")
    return found


def kill_in_the_middle(killed: KilledServer, moment_s: float, submits_s: float) -> None:
    """Run a server and kill it; a submission begins a moment before."""
    with killed.server() as server:

        def submit() -> None:
            time.sleep(max(0.0, moment_s - submits_s))
            for _ in range(2):
                if not killed.submit(server):
                    return

        student = threading.Thread(target=submit)
        student.start()
        time.sleep(moment_s)
        left_behind = open_pidfds(descendants(server.process.pid))
        errors = server.kill()
        student.join()
        assert all_end(left_behind), "bots or workers outlived the server"
        assert "Traceback" not in errors, errors


@pytest.mark.long
def test_kill_9_at_random_moments(database: Database, tmp_path: Path) -> None:
    kills = KILLS[Path] if isinstance(database.address, Path) else KILLS[URL]
    dice = random.Random(kills)
    moments = [(dice.uniform(0.0, MOST_S), dice.uniform(0.0, SUBMITS_S)) for _ in range(kills)]
    print("killed after", ", ".join(f"{moment:.2f} s" for moment, _ in moments))
    killed = KilledServer.open(tmp_path / "data", database)

    with killed.server() as server, killed.course() as course:
        for _ in range(TEAMS_AT_FIRST):
            assert killed.submit(server)
        wait_until(lambda: len(course.versions.current()) == TEAMS_AT_FIRST)
        make_tournament(server)
        server.assert_ends()

    games = killed.kept()
    assert len(games) == 2
    for moment, submits in moments:
        kill_in_the_middle(killed, moment, submits)
        now = killed.kept()
        for slug, kept in games.items():
            assert kept.items() <= now[slug].items(), "a game that was kept is gone, or another one"
        games = now

    with killed.server() as server, killed.course() as course:
        course.settings.change(practice_on=False)
        while killed.next_number < TEAMS_AT_FIRST + kills // 2:
            assert killed.submit(server)
        wait_until(lambda: not course.versions.unfinished())
        wait_until(lambda: course.competitions.all()[0].state is not CompetitionState.RUNNING)
        server.assert_ends()

    wait_until(lambda: not relatives(killed.data))
    # A server that had to end before its games did leaves their files to the next start, such as this one.
    (killed.data / "scratch" / PIPE_PATTERN.replace("*", "1-1")).touch()
    left = [path for name in SWEPT for path in (killed.data / name).rglob("*") if not path.is_dir()]
    with killed.server() as server:
        assert not [path for path in left if path.exists()]
        server.assert_ends()
    wait_until(lambda: not relatives(killed.data))
    check_submissions(killed)
    check_games(killed, games)


def check_submissions(killed: KilledServer) -> None:
    """Each submission is stored once, unchanged, and has qualified."""
    contents = ContentStore(killed.data / "submissions")
    with killed.course() as course:
        versions = {version.id: version for version in course.versions.all(1000)}
        for version_id in versions:
            checked = course.versions.checked(version_id)
            assert checked is not None
            assert checked.report is not None
            keys = [game["key"] for game in checked.report["played"]]
            assert course.versions.checked_games(version_id) == keys
    times = Counter(version.content for version in versions.values())
    expected = {content_digest(files(number)): number for number in range(killed.next_number)}
    # The last one may be there although its answer was lost.
    late = times.keys() - expected.keys()
    assert late <= {content_digest(files(killed.next_number))}
    for content, number in expected.items():
        assert times[content] == 1, f"submission {number} is there {times[content]} times"
        (version_id,) = set(killed.acknowledged[number])
        assert versions[version_id].content == content
        contents.verify(content)
    assert {version.state for version in versions.values()} == {VersionState.QUALIFIED}


def check_games(killed: KilledServer, games: dict[str, dict[str, str]]) -> None:
    """No stored game is lost, each is judged again as before, and the tournament is complete."""
    with killed.course() as course:
        competitions = course.competitions.all()
    assert {competition.slug for competition in competitions} == games.keys()
    for competition in competitions:
        with Store(killed.database.competition(competition.slug)) as store:
            played = store.games()
            assert games[competition.slug].items() <= {game.key: game.fingerprint for game in played}.items()
            for game in played:
                assert check_replay(store.record(game.key)) == []
            if competition.kind is CompetitionKind.TOURNAMENT:
                assert competition.state is CompetitionState.FINISHED, competition.message
                check_round_robin(competition.spec, TournamentResults.load(store))


def check_round_robin(spec: Any, summary: TournamentResults) -> None:
    """In each round, each bot has moved first against each other bot once."""
    names = [entered["name"] for entered in spec["field"]]
    assert len(names) == TEAMS_AT_FIRST + len(REFERENCES)
    meetings = Counter((game.round, game.first, game.second) for game in summary.kept)
    assert meetings == Counter(
        (number, first, second)
        for number in range(1, ROUNDS + 1)
        for first in names
        for second in names
        if first != second
    )
