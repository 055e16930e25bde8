"""Actions of a service in a process that is killed before each statement: ``DATABASE FOLDER [ACTION...]``.

Prints, for each action and each of its statements, the wait status of the process, and whether the action was
stored.  After each kill the service is started again.  Each process is forked from this one.  By default, all
actions are tried.
"""

import json
import pickle
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import networkx  # noqa: F401  # Swiss tournaments need it: it is not imported by each copy
import trio

from tests.server.harness import Harness, open_harness, running, until
from tests.server.test_acts import (
    CONTROL,
    DRAFT,
    FINISHED,
    ON_GAMES,
    ON_HIDDEN,
    PAUSED,
    RECORDED_WITHIN_S,
    RULINGS,
    RUNNING,
    Do,
    cup,
    recheck,
    until_recorded,
)
from tests.support.courses import add_account
from tests.support.statement_faults import CourseContents, fault_before, in_copy, kill_process
from tests.support.store_locations import from_argument
from tournaments.course.model import Account, BotChoice, Competition, CompetitionKind, CompetitionState, Role
from tournaments.database.location import Database
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.server.challenges.challenge_runner import Challenges
from tournaments.server.competitions.tournament_manager import TournamentManager

CREATED = CompetitionState.CREATED


@dataclass
class Scene:
    """A service that plays no game, and the objects of the actions."""

    harness: Harness
    tournaments: TournamentManager
    challenges: Challenges
    by: Account
    """The lecturer."""

    @property
    def cup(self) -> int:
        return newest(self.harness).id

    async def ask(self) -> None:
        (version,) = self.harness.course.versions.all(2)
        (student,) = self.harness.course.accounts.of_team(version.team_id)
        own, opponent = BotChoice(version_id=version.id), BotChoice(reference="random:1")
        await self.challenges.ask(version.team_id, student, own, opponent, 1, "page")

    async def cancel_challenge(self) -> None:
        (challenge,) = self.harness.course.challenges.unfinished()
        await self.challenges.cancel(challenge.id, self.by)


def newest(harness: Harness) -> Competition:
    """Return the newest tournament."""
    tournaments = [one for one in harness.course.competitions.all() if one.kind is CompetitionKind.TOURNAMENT]
    return max(tournaments, key=lambda one: one.id)


@dataclass(frozen=True)
class Case:
    """An action, of the newest tournament if it has a state."""

    do: Callable[[Scene], Awaitable[object]]
    state: CompetitionState | None = None
    """State of the tournament before the action."""
    is_ruling: bool = False
    """True for an action that is stored with the tournament's games before it is in the course's journal."""
    is_entry: bool = False
    """True for an action that stores nothing but its entry in the course's journal."""
    is_on_hidden: bool = False
    """True if the tournament is hidden before the action."""


def on_cup(do: Do, state: CompetitionState, **values: bool) -> Case:
    return Case(lambda scene: do(scene.tournaments, scene.cup, scene.by), state, **values)


CASES = {
    **{name: on_cup(do, state, is_on_hidden=name in ON_HIDDEN) for name, (state, do) in CONTROL.items()},
    **{
        name: on_cup(do, FINISHED if name in ON_GAMES else CREATED, is_ruling=True)
        for name, do in RULINGS.items()
    },
    "rejudge": on_cup(TournamentManager.rejudge, FINISHED, is_entry=True),
    "ask": Case(Scene.ask),
    "cancel challenge": Case(Scene.cancel_challenge),
    "recheck": Case(
        lambda scene: recheck(scene.harness, scene.harness.course.versions.all(1)[0].id, scene.by, [])
    ),
}


async def make_people(database: Database, data: Path) -> None:
    """Add a lecturer, and a team with a version."""
    async with open_harness(data, database=database) as harness:
        add_account(harness.course, Role.LECTURER, "lecturer")
        harness.version("Team 1")
        harness.course.settings.change(references=["random:1"])


