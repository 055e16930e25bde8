"""A course in which games were played, for tests of its pages: real stores and games, no processes."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from referee.judge.results import GameRecord
from tests.support.builders import make_player
from tests.support.courses import NOW
from tests.support.databases import database_of, lasting_database
from tests.support.random_games import random_game
from tests.web.site import World, open_world
from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile, Upload
from tournaments.course.course import Course
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import (
    Account,
    BotChoice,
    Checked,
    CheckedGame,
    Competition,
    CompetitionKind,
    CompetitionState,
    Version,
    VersionState,
)
from tournaments.database.base import Location
from tournaments.database.location import Database
from tournaments.reporting.ruling_requests import (
    PairingRequest,
    Ruling,
    entries_of,
    pairing_rulings,
    withdrawal,
)
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import PackedGame
from tournaments.results.journal import Action
from tournaments.results.store import Store
from tournaments.schedule.pairing import Entrant, History
from tournaments.schedule.plan import Plan
from tournaments.server.casual.games import CasualGames
from tournaments.server.challenges.challenge_runner import Challenges
from tournaments.server.checks.check_log import CheckLog
from tournaments.server.competitions.entrants import Candidate
from tournaments.server.competitions.late_entrants import joining
from tournaments.server.competitions.rejudge_job import Rejudging
from tournaments.server.failures import Failures
from tournaments.server.live_hub import Hub
from tournaments.server.metrics import Metrics
from tournaments.server.practice.practice_results import LadderHistory, PracticeResults
from tournaments.server.slots import Slots
from tournaments.server.status import Disk, Status

if TYPE_CHECKING:
    from tournaments.engines.base import Engine
    from tournaments.server.service_context import ServiceContext

T = TypeVar("T")

SECRET = "the secret words of"
"""The beginning of each bot's standard error."""
REFERENCE = "ladder:1"
BOTS = ("Team 1 v1", "Team 2 v1", REFERENCE)
LOST_BY_FAULT = "/competitions/practice/games/p0000003-1"
"""A game that Team 1 lost to Team 2."""
CHECK_GAME = "/my/versions/1/games/swapped-south"
"""A game of the check of Team 1's first version, the only one that is kept."""
REPORT: dict[str, Any] = {
    "schema": 1,
    "bot": ".",
    "command": ["python3", "bot.py"],
    "digest": "d",
    "games": ["manchester"],
    "control": "5 s per move",
    "sandbox": "full",
    "items": [
        {
            "id": "starts",
            "game": "manchester",
            "title": "Starts",
            "status": "passed",
            "sentence": "took START after 40 ms",
            "advice": "",
            "details": [],
        },
        {
            "id": "plays-first",
            "game": "manchester",
            "title": "Plays as South",
            "status": "failed",
            "sentence": "lost 3 of 3 games: it sent '<b>debug</b>'",
            "advice": "print debug text to standard error",
            "details": ["  -> CHANGE;3;...;YOU", "  <- <b>debug</b>"],
            "games": ["swapped-south", "first_legal-north"],
        },
    ],
    "played": [
        {
            "key": key,
            "title": title,
            "item": "plays-first",
            "detail": "Team 1 lost: it sent '<b>debug</b>'",
            "fault": "illegal-move",
            "duration_ms": 9.5,
            "opponent": opponent,
        }
        for key, title, opponent in (
            ("swapped-south", "as South against a test opponent that swaps at once", ""),
            ("first_legal-north", "as North against first_legal", "first_legal"),
        )
    ],
    "duration_s": 4.2,
    "numbers": {"move_median_ms": 1.25, "moves": 40.0},
}


