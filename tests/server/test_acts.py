"""Actions on tournaments and versions, and their entries in the journal: both are stored, or neither."""

import functools
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from signal import SIGKILL
from subprocess import run
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from tests.server.harness import LIMIT_S, Harness, open_harness, running, spec, until
from tests.support.courses import NOW, add_account
from tests.support.statement_faults import CourseContents, InjectedError, fault_before
from tests.support.store_locations import to_argument
from tournaments.course.marked_students import roster_at_end
from tournaments.course.model import Account, BotChoice, Competition, CompetitionState, Event, Role
from tournaments.database.location import Database
from tournaments.reporting.ruling_requests import PairingRequest
from tournaments.results.journal import Action
from tournaments.server.challenges.challenge_runner import Challenges
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.service import Service

GAME = "r001-1v2"
BOTS = ["first_legal", "greedy", "random:1"]
PAUSED, FINISHED, RUNNING = CompetitionState.PAUSED, CompetitionState.FINISHED, CompetitionState.RUNNING
DRAFT = CompetitionState.DRAFT
Do = Callable[[TournamentManager, int, Account], Awaitable[object]]
CONTROL: dict[str, tuple[CompetitionState, Do]] = {
    "create": (PAUSED, lambda tournaments, _id, by: tournaments.create_tournament(spec(references=BOTS), by)),
    "start": (PAUSED, lambda tournaments, number, by: tournaments.start(number, by)),
    "resume": (PAUSED, lambda tournaments, number, by: tournaments.resume(number, by)),
    "pause": (RUNNING, lambda tournaments, number, by: tournaments.pause(number, by)),
    "cancel": (PAUSED, lambda tournaments, number, by: tournaments.cancel(number, by)),
    "delete": (PAUSED, lambda tournaments, number, by: tournaments.delete(number, by)),
    "hide": (PAUSED, lambda tournaments, number, by: tournaments.hide(number, True, by)),
    "show": (PAUSED, lambda tournaments, number, by: tournaments.hide(number, False, by)),
    "publish": (DRAFT, lambda tournaments, number, by: tournaments.publish(number, by)),
}
"""Action -> state before it, and its call."""
ON_HIDDEN = {"show"}
"""Actions on a hidden tournament."""


async def cup(
    harness: Harness, tournaments: TournamentManager, *, draft: bool = False, **values: object
) -> Competition:
    """Create a tournament whose games wait."""
    harness.engine.allow(lambda _job: False)
    return await tournaments.create_tournament(spec(references=BOTS, **values), None, draft=draft)


async def repeat_until_done(
    do: Callable[[], Awaitable[object]],
    check: Callable[[], object],
    is_ready: Callable[[], object] = lambda: True,
) -> int:
    """Fail before each statement of an action, until it is done; return the number of statements.

    Each try waits until ``is_ready``: statements of other tasks would be counted, too.
    """
    for number in count(1):
        await until(is_ready)
        with fault_before(number) as fault:
            try:
                await do()
            except InjectedError:
                assert fault.happened
        check()
        if not fault.happened:
            return number - 1
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("action", CONTROL)
async def test_control_of_a_tournament(action: str, database: Database, tmp_path: Path) -> None:
    state, do = CONTROL[action]
    place = database.course()
    with trio.fail_after(LIMIT_S):
        async with open_harness(tmp_path / "data", database=database) as harness:
            by = add_account(harness.course, Role.LECTURER, "lecturer")
            async with running(harness, 0.0) as tournaments:
                one = await cup(harness, tournaments, draft=state is DRAFT)
                if state is not DRAFT:
                    await tournaments.start(one.id)
                if state is PAUSED:
                    await tournaments.pause(one.id)
                if action in ON_HIDDEN:
                    await tournaments.hide(one.id, True)
                before = CourseContents.read(place)
                statements = await repeat_until_done(
                    lambda: do(tournaments, one.id, by),
                    lambda: before.assert_both_or_neither(place),
                    # A tournament that is played begins anew after a failure, which changes its store.
                    lambda: state is not RUNNING or harness.engine.waiting,
                )
            assert statements >= 3  # the change, its entry and their commit
            (entry,) = harness.course.journal.entries(1)
            assert (entry.action, entry.account_id) == (f"tournament.{action}", by.id)