async def make_cup(case: Case, database: Database, data: Path) -> None:
    """Add the tournament of an action, and stop those of earlier actions."""
    state = case.state
    assert state is not None
    async with open_harness(data, database=database) as harness:
        competitions = harness.course.competitions
        for one in competitions.all():
            if one.kind is CompetitionKind.TOURNAMENT and one.state is RUNNING:
                competitions.set_state(one.id, CompetitionState.CANCELLED, "", harness.context.now())
        async with running(harness, 0.0) as tournaments:
            swiss = {"format": {"kind": "swiss", "pairs": 1}, "rounds": 2} if state is CREATED else {}
            one = await cup(harness, tournaments, draft=state is DRAFT, **swiss)
            if state in (CREATED, DRAFT):
                return
            if state is FINISHED:
                harness.engine.allow()
            await tournaments.start(one.id)
            if state is PAUSED:
                await tournaments.pause(one.id)
            await harness.until_state(one.id, state)
            if case.is_on_hidden:
                await tournaments.hide(one.id, True)


async def act(case: Case, database: Database, data: Path, number: int) -> None:
    """Do the action; this process is killed before a statement, unless the action has fewer."""
    async with open_harness(data, database=database) as harness:
        harness.engine.allow(lambda _job: False)
        challenges = Challenges(harness.context, harness.engine, data)
        by = harness.course.accounts.by_login("lecturer")
        assert by is not None
        async with running(harness, 0.0) as tournaments:
            (data / "before").write_bytes(pickle.dumps(CourseContents.read(database.course())))
            with fault_before(number, kill_process):
                await case.do(Scene(harness, tournaments, challenges, by))


def is_done(case: Case, database: Database, data: Path) -> bool:
    """Return whether the action is stored."""
    before: CourseContents = pickle.loads((data / "before").read_bytes())
    if case.is_ruling:
        return (data / "ruled").exists()
    if case.is_entry:
        return CourseContents.read(database.course()).entries != before.entries
    return before.assert_both_or_neither(database.course())


async def recover(database: Database, data: Path) -> None:
    """Start the service again: tournaments have results and go on, and rulings have their entries."""
    async with open_harness(data, database=database) as harness:
        harness.engine.allow(lambda _job: False)
        async with running(harness, 0.0):
            cup = newest(harness)
            if cup.state is CompetitionState.DELETED:
                return
            with Store(database.competition(cup.slug)) as store:
                await until(lambda: store.identity() is not None, RECORDED_WITHIN_S)
                results = TournamentResults.load(store)
            await until_recorded(harness, cup, len(results.journal))
            if results.journal:
                (data / "ruled").touch()
            if cup.state is FINISHED and results.schedule.due(results.history):
                await until(lambda: newest(harness).state is RUNNING, RECORDED_WITHIN_S)


def attempts(case: Case, database: Database, data: Path) -> list[tuple[int, bool]]:
    """Return the wait status, and whether the action was stored, for a kill before each statement."""
    found = []
    for number in count(1):
        if case.state is not None and (number == 1 or case.is_ruling):
            assert in_copy(trio.run, make_cup, case, database, data) == 0
        status = in_copy(trio.run, act, case, database, data, number)
        if case.state is not None:
            (data / "ruled").unlink(missing_ok=True)
            assert in_copy(trio.run, recover, database, data) == 0
        found.append((status, is_done(case, database, data)))
        if status != signal.SIGKILL:
            break
    return found


def main() -> None:
    """Print the results of all kills as JSON; see the module's docstring."""
    database, data, names = from_argument(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    assert in_copy(trio.run, make_people, database, data) == 0
    found = {}
    for name in names or CASES:
        case, own, folder = CASES[name], database, data
        # Each start reads all tournaments, so that those of other actions would take most of the time.
        if case.state is not None and isinstance(database.address, Path):
            folder = data.with_name(name)
            shutil.copytree(data, folder)
            own = Database(folder)
        found[name] = attempts(case, own, folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