@dataclass
class PlayedTournaments:
    """The tournaments of a service that plays nothing; rulings are made as between games."""

    stores: dict[int, Store] = field(default_factory=dict)
    practice: dict[int, list[str]] = field(default_factory=dict)
    """The bots on each practice ladder."""
    challenges: dict[int, Location] = field(default_factory=dict)
    """Locations of the games of challenges."""
    course: Course = field(init=False)
    requests: list[tuple[str, int]] = field(default_factory=list)
    """The actions of lecturers, in their order."""
    rejudgings: dict[int, Rejudging] = field(default_factory=dict)
    """No games are judged again."""
    retry_reasons: dict[int, str] = field(default_factory=dict)
    """The failure of each tournament that waits."""
    _summaries: dict[int, tuple[tuple[int, int], TournamentResults]] = field(default_factory=dict)

    async def summary(self, competition_id: int, *, wait: bool = False) -> TournamentResults:
        if competition_id in self.challenges:
            return PracticeResults("Challenges", "manchester", "1 s per move", [])
        store = self.stores[competition_id]
        size, kept = store.size(), self._summaries.get(competition_id)
        if kept is not None and kept[0] == size:
            return kept[1]
        names = self.practice.get(competition_id)
        if names is None:
            summary = TournamentResults.load(store)
        else:
            games = [game for game in store.games() if {game.first, game.second} <= set(names)]
            summary = PracticeResults("Practice", "manchester", "1 s per move", names, kept=games)
        self.keep(competition_id, summary)
        return summary

    async def without_table(self, competition_id: int) -> TournamentResults:
        return await self.summary(competition_id)

    def keep(self, competition_id: int, summary: TournamentResults) -> None:
        """Use this summary for all games that are stored now."""
        self._summaries[competition_id] = self.stores[competition_id].size(), summary

    async def history(self, competition_id: int) -> LadderHistory:
        names = [one.name for one in self.course.competitions.competitors(competition_id)]
        games = self.stores[competition_id].games()
        return LadderHistory("Practice", "manchester", "1 s per move", names, kept=games)

    async def record(self, competition_id: int, key: str) -> GameRecord:
        return await self.read(competition_id, lambda store: store.record(key))

    async def read(self, competition_id: int, work: Callable[[Store], T]) -> T:
        if competition_id in self.challenges:
            with Store(self.challenges[competition_id]) as store:
                return work(store)
        return work(self.stores[competition_id])

    def retry_reason(self, competition_id: int) -> str:
        return self.retry_reasons.get(competition_id, "")

    async def rejudge(self, competition_id: int, by: Account) -> None:
        self._control("rejudge", competition_id, by)

    async def start(self, competition_id: int, by: Account) -> None:
        self._control("start", competition_id, by)

    async def pause(self, competition_id: int, by: Account) -> None:
        self._control("pause", competition_id, by)

    async def resume(self, competition_id: int, by: Account) -> None:
        self._control("resume", competition_id, by)

    async def publish(self, competition_id: int, by: Account) -> None:
        self._control("publish", competition_id, by)

    async def cancel(self, competition_id: int, by: Account) -> None:
        self._control("cancel", competition_id, by)

    async def delete(self, competition_id: int, by: Account) -> None:
        self._control("delete", competition_id, by)

    async def hide(self, competition_id: int, hidden: bool, by: Account) -> None:
        self._control("hide" if hidden else "show", competition_id, by)

    def _control(self, action: str, competition_id: int, by: Account) -> None:
        assert by.role.teaches
        self.requests.append((action, competition_id))

    async def rule(
        self, competition_id: int, action: Action, subject: str, why: str, annul: bool | None, by: Account
    ) -> list[str]:
        summary = await self.summary(competition_id)
        ruling = withdrawal(summary, subject, annul) if action is Action.WITHDRAW else Ruling(action, subject)
        return self._store_rulings(competition_id, summary, [ruling], why, by)

    async def add_bot(
        self, competition_id: int, choice: BotChoice, why: str, replaces: str | None, by: Account
    ) -> list[str]:
        assert choice.reference is not None
        summary = await self.summary(competition_id)
        player = make_player(choice.reference)
        rulings = joining(summary, Candidate(choice.reference), player, replaces)
        return self._store_rulings(competition_id, summary, rulings, why, by)

    async def pair(self, competition_id: int, request: PairingRequest, why: str, by: Account) -> list[str]:
        summary = await self.summary(competition_id)
        return self._store_rulings(competition_id, summary, pairing_rulings(summary, request), why, by)

    def _store_rulings(
        self,
        competition_id: int,
        summary: TournamentResults,
        rulings: list[Ruling],
        why: str,
        by: Account,
    ) -> list[str]:
        entries = entries_of(summary, rulings, why, NOW, by.login)
        self.stores[competition_id].note(*entries)
        return [f"noted: {entry}" for entry in entries]


