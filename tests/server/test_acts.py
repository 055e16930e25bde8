"""Actions on tournaments and versions, and their entries in the journal: both are stored, or neither."""

import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from typing import cast

import pytest
import trio

from tests.server.harness import LIMIT_S, Harness, open_harness, running, spec, until
from tests.support.courses import FAST_PASSWORDS, NOW, add_account
from tests.support.statement_faults import CourseContents, InjectedError, fault_before
from tests.support.store_locations import to_argument
from tournaments.course.course import Course
from tournaments.course.marked_students import roster_at_end
from tournaments.course.model import Account, Competition, CompetitionState, Event, Role
from tournaments.database.base import Location
from tournaments.database.location import Database
from tournaments.reporting.ruling_requests import PairingRequest
from tournaments.results.journal import Action
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.service import Service

GAME = "r001-1v2"
BOTS = ["first_legal", "greedy", "random:1"]
PAUSED, FINISHED, RUNNING = CompetitionState.PAUSED, CompetitionState.FINISHED, CompetitionState.RUNNING
Do = Callable[[TournamentManager, int, Account], Awaitable[object]]
CONTROL: dict[str, tuple[CompetitionState, Do]] = {
    "create": (PAUSED, lambda tournaments, _id, by: tournaments.create_tournament(spec(references=BOTS), by)),
    "start": (PAUSED, lambda tournaments, number, by: tournaments.start(number, by)),
    "resume": (PAUSED, lambda tournaments, number, by: tournaments.resume(number, by)),
    "pause": (RUNNING, lambda tournaments, number, by: tournaments.pause(number, by)),
}
"""Action -> state before it, and its call."""


async def cup(harness: Harness, tournaments: TournamentManager, **values: object) -> Competition:
    """Create a tournament whose games wait."""
    harness.engine.allow(lambda _job: False)
    return await tournaments.create_tournament(spec(references=BOTS, **values), None)


async def repeat_until_done(do: Callable[[], Awaitable[object]], check: Callable[[], object]) -> int:
    """Fail before each statement of an action, until it is done; return the number of statements."""
    for number in count(1):
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
                one = await cup(harness, tournaments)
                await tournaments.start(one.id)
                if state is not RUNNING:
                    await tournaments.pause(one.id)
                before = CourseContents.read(place)
                statements = await repeat_until_done(
                    lambda: do(tournaments, one.id, by), lambda: before.assert_both_or_neither(place)
                )
            assert statements >= 3  # the change, its entry and their commit
            (entry,) = harness.course.journal.entries(1)
            assert (entry.action, entry.account_id) == (f"tournament.{action}", by.id)


@pytest.mark.slow
async def test_rejudging(database: Database, tmp_path: Path) -> None:
    async with open_harness(tmp_path / "data", database=database) as harness, running(harness) as tournaments:
        by = add_account(harness.course, Role.ADMIN, "admin")
        one = await cup(harness, tournaments)
        with fault_before(1), pytest.raises(InjectedError):
            await tournaments.rejudge(one.id, by)
        assert tournaments.rejudging(one.id) is None
        await tournaments.rejudge(one.id, by)
        (entry,) = harness.course.journal.entries(1)
        assert (entry.action, entry.account_id) == ("tournament.rejudge", by.id)


RULINGS: dict[str, Do] = {
    "void": lambda tournaments, number, by: tournaments.rule(number, Action.VOID, GAME, "why", None, by),
    "withdraw": lambda tournaments, number, by: tournaments.rule(
        number, Action.WITHDRAW, "greedy", "why", True, by
    ),
    "pair": lambda tournaments, number, by: tournaments.pair(
        number, PairingRequest([("greedy", "random:1")], ["first_legal"], round_number=2), "why", by
    ),
}


RECORDED_WITHIN_S = 20.0
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
            paired = {"format": {"kind": "swiss", "pairs": 1}, "rounds": 2} if ruling == "pair" else {}
            one = await cup(harness, tournaments, **paired)
            if ruling == "void":
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
    assert [entry.action for entry in entries] == [f"tournament.{entry.action}" for entry in rulings]
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
        found = roster_at_end(course.accounts.all(), course.journal.of_subject(one.slug))
        assert found == students
        assert roster_at_end(students, []) == students


@pytest.mark.slow
async def test_a_new_check(database: Database, tmp_path: Path) -> None:
    """Without the other tasks of a service, which write at their own times."""
    place = database.course()
    async with open_harness(tmp_path / "data", database=database) as harness:
        by = add_account(harness.course, Role.LECTURER, "lecturer")
        version = harness.version("Team 1")
        woken: list[object] = []
        bots = SimpleNamespace(forget=woken.append)
        service = SimpleNamespace(
            _context=SimpleNamespace(course=harness.course, now=lambda: NOW, bots=bots),
            _qualifying=SimpleNamespace(queued=woken.append),
            _practice=SimpleNamespace(wake=lambda: woken.append("practice")),
        )
        before = CourseContents.read(place)
        await repeat_until_done(
            lambda: Service.recheck(cast("Service", service), version.id, by),
            lambda: before.assert_both_or_neither(place),
        )
        assert woken == [version.content, version.id, "practice"]
        (entry,) = harness.course.journal.entries(1)
        assert (entry.action, entry.account_id, entry.detail) == ("version.recheck", by.id, {"number": 1})


KILLED = """
import os, signal, sys
from tests.support.courses import FAST_PASSWORDS, NOW
from tests.support.statement_faults import fault_before
from tests.support.store_locations import from_argument
from tournaments.course.course import Course
from tournaments.course.model import LinkPurpose, Role

with Course(from_argument(sys.argv[1]), FAST_PASSWORDS) as course:
    with fault_before(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)):
        with course.act(NOW, None, "account.add", "student-1"):
            team = course.teams.add("Team 1", NOW)
            student = course.accounts.add("student-1", "Student 1", Role.STUDENT, team.id, NOW)
            course.links.make(student.id, LinkPurpose.INVITATION, NOW)
"""


@pytest.mark.kill
def test_an_action_of_a_process_that_is_killed(place: Location) -> None:
    Course(place, FAST_PASSWORDS).close()
    before = CourseContents.read(place)
    for number in count(1):
        status = run([sys.executable, "-c", KILLED, to_argument(place), str(number)]).returncode
        is_done = before.assert_both_or_neither(place)
        assert is_done is (status == 0)
        if is_done:
            break
        assert status == -9
    assert number > 5  # a team and its name, an account, a link, the entry, the commit
