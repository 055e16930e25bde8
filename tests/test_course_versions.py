"""Versions: numbered without gaps, checked, and which of them plays."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from tests.courses import CHEAP, NOW, a_student, a_version, after, decided
from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, CourseError, Team, Version, VersionState
from tournaments.course.settings import Settings
from tournaments.database.base import Location
from tournaments.database.sqlite import SQLiteFile

QUALIFIED, FAILED, STUCK = VersionState.QUALIFIED, VersionState.FAILED, VersionState.STUCK


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


@dataclass
class Some:
    """A team and one of its students."""

    team: Team
    student: Account


@pytest.fixture
def some(course: Course) -> Some:
    team = course.teams.add("Team 1", NOW)
    return Some(team, a_student(course, team))


def test_a_version_comes_back_whole(course: Course, some: Some) -> None:
    version, is_new = course.versions.add(some.team.id, "c1", 3, 2**40, some.student.id, "api", NOW)
    assert is_new
    assert version == Version(
        id=version.id,
        team_id=some.team.id,
        number=1,
        content="c1",
        files=3,
        size=2**40,
        submitted_at=NOW,
        submitted_by=some.student.id,
        origin="api",
        state=VersionState.QUEUED,
        attempts=0,
        decided_at=None,
        digest=None,
        failures=0,
        withdrawn=False,
    )
    assert course.versions.get(version.id) == version
    assert course.versions.unfinished() == [version]
    assert course.versions.checked(version.id) is None


def test_the_same_again_is_the_same_version(course: Course, some: Some) -> None:
    first = a_version(course, some.team, some.student, "c1")
    again = course.versions.add(some.team.id, "c1", 3, 1000, some.student.id, "api", after(hours=1))
    assert again == (first, False)
    second = a_version(course, some.team, some.student, "c2")
    third = a_version(course, some.team, some.student, "c1")  # back to what it was, which is a decision
    assert [version.number for version in course.versions.of_team(some.team.id)] == [3, 2, 1]
    assert (second.number, third.number) == (2, 3)


def test_each_team_counts_for_itself(course: Course, some: Some) -> None:
    other = course.teams.add("Team 2", NOW)
    numbers = [
        a_version(course, team, some.student, f"c{n}").number for n in range(3) for team in (some.team, other)
    ]
    assert numbers == [1, 1, 2, 2, 3, 3]
    versions = course.versions.all(10)
    assert versions == sorted(versions, key=lambda version: -version.id)
    assert course.versions.all(2) == versions[:2]
    assert course.versions.all(2, before=versions[1].id) == versions[2:4]
    with pytest.raises(CourseError, match="there is no team 99"):
        course.versions.add(99, "c", 1, 1, some.student.id, "page", NOW)


def test_the_rules_are_asked_where_nobody_else_writes(course: Course, some: Some) -> None:
    rules = Settings(uploads_per_day=2, uploads_total=3)

    def upload(content: str, at: datetime) -> int:
        return course.versions.add(some.team.id, content, 1, 1, some.student.id, "page", at, rules)[0].number

    assert upload("c1", NOW) == 1
    assert upload("c2", after(hours=1)) == 2
    with pytest.raises(CourseError, match="2 uploads a day"):
        upload("c3", after(hours=2))
    assert upload("c2", after(hours=2)) == 2  # what was acknowledged once is acknowledged again
    assert upload("c3", after(hours=12)) == 3
    with pytest.raises(CourseError, match="3 uploads in all"):
        upload("c4", after(days=9))
    assert course.versions.counts(some.team.id, NOW) == 3
    assert course.versions.counts(some.team.id, after(hours=1)) == 2
    assert course.versions.counts(some.team.id, after(hours=13)) == 0


# Checks


def test_a_check(course: Course, some: Some) -> None:
    version = a_version(course, some.team, some.student, "c1")
    checking = course.versions.begin_check(version.id)
    assert checking == replace(version, state=VersionState.CHECKING, attempts=1)
    assert course.versions.unfinished() == [checking]
    result = Checked({"items": [{"says": "a\0b \ud800 ü"}]}, "log \0 \ud800 ü\n")
    done = course.versions.decide(version.id, FAILED, result, None, 2, after(seconds=5))
    assert done == replace(checking, state=FAILED, decided_at=after(seconds=5), failures=2)
    assert course.versions.get(version.id) == done
    assert course.versions.checked(version.id) == Checked(result.report, "log ␀ ? ü\n")
    assert course.versions.unfinished() == []


def test_a_check_that_was_broken_off_begins_again(course: Course, some: Some) -> None:
    versions = [a_version(course, some.team, some.student, f"c{n}") for n in range(3)]
    course.versions.begin_check(versions[0].id)
    decided(course, versions[1], STUCK)
    assert [version.id for version in course.versions.unfinished()] == [versions[0].id, versions[2].id]
    assert course.versions.begin_check(versions[0].id).attempts == 2
    back = course.versions.requeue(versions[0].id)
    assert (back.state, back.attempts) == (VersionState.QUEUED, 2)
    assert course.versions.begin_check(versions[0].id).attempts == 3


@pytest.mark.parametrize("state", [QUALIFIED, FAILED, STUCK])
def test_a_decision_stands_until_it_is_asked_for_again(
    course: Course, some: Some, state: VersionState
) -> None:
    version = a_version(course, some.team, some.student, "c1")
    with pytest.raises(CourseError, match="queued, and not being checked"):
        course.versions.decide(version.id, FAILED, Checked(None, ""), None, 0, NOW)
    done = decided(course, version, state)
    with pytest.raises(CourseError, match=f"is {state} already"):
        course.versions.begin_check(version.id)
    with pytest.raises(CourseError, match=f"is {state}, and not being checked"):
        course.versions.decide(version.id, FAILED, Checked(None, "late"), None, 0, NOW)
    assert course.versions.get(version.id) == done
    assert course.versions.requeue(version.id) == version
    assert course.versions.checked(version.id) is None
    assert course.versions.begin_check(version.id).attempts == 1


def test_what_is_no_decision(course: Course, some: Some) -> None:
    version = a_version(course, some.team, some.student, "c1")
    course.versions.begin_check(version.id)
    nothing = Checked(None, "")
    for state, digest in ((QUALIFIED, None), (FAILED, "d"), (STUCK, "d"), (VersionState.QUEUED, None)):
        with pytest.raises(ValueError, match=state):
            course.versions.decide(version.id, state, nothing, digest, 0, NOW)
    for number in (version.id + 1, 10**20):
        with pytest.raises(CourseError, match="there is no version"):
            course.versions.decide(number, FAILED, nothing, None, 0, NOW)


# Which plays


def test_what_fails_never_replaces_what_qualified(course: Course, some: Some) -> None:
    first, second, third = (
        a_version(course, some.team, some.student, f"c{n}", after(hours=n)) for n in range(3)
    )
    assert course.versions.current() == {}
    first = decided(course, first, QUALIFIED)
    decided(course, second, FAILED)
    course.versions.begin_check(third.id)
    assert course.versions.current() == {some.team.id: first}
    third = course.versions.decide(third.id, QUALIFIED, Checked(None, ""), "d", 0, after(days=1))
    assert course.versions.current() == {some.team.id: third}
    assert course.versions.current(after(hours=2)) == {some.team.id: third}
    assert course.versions.current(after(hours=2, microseconds=-1)) == {some.team.id: first}
    assert course.versions.current(after(hours=-1)) == {}
    withdrawn = course.versions.withdraw(third.id, True)
    assert withdrawn == replace(third, withdrawn=True)
    assert course.versions.current() == {some.team.id: first}
    assert course.versions.withdraw(third.id, False) == third
    assert course.versions.current() == {some.team.id: third}


class VersionsAgainstAModel(RuleBasedStateMachine):
    """Whatever happens, in whatever order: numbers have no gaps, and ``current`` is what its words say."""

    versions = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(prefix="kalarena-")
        self.course = Course(SQLiteFile(Path(self.folder.name) / "course.db"), CHEAP)
        self.teams = [self.course.teams.add(f"Team {number}", NOW) for number in (1, 2, 3)]
        self.student = a_student(self.course, self.teams[0])
        self.known: dict[int, Version] = {}
        self.now = NOW

    def teardown(self) -> None:
        self.course.close()
        self.folder.cleanup()

    @rule(target=versions, team=st.integers(0, 2), content=st.sampled_from("abc"), seconds=st.integers(0, 2))
    def submit(self, team: int, content: str, seconds: int) -> int:
        self.now += timedelta(seconds=seconds)
        arguments = (self.teams[team].id, content, 1, 1, self.student.id, "page", self.now)
        version, is_new = self.course.versions.add(*arguments)
        own = [known for known in self.known.values() if known.team_id == version.team_id]
        newest = max(own, key=lambda known: known.number, default=None)
        if newest is not None and newest.content == content:
            assert (version, is_new) == (newest, False)
        else:
            assert is_new
            assert version.number == len(own) + 1
            assert version.submitted_at == self.now
        self.known[version.id] = version
        return version.id

    @rule(version=versions, state=st.sampled_from([QUALIFIED, FAILED, STUCK]))
    def check(self, version: int, state: VersionState) -> None:
        if self.known[version].decided_at is None:
            self.known[version] = decided(self.course, self.known[version], state, self.now)
            assert self.known[version].state is state

    @rule(version=versions)
    def begin_check(self, version: int) -> None:
        if self.known[version].decided_at is None:
            self.known[version] = self.course.versions.begin_check(version)

    @rule(version=versions)
    def requeue(self, version: int) -> None:
        self.known[version] = self.course.versions.requeue(version)

    @rule(version=versions, withdrawn=st.booleans())
    def withdraw(self, version: int, withdrawn: bool) -> None:
        self.known[version] = self.course.versions.withdraw(version, withdrawn)

    @invariant()
    def all_are_there(self) -> None:
        assert self.course.versions.all(100) == sorted(self.known.values(), key=lambda one: -one.id)
        undecided = (VersionState.QUEUED, VersionState.CHECKING)
        waiting = sorted(number for number, known in self.known.items() if known.state in undecided)
        assert [one.id for one in self.course.versions.unfinished()] == waiting

    @invariant()
    def the_right_ones_play(self) -> None:
        for at in (None, self.now - timedelta(seconds=1), NOW):
            playing = {
                known.team_id: known
                for known in sorted(self.known.values(), key=lambda one: one.number)
                if known.state is QUALIFIED
                and not known.withdrawn
                and (at is None or known.submitted_at <= at)
            }
            assert self.course.versions.current(at) == playing


VersionsAgainstAModel.TestCase.settings = hypothesis_settings(max_examples=6, stateful_step_count=20)
TestVersionsAgainstAModel = VersionsAgainstAModel.TestCase


def test_the_newest_of_each_team_whatever_became_of_it(course: Course, some: Some) -> None:
    assert course.versions.newest() == {}
    other = course.teams.add("Team 2", NOW)
    student = a_student(course, other)
    a_version(course, some.team, some.student, "c1")
    theirs = a_version(course, other, student, "c2")
    mine = decided(course, a_version(course, some.team, some.student, "c3"), FAILED)
    assert course.versions.newest() == {some.team.id: mine, other.id: theirs}