class PlayedService:
    """A service that starts no processes."""

    def __init__(self, data: Path) -> None:
        self.tournaments = PlayedTournaments()
        self.database = database_of(data)
        self.live = Hub(lambda: NOW)
        self.slots = Slots(2)
        self.tournament_slots = 2
        self.failures = Failures(lambda: NOW)
        self.contents = ContentStore(data / "submissions")
        self.logs: dict[int, CheckLog] = {}
        self.rechecked: list[int] = []
        self.changes = 0
        self.built = 0
        """Bytes of the bots that are built from each team's uploads."""
        self.world: World
        self.challenges: Challenges
        """Requests are stored; nothing plays them."""

    @cached_property
    def casual(self) -> CasualGames:
        """Casual games without bots."""
        context = SimpleNamespace(
            course=self.world.course, now=self.world.clock, metrics=Metrics(), slots=Slots(1)
        )
        return CasualGames(
            cast("Any", context), cast("Any", SimpleNamespace(concurrency=1)), self.world.site.data
        )

    async def submit(
        self, upload: Upload, team_id: int, account_id: int, origin: str, at: datetime
    ) -> tuple[Version, bool]:
        content = self.contents.put(upload.files)
        course = self.world.course
        size = sum(len(file.content) for file in upload.files)
        values = (team_id, content, len(upload.files), size, account_id, origin, at, course.settings.load())
        return course.versions.add(*values)

    async def check_log(self, version_id: int) -> CheckLog:
        if version_id in self.logs:
            return self.logs[version_id]
        checked = self.world.course.versions.checked(version_id)
        return CheckLog.of(checked.log if checked is not None else "")

    async def recheck(self, version_id: int, by: Account) -> None:
        assert by.role.teaches
        self.rechecked.append(version_id)
        self.world.course.versions.requeue(version_id)

    def built_size(self, team_id: int) -> int:
        assert self.world.course.teams.get(team_id) is not None
        return self.built

    def settings_changed(self) -> None:
        self.changes += 1

    def status(self) -> Status:
        return Status(
            disk=Disk(10**10, 10**11),
            unchecked=3,
            checking=1,
            playing=tuple(self.live.playing()),
            slots=self.slots.total,
            uses=self.slots.status(),
            resting="it is night",
            load=None,
            cores=2,
            failures=self.failures.newest(),
        )


