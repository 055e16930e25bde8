"""Versions: their numbers, their checks, and which of them play."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from tests.support.courses import FAST_PASSWORDS, NO_CHECK, NOW, add_student, add_version, after, decide
from tests.support.statement_faults import InjectedError, fault_before
from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, CheckedGame, CourseError, Team, Version, VersionState
from tournaments.course.settings import Settings
from tournaments.course.upload_limits import Storage
from tournaments.course.versions import VERSIONS_WITH_GAMES
from tournaments.database.sqlite import SQLiteFile

QUEUED, CHECKING, QUALIFIED, FAILED, STUCK = VersionState


@dataclass
class Submitter:
    """A team and one of its students."""

    course: Course
    team: Team
    student: Account

    def submit(self, content: str, at: datetime = NOW) -> Version:
        return add_version(self.course, self.team, self.student, content, at)


@pytest.fixture
def submitter(course: Course) -> Submitter:
    team = course.teams.add("Team 1", NOW)
    return Submitter(course, team, add_student(course, team))


def test_a_version_is_stored_as_a_whole(course: Course, submitter: Submitter) -> None:
    team, student = submitter.team.id, submitter.student.id
    version, is_new = course.versions.add(team, "c1", 3, 2**40, student, "api", NOW)
    assert is_new
    assert version == Version(
        id=version.id,
        team_id=team,
        number=1,
        content="c1",
        files=3,
        size=2**40,
        submitted_at=NOW,
        submitted_by=student,
        origin="api",
        state=QUEUED,
        attempts=0,
        decided_at=None,
        digest=None,
        failures=0,
        withdrawn=False,
    )
    assert course.versions.get(version.id) == version
    assert course.versions.unfinished() == [version]
    assert course.versions.checked(version.id) is None


def test_each_team_has_its_own_numbers(course: Course, submitter: Submitter) -> None:
    other = replace(submitter, team=course.teams.add("Team 2", NOW))
    numbers = [one.submit(f"c{n}").number for n in range(3) for one in (submitter, other)]
    assert numbers == [1, 1, 2, 2, 3, 3]
    versions = course.versions.all(10)
    assert versions == sorted(versions, key=lambda version: -version.id)
    assert course.versions.all(2) == versions[:2]
    assert course.versions.newest() == {submitter.team.id: versions[1], other.team.id: versions[0]}
    with pytest.raises(CourseError, match="there is no team 99"):
        course.versions.add(99, "c", 1, 1, submitter.student.id, "page", NOW)


def test_limits_of_uploads(course: Course, submitter: Submitter) -> None:
    rules = Settings(uploads_per_day=2, uploads_total=3)
    team, student = submitter.team.id, submitter.student.id

    def upload(content: str, at: datetime) -> int:
        return course.versions.add(team, content, 1, 1, student, "page", at, rules)[0].number

    assert upload("c1", NOW) == 1
    assert upload("c2", after(hours=1)) == 2
    with pytest.raises(CourseError, match="2 uploads a day"):
        upload("c3", after(hours=2))
    assert upload("c2", after(hours=2)) == 2  # an upload that was acknowledged is acknowledged again
    assert upload("c3", after(hours=12)) == 3
    with pytest.raises(CourseError, match="3 uploads in all"):
        upload("c4", after(days=9))
    assert [course.versions.counts(team, after(hours=hours)) for hours in (0, 1, 13)] == [3, 2, 0]


def test_limits_of_storage(course: Course, submitter: Submitter) -> None:
    """The unpacked size counts, once for the same files."""
    rules = Settings(team_storage_mb=3, course_storage_mb=4)
    other = add_student(course, course.teams.add("Another team", NOW))
    assert other.team_id is not None
    teams = {submitter.team.id: submitter.student.id, other.team_id: other.id}

    def upload(team: int, content: str, mebibytes: float) -> int:
        size = round(mebibytes * (1 << 20))
        return course.versions.add(team, content, 1, size, teams[team], "page", NOW, rules)[0].number

    assert upload(submitter.team.id, "c1", 2.5) == 1
    with pytest.raises(CourseError, match=r"2\.5 of 3 MiB, and this one has 1\.0 MiB unpacked: leave"):
        upload(submitter.team.id, "c2", 1)
    assert upload(submitter.team.id, "c3", 0.5) == 2
    assert upload(submitter.team.id, "c1", 2.5) == 3  # these files are stored already
    with pytest.raises(
        CourseError, match=r"All teams' uploads and the bots built from them take 3\.0 of 4 MiB"
    ):
        upload(other.team_id, "c4", 1.5)
    assert upload(other.team_id, "c5", 1) == 1
    assert course.versions.storage(other.team_id) == Storage(1 << 20, 4 << 20)


# Checks


def test_a_check(course: Course, submitter: Submitter) -> None:
    version = submitter.submit("c1")
    checking = course.versions.begin_check(version.id)
    assert checking == replace(version, state=CHECKING, attempts=1)
    assert course.versions.unfinished() == [checking]
    result = Checked({"items": [{"says": "a\0b \ud800 ü"}]}, "log \0 \ud800 ü\n")
    done = course.versions.decide(version.id, FAILED, result, None, 2, after(seconds=5))
    assert done == replace(checking, state=FAILED, decided_at=after(seconds=5), failures=2)
    assert course.versions.get(version.id) == done
    assert course.versions.checked(version.id) == Checked(result.report, "log ␀ ? ü\n")
    assert course.versions.unfinished() == []


def decide_with_games(course: Course, version: Version, *games: CheckedGame) -> None:
    course.versions.begin_check(version.id)
    course.versions.decide(version.id, FAILED, NO_CHECK, None, 1, NOW, games)


def test_the_games_of_the_latest_check_are_kept(course: Course, submitter: Submitter) -> None:
    version, other = submitter.submit("c1"), submitter.submit("c2")
    games = CheckedGame("swapped-south", 0, b"\0\xff"), CheckedGame("chains-north", 1, b"2")
    decide_with_games(course, version, *games)
    decide_with_games(course, other)
    assert course.versions.checked_games(version.id) == ["swapped-south", "chains-north"]
    for game in games:
        assert course.versions.checked_game(version.id, game.key) == game
        assert course.versions.checked_game(other.id, game.key) is None
    for key in ("", "chains", "\0", "\ud800"):
        assert course.versions.checked_game(version.id, key) is None
    course.versions.requeue(version.id)
    assert course.versions.checked_games(version.id) == []
    decide_with_games(course, version, CheckedGame("chains-north", 0, b"3"))
    assert course.versions.checked_games(version.id) == ["chains-north"]
    assert course.versions.checked_game(version.id, "chains-north") == CheckedGame("chains-north", 0, b"3")


def test_the_games_of_old_versions_are_deleted(course: Course, submitter: Submitter) -> None:
    other = replace(submitter, team=course.teams.add("Team 2", NOW)).submit("c")
    versions = [submitter.submit(f"c{number}") for number in range(VERSIONS_WITH_GAMES + 2)]
    game = CheckedGame("key", 0, b"1")

    def with_games() -> list[int]:
        return [version.id for version in versions if course.versions.checked_games(version.id)]

    for version in (other, *versions):
        decide_with_games(course, version, game)
    assert with_games() == [version.id for version in versions[2:]]
    course.versions.requeue(versions[0].id)
    decide_with_games(course, versions[0], game)  # requested just now: somebody wants to see it
    assert with_games() == [version.id for version in (versions[0], *versions[2:])]
    course.versions.requeue(versions[1].id)
    decide_with_games(course, versions[1], game)
    assert with_games() == [version.id for version in versions[1:]]
    assert course.versions.checked_games(other.id) == ["key"]


def test_a_verdict_and_its_games_are_stored_together_or_not_at_all(
    course: Course, submitter: Submitter
) -> None:
    """A process that is killed between any two statements leaves a version that is checked again."""
    version = submitter.submit("c1")
    course.versions.begin_check(version.id)
    games = CheckedGame("a", 0, b"1"), CheckedGame("b", 1, b"2")
    for number in count(1):
        with fault_before(number) as fault, suppress(InjectedError):
            course.versions.decide(version.id, FAILED, Checked({}, "log"), None, 1, NOW, games)
        if not fault.happened:
            break
        assert [one.id for one in course.versions.unfinished()] == [version.id]
        assert course.versions.checked(version.id) is None
        assert course.versions.checked_games(version.id) == []
    assert number > 5
    assert course.versions.unfinished() == []
    assert course.versions.checked(version.id) == Checked({}, "log")
    assert course.versions.checked_games(version.id) == ["a", "b"]


def test_an_interrupted_check_begins_again(course: Course, submitter: Submitter) -> None:
    first, second, third = (submitter.submit(f"c{n}") for n in range(3))
    course.versions.begin_check(first.id)
    decide(course, second, STUCK)
    assert [version.id for version in course.versions.unfinished()] == [first.id, third.id]
    assert course.versions.begin_check(first.id).attempts == 2
    back = course.versions.requeue(first.id)
    assert (back.state, back.attempts) == (QUEUED, 2)
    assert course.versions.begin_check(first.id).attempts == 3


@pytest.mark.parametrize("state", [QUALIFIED, FAILED, STUCK])
def test_a_decision_stands_until_another_check_is_requested(
    course: Course, submitter: Submitter, state: VersionState
) -> None:
    version = submitter.submit("c1")
    with pytest.raises(CourseError, match="queued, and not being checked"):
        course.versions.decide(version.id, FAILED, NO_CHECK, None, 0, NOW)
    done = decide(course, version, state)
    with pytest.raises(CourseError, match=f"is {state} already"):
        course.versions.begin_check(version.id)
    with pytest.raises(CourseError, match=f"is {state}, and not being checked"):
        course.versions.decide(version.id, FAILED, Checked(None, "late"), None, 0, NOW)
    assert course.versions.get(version.id) == done
    assert course.versions.requeue(version.id) == version
    assert course.versions.checked(version.id) is None
    assert course.versions.begin_check(version.id).attempts == 1


def test_invalid_decisions(course: Course, submitter: Submitter) -> None:
    version = course.versions.begin_check(submitter.submit("c1").id)
    for state, digest in ((QUALIFIED, None), (FAILED, "d"), (STUCK, "d"), (QUEUED, None)):
        with pytest.raises(ValueError, match=state):
            course.versions.decide(version.id, state, NO_CHECK, digest, 0, NOW)
    for number in (version.id + 1, 10**20):
        with pytest.raises(CourseError, match="there is no version"):
            course.versions.decide(number, FAILED, NO_CHECK, None, 0, NOW)


def test_versions_that_may_still_qualify_are_listed(course: Course, submitter: Submitter) -> None:
    states = [QUEUED, CHECKING, QUALIFIED, FAILED, STUCK]
    versions = [submitter.submit(f"c{number}", after(seconds=number)) for number in range(6)]
    course.versions.begin_check(versions[1].id)
    for version, state in zip(versions[2:5], states[2:], strict=True):
        decide(course, version, state)
    course.versions.withdraw(versions[5].id, withdrawn=True)
    assert [version.number for version in course.versions.without_result()] == [1, 2, 5]
    assert [version.number for version in course.versions.without_result(after(seconds=1))] == [1, 2]


# Any actions in any order


class VersionsAgainstAModel(RuleBasedStateMachine):
    """Numbers have no gaps, the newest content again is the same version, and the newest qualified version
    that is not withdrawn plays.
    """

    versions = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(prefix="kalarena-")
        self.course = Course(SQLiteFile(Path(self.folder.name) / "course.db"), FAST_PASSWORDS)
        self.teams = [self.course.teams.add(f"Team {number}", NOW) for number in (1, 2, 3)]
        self.student = add_student(self.course, self.teams[0])
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
            assert (is_new, version.number, version.submitted_at) == (True, len(own) + 1, self.now)
        self.known[version.id] = version
        return version.id

    @rule(version=versions, state=st.sampled_from([CHECKING, QUALIFIED, FAILED, STUCK]))
    def check(self, version: int, state: VersionState) -> None:
        if self.known[version].decided_at is not None:
            return
        if state is CHECKING:
            self.known[version] = self.course.versions.begin_check(version)
        else:
            self.known[version] = decide(self.course, self.known[version], state, self.now)
        assert self.known[version].state is state

    @rule(version=versions)
    def requeue(self, version: int) -> None:
        self.known[version] = self.course.versions.requeue(version)

    @rule(version=versions, withdrawn=st.booleans())
    def withdraw(self, version: int, withdrawn: bool) -> None:
        self.known[version] = self.course.versions.withdraw(version, withdrawn)

    @invariant()
    def all_versions_are_stored(self) -> None:
        assert self.course.versions.all(100) == sorted(self.known.values(), key=lambda one: -one.id)
        waiting = sorted(number for number, known in self.known.items() if known.state in (QUEUED, CHECKING))
        assert [one.id for one in self.course.versions.unfinished()] == waiting

    @invariant()
    def the_right_versions_play(self) -> None:
        by_number = sorted(self.known.values(), key=lambda one: one.number)
        able = [one for one in by_number if one.state is QUALIFIED and not one.withdrawn]
        for at in (None, self.now - timedelta(seconds=1), NOW):
            playing = {one.team_id: one for one in able if at is None or one.submitted_at <= at}
            assert self.course.versions.current(at) == playing


VersionsAgainstAModel.TestCase.settings = hypothesis_settings(max_examples=6, stateful_step_count=20)
TestVersionsAgainstAModel = VersionsAgainstAModel.TestCase