@pytest.mark.slow
async def test_rejudging(database: Database, tmp_path: Path) -> None:
    async with open_harness(tmp_path / "data", database=database) as harness, running(harness) as tournaments:
        by = add_account(harness.course, Role.ADMIN, "admin")
        one = await cup(harness, tournaments)
        await tournaments.start(one.id)
        await until(lambda: harness.engine.waiting)  # otherwise the start of the tournament would fail
        with fault_before(1), pytest.raises(InjectedError):
            await tournaments.rejudge(one.id, by)
        assert tournaments.rejudgings.get(one.id) is None
        await tournaments.rejudge(one.id, by)
        (entry,) = harness.course.journal.entries(1)
        assert (entry.action, entry.account_id) == ("tournament.rejudge", by.id)


@pytest.mark.slow
async def test_challenges(database: Database, tmp_path: Path) -> None:
    place = database.course()
    async with open_harness(tmp_path / "data", database=database) as harness:
        version = harness.version("Team 1")
        (by,) = harness.course.accounts.of_team(version.team_id)
        harness.course.settings.change(references=["random:1"])
        challenges = Challenges(harness.context, harness.context.engine, harness.context.data)
        own, opponent = BotChoice(version_id=version.id), BotChoice(reference="random:1")

        async def cancel() -> None:
            if unfinished := harness.course.challenges.unfinished():
                await challenges.cancel(unfinished[0].id, by)

        actions: dict[str, Callable[[], Awaitable[object]]] = {
            "ask": lambda: challenges.ask(version.team_id, by, own, opponent, 1, "page"),
            "cancel": cancel,
        }
        try:
            for action, do in actions.items():
                before = CourseContents.read(place)
                statements = await repeat_until_done(
                    do, functools.partial(before.assert_both_or_neither, place)
                )
                assert statements >= 3  # the change, its entry and their commit
                (entry,) = harness.course.journal.entries(1)
                assert (entry.action, entry.account_id) == (f"challenge.{action}", by.id)
        finally:
            challenges.close()


ON_GAMES = {"void", "replay"}
RULINGS: dict[str, Do] = {
    "void": lambda tournaments, number, by: tournaments.rule(number, Action.VOID, GAME, "why", None, by),
    "replay": lambda tournaments, number, by: tournaments.rule(number, Action.REPLAY, GAME, "why", None, by),
    "withdraw": lambda tournaments, number, by: tournaments.rule(
        number, Action.WITHDRAW, "greedy", "why", True, by
    ),
    "pair": lambda tournaments, number, by: tournaments.pair(
        number, PairingRequest([("greedy", "random:1")], ["first_legal"], round_number=2), "why", by
    ),
    "add": lambda tournaments, number, by: tournaments.add_bot(
        number, BotChoice(reference="random:2"), "why", None, by
    ),
}


RECORDED_WITHIN_S = 240.0
"""Bound for the start of tournaments, which takes milliseconds."""


def recorded(harness: Harness, competition: Competition) -> list[Event]:
    """Return the entries of the course's journal on a tournament's rulings."""
    return [
        event for event in harness.course.journal.of_subject(competition.slug) if "ruling" in event.detail
    ]


async def until_recorded(harness: Harness, competition: Competition, number: int) -> None:
    await until(lambda: len(recorded(harness, competition)) == number, RECORDED_WITHIN_S)


@pytest.mark.slow
@pytest.mark.parametrize("ruling", RULINGS)
async def test_rulings_carry_their_account_in_both_journals(
    ruling: str, database: Database, tmp_path: Path
) -> None:
    """The rulings are in a database of their own: the next start adds what a failure left out."""
    async with open_harness(tmp_path / "data", database=database) as harness:
        by = add_account(harness.course, Role.LECTURER, "lecturer")
        async with running(harness, 0.0) as tournaments:
            swiss: dict[str, Any] = {"format": {"kind": "swiss", "pairs": 1}, "rounds": 2}
            one = await cup(harness, tournaments, **(swiss if ruling == "pair" else {}))
            if ruling in ON_GAMES:
                harness.engine.allow()
                await tournaments.start(one.id)
                await harness.until_state(one.id, FINISHED)
        for number in count(1):
            with fault_before(number) as fault:
                async with running(harness, 0.0) as tournaments:
                    try:
                        await RULINGS[ruling](tournaments, one.id, by)
                    except InjectedError:
                        assert fault.happened
            with harness.store(one.slug) as store:
                rulings = store.journal()
            async with running(harness):
                await until_recorded(harness, one, len(rulings))
            entries = recorded(harness, one)
            assert [entry.detail["ruling"] for entry in entries] == [entry.number for entry in rulings]
            assert {entry.by for entry in rulings} <= {"lecturer"}
            assert {entry.account_id for entry in entries} <= {by.id}
            if rulings:
                break
        competitors = harness.course.competitions.competitors(one.id)
    assert [entry.action for entry in entries] == [f"tournament.{entry.action}" for entry in rulings]
    joined = [entry.subject for entry in rulings if entry.action is Action.ADD]
    assert sorted(competitor.name for competitor in competitors) == sorted([*BOTS, *joined])
    assert number > 2  # faults before the ruling, at least