@dataclass
class Played:
    """A world with a practice ladder and a tournament."""

    world: World
    service: PlayedService
    practice: Competition
    cup: Competition
    versions: dict[str, Version]
    """By the names in games."""

    def show(self, visitors: str, *, students_see_names: bool = True) -> None:
        """Change the settings of which names visitors and students see."""
        self.world.course.settings.change(standings_for=visitors, students_see_names=students_see_names)

    @contextmanager
    def tournament(self, slug: str, kind: str, bots: Sequence[str], title: str = "") -> Iterator[Store]:
        """Add a tournament that was played to its end, until the end of the block.

        ``bots`` are names of ``versions``, and reference players.
        """
        competitions, plan = self.world.course.competitions, Plan({"kind": kind}, rounds=1, width=1)
        added = competitions.add(slug, title or slug.title(), CompetitionKind.TOURNAMENT, {}, None, NOW)
        for state in (CompetitionState.RUNNING, CompetitionState.FINISHED):
            competitions.set_state(added.id, state, "", NOW)
        for name in bots:
            version = self.versions.get(name)
            if version is None:
                competitions.enter(added.id, name, None, name)
            else:
                competitions.enter(added.id, name, version.id, None)
        summary = TournamentResults(slug, "manchester", "1 s per move", bots, "points", plan)
        with Store(self.service.database.competition(slug)) as store:
            store.claim(summary.name, summary.config(), {"bots": dict.fromkeys(bots, "d")})
            while due := summary.schedule.due(summary.history):
                for number, pairing in enumerate(due):
                    names = bots[pairing.first], bots[pairing.second]
                    store.add(played_game(pairing.key, *names, pairing.round * 99 + number), pairing.round)
                summary = TournamentResults.load(store)
            self.service.tournaments.stores[added.id] = store
            yield store

    def add_version(self, content: str = "c" * 64) -> Version:
        """Add a version of Team 1 that waits for its check."""
        team, student = self.world.teams[0], self.world.accounts["student"]
        return self.world.course.versions.add(team.id, content, 1, 9, student.id, "page", NOW)[0]

    def qualify(self, version: Version) -> Version:
        """Let a version pass its check."""
        checked = Checked({**REPORT, "items": REPORT["items"][:1]}, "built\nchecked")
        return self._decide(version, VersionState.QUALIFIED, checked, "d" * 64, 0)

    def fail(self, version: Version, games: Sequence[CheckedGame] | None = None) -> Version:
        """Let a version fail its check, of which these games are kept; by default one."""
        checked = Checked(REPORT, "built\nlost <i>everything</i>")
        if games is None:
            games = (checked_game(f"Team 1 v{version.number}"),)
        return self._decide(version, VersionState.FAILED, checked, None, 1, games)

    def _decide(
        self,
        version: Version,
        state: VersionState,
        checked: Checked,
        digest: str | None,
        failures: int,
        games: Sequence[CheckedGame] = (),
    ) -> Version:
        versions = self.world.course.versions
        versions.begin_check(version.id)
        return versions.decide(version.id, state, checked, digest, failures, NOW, games)


def played_game(key: str, first: str, second: str, seed: int, illegal_after: int | None = None) -> GameRecord:
    """Return a random game between two bots, each of which writes to standard error."""
    record = random_game("manchester", seed, illegal_after=illegal_after)
    names = (first, second)
    detail = record.result.detail
    for player, name in zip(record.players, names, strict=True):
        detail = detail.replace(player.name, name)
    result = replace(record.result, detail=detail)
    if result.fault is not None and result.winner is not None:
        result = replace(
            result, note=f"its last words on standard error: '{SECRET} {names[1 - result.winner]}'"
        )
    return replace(
        record,
        key=key,
        players=(replace(record.players[0], name=first), replace(record.players[1], name=second)),
        result=result,
        stderr=(f"{SECRET} {first}\n", f"{SECRET} {second}\n"),
    )


def checked_game(name: str, *, lost: bool = True) -> CheckedGame:
    """Return a game of the check of a bot with a name, which lost it or won it by a fault."""
    record = played_game("swapped-south", name, "test opponent", 5, 4 if lost else 5)
    assert (record.result.winner == 1) is lost
    return CheckedGame(record.key, 0, PackedGame.of(record).packed)


