"""A course in which games were played, for tests of its pages: real stores and games, no processes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from referee.judge.results import GameRecord, MatchResult
from tests.databases import database_of
from tests.random_games import random_game
from tests.web_site import NOW, World, open_world
from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile, Upload
from tournaments.course.model import (
    Checked,
    Competition,
    CompetitionKind,
    CompetitionState,
    Version,
    VersionState,
)
from tournaments.reporting.ruling_requests import (
    PairingRequest,
    Ruling,
    entries_of,
    pairing_rulings,
    withdrawal,
)
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action
from tournaments.results.store import Store
from tournaments.schedule.pairing import Entrant, History
from tournaments.schedule.plan import Plan
from tournaments.server.checks.check_log import CheckLog
from tournaments.server.competitions.rejudge_job import Rejudging
from tournaments.server.failures import Failures
from tournaments.server.live_hub import Hub
from tournaments.server.practice.practice_results import PracticeResults
from tournaments.server.slots import Slots
from tournaments.server.status import Status

SECRET = "the secret words of"
"""Begins what each bot writes to standard error."""
REFERENCE = "ladder:1"
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
        },
    ],
    "played": [],
    "duration_s": 4.2,
    "numbers": {"move_median_ms": 1.25, "moves": 40.0},
}


@dataclass
class Contests:
    """What was played."""

    stores: dict[int, Store] = field(default_factory=dict)
    practice: dict[int, list[str]] = field(default_factory=dict)
    """Practice ladder -> who is on it."""
    _summaries: dict[int, tuple[tuple[int, int], TournamentResults]] = field(default_factory=dict)

    async def summary(self, competition_id: int, *, wait: bool = False) -> TournamentResults:
        store = self.stores[competition_id]
        size, kept = store.size(), self._summaries.get(competition_id)
        if kept is None or kept[0] != size:
            names = self.practice.get(competition_id)
            if names is None:
                made = TournamentResults.load(store)
            else:
                games = [game for game in store.games() if {game.first, game.second} <= set(names)]
                made = PracticeResults("Practice", "manchester", "1 s per move", names, kept=games)
            kept = self._summaries[competition_id] = size, made
        return kept[1]

    def keep(self, competition_id: int, summary: TournamentResults) -> None:
        """Take this for the summary of all that was played until now."""
        self._summaries[competition_id] = self.stores[competition_id].size(), summary

    async def record(self, competition_id: int, key: str) -> GameRecord:
        return self.stores[competition_id].record(key)

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    """What lecturers had done, in its order."""
    rejudgings: dict[int, Rejudging] = field(default_factory=dict)

    def rejudging(self, competition_id: int) -> Rejudging | None:
        return self.rejudgings.get(competition_id)

    async def rejudge(self, competition_id: int) -> None:
        self.asked.append(("rejudge", competition_id))

    async def start(self, competition_id: int) -> None:
        self.asked.append(("start", competition_id))

    async def pause(self, competition_id: int) -> None:
        self.asked.append(("pause", competition_id))

    async def resume(self, competition_id: int) -> None:
        self.asked.append(("resume", competition_id))

    async def rule(
        self, competition_id: int, action: Action, subject: str, why: str, annul: bool | None = None
    ) -> list[str]:
        """As the real one does it for a tournament that is not being played."""
        summary = await self.summary(competition_id)
        ruling = withdrawal(summary, subject, annul) if action is Action.WITHDRAW else Ruling(action, subject)
        entries = entries_of(summary, [ruling], why, NOW)
        self.stores[competition_id].note(*entries)
        return [f"noted: {entry}" for entry in entries]

    async def pair(self, competition_id: int, request: PairingRequest, why: str) -> list[str]:
        """As the real one does it for a tournament that is not being played."""
        summary = await self.summary(competition_id)
        entries = entries_of(summary, pairing_rulings(summary, request), why, NOW)
        self.stores[competition_id].note(*entries)
        return [f"noted: {entry}" for entry in entries]


class PlayedService:
    """A service that starts nothing."""

    def __init__(self, data: Path) -> None:
        self.contests = Contests()
        self.database = database_of(data)
        self.live = Hub(lambda: NOW)
        self.slots = Slots(2)
        self.tournament_slots = 2
        self.failures = Failures(lambda: NOW)
        self.contents = ContentStore(data / "submissions")
        self.logs: dict[int, CheckLog] = {}
        self.rechecked: list[int] = []
        self.changes = 0
        self.world: World

    async def submit(
        self, upload: Upload, team_id: int, account_id: int, origin: str
    ) -> tuple[Version, bool]:
        content = self.contents.put(upload.files)
        course = self.world.course
        settings = course.settings.load()
        size = sum(len(file.content) for file in upload.files)
        values = (team_id, content, len(upload.files), size, account_id, origin, NOW, settings)
        return course.versions.add(*values)

    async def check_log(self, version_id: int) -> CheckLog:
        if version_id in self.logs:
            return self.logs[version_id]
        checked = self.world.course.versions.checked(version_id)
        return CheckLog.of(checked.log if checked is not None else "")

    async def recheck(self, version_id: int) -> None:
        self.rechecked.append(version_id)
        self.world.course.versions.requeue(version_id)

    def settings_changed(self) -> None:
        self.changes += 1

    def status(self) -> Status:
        return Status(
            unchecked=3,
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
    """The world, and what was played in it."""

    world: World
    service: PlayedService
    practice: Competition
    cup: Competition
    versions: dict[str, Version]
    """By the names in games."""


def played_game(key: str, first: str, second: str, seed: int, illegal_after: int | None = None) -> GameRecord:
    """A random game between two bots, each of which says something on standard error."""
    record = random_game("manchester", seed, illegal_after=illegal_after)
    one, other = (
        replace(player, name=name) for player, name in zip(record.players, (first, second), strict=True)
    )
    old = [player.name for player in record.players]
    detail = record.result.detail.replace(old[0], first).replace(old[1], second)
    result: MatchResult = replace(record.result, detail=detail)
    if result.fault is not None and result.winner is not None:
        loser = (first, second)[1 - result.winner]
        result = replace(result, note=f"its last words on standard error: '{SECRET} {loser}'")
    return replace(
        record,
        key=key,
        players=(one, other),
        result=result,
        stderr=(f"{SECRET} {first}\n", f"{SECRET} {second}\n"),
    )


def qualify(world: World, version: Version) -> Version:
    """Have a version pass its check."""
    world.course.versions.begin_check(version.id)
    checked = Checked({**REPORT, "items": REPORT["items"][:1]}, "built\nchecked")
    return world.course.versions.decide(version.id, VersionState.QUALIFIED, checked, "d" * 64, 0, NOW)


def fail(world: World, version: Version) -> Version:
    """Have a version fail its check."""
    world.course.versions.begin_check(version.id)
    checked = Checked(REPORT, "built\nlost <i>everything</i>")
    return world.course.versions.decide(version.id, VersionState.FAILED, checked, None, 1, NOW)


@contextmanager
def open_played(
    data: Path, *, pairs: int = 3, cup_rounds: int = 1, cup_format: str = "round-robin"
) -> Iterator[Played]:
    """Two teams with a version each, on a practice ladder with a reference player and in a tournament."""
    database = database_of(data)
    service = PlayedService(data)
    with ExitStack() as closing:
        world = closing.enter_context(open_world(database.course(), data, service))
        service.world = world
        course = world.course
        versions = {}
        for number, (team, role) in enumerate(zip(world.teams, ("student", "other"), strict=True), 1):
            files = (SubmittedFile("bot.py", f"print({number})\n".encode()),)
            account = world.accounts[role]
            content = service.contents.put(files)
            version, _ = course.versions.add(team.id, content, 1, 9, account.id, "page", NOW)
            versions[f"{team.name} v1"] = qualify(world, version)
        practice = course.competitions.add("practice", "Practice", CompetitionKind.PRACTICE, {}, None, NOW)
        cup = course.competitions.add("cup", "Cup of Team 1", CompetitionKind.TOURNAMENT, {}, None, NOW)
        for one in (practice, cup):
            course.competitions.set_state(one.id, CompetitionState.RUNNING, "", NOW)
            store = closing.enter_context(Store(database.competition(one.slug)))
            service.contests.stores[one.id] = store
            for name, version in versions.items():
                course.competitions.enter(one.id, name, version.id, None)
            course.competitions.enter(one.id, REFERENCE, None, REFERENCE)
        names = [*versions, REFERENCE]
        service.contests.practice[practice.id] = names
        _play(service.contests.stores[practice.id], names, pairs)
        _play_cup(service.contests.stores[cup.id], names, cup_rounds, cup_format)
        yield Played(world, service, practice, cup, versions)


def _play(store: Store, names: list[str], pairs: int) -> None:
    """Practice games; in each third one the bot on turn after 6 moves sends something illegal."""
    for number in range(1, 2 * pairs + 1):
        first, second = names[number % 3], names[(number + 1) % 3]
        record = played_game(f"p{number:07d}-1", first, second, number, 6 if number % 3 == 0 else None)
        store.add(record, 1, f"p{number:07d}")


def _play_cup(store: Store, names: list[str], rounds: int, kind: str) -> None:
    plan = Plan({"kind": kind}, rounds=rounds, width=1)
    summary = TournamentResults("Cup of Team 1", "manchester", "1 s per move", names, "points", plan)
    store.claim(summary.name, summary.config(), {"bots": dict.fromkeys(names, "d")})
    pairings = plan.schedule(names, [Entrant() for _ in names]).pairings(History())
    for number, pairing in enumerate(pairings):
        players = names[pairing.first], names[pairing.second]
        store.add(played_game(pairing.key, *players, number + 50, 4 if number % 2 else None), pairing.round)


def visitors_see(played: Played, what: str, *, students_see_names: bool = True) -> None:
    """Change who sees which names."""
    played.world.course.settings.change(standings_for=what, students_see_names=students_see_names)