async def test_the_roster_of_the_end_stays(tmp_path: Path) -> None:
    """Marks go to those who were in the team when the tournament ended, whatever a later appeal changes."""
    async with open_harness(tmp_path / "data") as harness, running(harness) as tournaments:
        course = harness.course
        team, other = (course.teams.add(f"Team {number}", NOW) for number in (1, 2))
        students = [add_account(course, Role.STUDENT, f"student-{number}", team) for number in (1, 2, 3)]
        one = await cup(harness, tournaments)
        harness.engine.allow()
        await tournaments.start(one.id)
        await harness.until_state(one.id, FINISHED)
        course.accounts.move(students[0].id, other.id)
        course.accounts.set_disabled(students[1].id, True)
        add_account(course, Role.STUDENT, "student-4", team)
        await tournaments.rule(one.id, Action.REPLAY, GAME, "why")
        await harness.until_state(one.id, FINISHED)
        found = roster_at_end(course.accounts.all(), course.journal.of_subject(one.slug), {team.id: None})
        assert found == students
        assert roster_at_end(students, [], {}) == students


async def recheck(harness: Harness, version_id: int, by: Account, woken: list[object]) -> None:
    """Check a version again, without the other tasks of a service, which write at their own times.

    What the service reports to its tasks is added to ``woken``.
    """
    bots = SimpleNamespace(forget=woken.append)
    service = SimpleNamespace(
        _context=SimpleNamespace(course=harness.course, now=lambda: NOW, bots=bots),
        _qualifying=SimpleNamespace(queued=woken.append),
        _practice=SimpleNamespace(wake=lambda: woken.append("practice")),
    )
    await Service.recheck(cast("Service", service), version_id, by)


@pytest.mark.slow
async def test_a_new_check(database: Database, tmp_path: Path) -> None:
    place = database.course()
    async with open_harness(tmp_path / "data", database=database) as harness:
        by = add_account(harness.course, Role.LECTURER, "lecturer")
        version = harness.version("Team 1")
        woken: list[object] = []
        before = CourseContents.read(place)
        await repeat_until_done(
            lambda: recheck(harness, version.id, by, woken),
            lambda: before.assert_both_or_neither(place),
        )
        assert woken == [version.content, version.id, "practice"]
        (entry,) = harness.course.journal.entries(1)
        assert (entry.action, entry.account_id, entry.detail) == ("version.recheck", by.id, {"number": 1})


ALL_ACTIONS = (*CONTROL, *RULINGS, "ask", "cancel challenge", "recheck", "rejudge")
IN_TWO_STORES = ("create", "void", "add")
"""Actions that are stored in the course and in the tournament's own store, in either order."""


@pytest.mark.kill
@pytest.mark.long
def test_the_actions_of_a_service_that_is_killed(database: Database, tmp_path: Path) -> None:
    """It is killed before each statement that changes something and each commit, and is started again.

    An action in one transaction of PostgreSQL is undone as in tests/web/test_acts.py.
    """
    names = () if isinstance(database.address, Path) else IN_TWO_STORES
    words = [
        sys.executable,
        "-m",
        "tests.server.killed_actions",
        to_argument(database),
        str(tmp_path / "data"),
    ]
    done = run([*words, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[Any]]] = json.loads(done.stdout)
    assert found.keys() == set(names or ALL_ACTIONS)
    for action, attempts in found.items():
        *killed, last = attempts
        assert last == [0, True], action
        assert {status for status, _ in killed} == {SIGKILL}, action
        is_done = [done for _, done in killed]
        assert is_done == sorted(is_done), action
        # A tournament has a store of its own, with statements after those of the course, and rulings before.
        assert True not in is_done or action in {"create", *RULINGS}, action
        assert len(killed) >= (2 if action == "rejudge" else 3), action