@contextmanager
def open_played(
    data: Path,
    *,
    pairs: int = 3,
    cup_rounds: int = 1,
    cup_format: str = "round-robin",
    mail: MailHome | None = None,
) -> Iterator[Played]:
    """Open a course of two teams with a version each, which played with a reference player."""
    folder, template = _template(pairs, cup_rounds, cup_format)
    shutil.copytree(folder, data, dirs_exist_ok=True)
    database, service = database_of(data, template), PlayedService(data)
    with ExitStack() as closing:
        world = closing.enter_context(open_world(database.course(), data, service, mail=mail))
        service.world, service.tournaments.course = world, world.course
        values = {"course": world.course, "database": database, "now": world.clock, "metrics": Metrics()}
        service.challenges = Challenges(
            cast("ServiceContext", SimpleNamespace(**values)), cast("Engine", None), data
        )
        closing.callback(service.challenges.close)
        competitions = {}
        for competition in world.course.competitions.all():
            competitions[competition.slug] = competition
            store = closing.enter_context(Store(database.competition(competition.slug)))
            service.tournaments.stores[competition.id] = store
        service.tournaments.practice[competitions["practice"].id] = list(BOTS)
        current = world.course.versions.current()
        versions = {f"{team.name} v1": current[team.id] for team in world.teams}
        yield Played(world, service, competitions["practice"], competitions["cup"], versions)


@cache
def _template(*games: Any) -> tuple[Path, Database]:
    """Return a directory with a played course, and its database: copying is quicker than playing again."""
    folder = Path(tempfile.mkdtemp(prefix="kalarena-played-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    database = lasting_database(folder)
    _set_up(database, folder, *games)
    return folder, database


def _set_up(database: Database, data: Path, pairs: int, cup_rounds: int, cup_format: str) -> None:
    with open_world(database.course(), data) as world:
        course, versions = world.course, {}
        for number, (team, role) in enumerate(zip(world.teams, ("student", "other"), strict=True), 1):
            content = ContentStore(data / "submissions").put(
                [SubmittedFile("bot.py", f"print({number})\n".encode())]
            )
            account = world.accounts[role]
            version, _ = course.versions.add(team.id, content, 1, 9, account.id, "page", NOW)
            course.versions.begin_check(version.id)
            checked = Checked({**REPORT, "items": REPORT["items"][:1]}, "built\nchecked")
            games = [checked_game(f"{team.name} v1")]
            course.versions.decide(version.id, VersionState.QUALIFIED, checked, "d" * 64, 0, NOW, games)
            versions[f"{team.name} v1"] = version.id
        for slug, title, kind in (
            ("practice", "Practice", CompetitionKind.PRACTICE),
            ("cup", "Cup of Team 1", CompetitionKind.TOURNAMENT),
        ):
            spec = {"game": course.settings.load().game}
            competition = course.competitions.add(slug, title, kind, spec, None, NOW)
            course.competitions.set_state(competition.id, CompetitionState.RUNNING, "", NOW)
            for name, version_id in versions.items():
                course.competitions.enter(competition.id, name, version_id, None)
            course.competitions.enter(competition.id, REFERENCE, None, REFERENCE)
    with Store(database.competition("practice")) as store:
        _play_practice(store, pairs)
    with Store(database.competition("cup")) as store:
        _play_cup(store, cup_rounds, cup_format)


def _play_practice(store: Store, pairs: int) -> None:
    """Play practice games; in each third one the bot on turn after 6 moves sends an illegal move."""
    for number in range(1, 2 * pairs + 1):
        first, second = BOTS[number % 3], BOTS[(number + 1) % 3]
        record = played_game(f"p{number:07d}-1", first, second, number, 6 if number % 3 == 0 else None)
        store.add(record, 1, f"p{number:07d}")


def _play_cup(store: Store, rounds: int, kind: str) -> None:
    plan = Plan({"kind": kind}, rounds=rounds, width=1)
    summary = TournamentResults("Cup of Team 1", "manchester", "1 s per move", BOTS, "points", plan)
    store.claim(summary.name, summary.config(), {"bots": dict.fromkeys(BOTS, "d")})
    pairings = plan.schedule(BOTS, [Entrant() for _ in BOTS]).pairings(History())
    for number, pairing in enumerate(pairings):
        names = BOTS[pairing.first], BOTS[pairing.second]
        store.add(played_game(pairing.key, *names, number + 50, 4 if number % 2 else None), pairing.round)
