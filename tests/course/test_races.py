"""Simultaneous actions: each is counted once, and a unique action succeeds once."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from threading import Barrier, Thread

import pytest

from tests.support.courses import FAST_PASSWORDS, NOW, account_with, add_account, add_student, use_link
from tests.support.store_locations import to_argument
from tournaments.course.course import Course
from tournaments.course.model import CompetitionKind, CourseError, LinkPurpose, Role, Version
from tournaments.course.settings import Settings
from tournaments.database.base import Location

THREADS = 8
LIMIT_S = 240


def at_once(actions: Sequence[Callable[[], object]]) -> list[object]:
    """Return the result of each action, or its CourseError; all actions begin at the same moment."""
    barrier = Barrier(len(actions))
    results: list[object] = [None] * len(actions)

    def run(number: int, action: Callable[[], object]) -> None:
        barrier.wait(LIMIT_S)
        try:
            results[number] = action()
        except CourseError as error:
            results[number] = error

    threads = [Thread(target=run, args=(number, action)) for number, action in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not any(thread.is_alive() for thread in threads)
    return results


def refused(results: Sequence[object]) -> list[str]:
    return [str(result) for result in results if isinstance(result, CourseError)]


def test_simultaneous_uploads_have_different_numbers(course: Course) -> None:
    teams = [course.teams.add(f"Team {number}", NOW) for number in (1, 2)]
    student = add_student(course, teams[0])

    def submit(number: int) -> Version:
        team = teams[number % 2]
        return course.versions.add(team.id, f"c{number}", 1, 1, student.id, "page", NOW)[0]

    results = at_once([partial(submit, number) for number in range(2 * THREADS)])
    for team in teams:
        numbers = [one.number for one in results if isinstance(one, Version) and one.team_id == team.id]
        assert sorted(numbers) == list(range(1, THREADS + 1))


def test_simultaneous_uploads_of_the_same_files_are_one_version(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = add_student(course, team)
    results = at_once([lambda: course.versions.add(team.id, "c", 1, 1, student.id, "page", NOW)] * THREADS)
    (version,) = course.versions.all(100)
    assert Counter(results) == {(version, True): 1, (version, False): THREADS - 1}


def test_no_more_uploads_a_day_than_permitted(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = add_student(course, team)
    rules = Settings(uploads_per_day=3)

    def submit(number: int) -> object:
        return course.versions.add(team.id, f"c{number}", 1, 1, student.id, "page", NOW, rules)

    results = at_once([partial(submit, number) for number in range(THREADS)])
    assert len(course.versions.all(100)) == 3
    assert len(refused(results)) == THREADS - 3


def test_a_link_is_used_once(course: Course) -> None:
    student = course.accounts.add("student-1", "Student 1", Role.STUDENT, None, NOW)
    secret = course.links.make(student.id, LinkPurpose.INVITATION, NOW)
    passwords = [f"password {number} of all" for number in range(THREADS)]
    results = at_once([partial(use_link, course, secret, password, NOW) for password in passwords])
    (winner,) = (number for number, result in enumerate(results) if not isinstance(result, CourseError))
    assert all("used already" in sentence for sentence in refused(results))
    for number, password in enumerate(passwords):
        assert (account_with(course, "student-1", password) is not None) is (number == winner)


def test_a_name_is_taken_once(course: Course) -> None:
    cup = course.competitions.add("cup", "Cup", CompetitionKind.TOURNAMENT, {}, None, NOW)
    actions: list[Callable[[], object]] = [
        lambda: course.teams.add("Team 1", NOW),
        lambda: course.accounts.add("student-1", "Student 1", Role.STUDENT, None, NOW),
        lambda: course.competitions.add("practice", "Practice", CompetitionKind.PRACTICE, {}, None, NOW),
    ]
    assert len(refused(at_once(actions * 4))) == 9
    assert (len(course.teams.all()), len(course.accounts.all()), len(course.competitions.all())) == (1, 1, 2)
    results = at_once([lambda: course.competitions.enter(cup.id, "ladder:5", None, "ladder:5")] * THREADS)
    assert refused(results) == []
    assert len(course.competitions.competitors(cup.id)) == 1


def test_two_admins_cannot_remove_each_other(course: Course) -> None:
    for _ in range(5):
        admins = [add_account(course, Role.ADMIN, f"admin-{len(course.accounts.all())}") for _ in range(2)]
        one, other = (admin.id for admin in admins)
        for account in course.accounts.all():
            if account not in admins and not account.disabled:
                course.accounts.set_disabled(account.id, True)
        disable = partial(course.accounts.set_disabled, one, True)
        demote = partial(course.accounts.set_role, other, Role.LECTURER)
        (sentence,) = refused(at_once([disable, demote]))
        assert "the last admin" in sentence


def test_simultaneous_changes_of_different_settings(course: Course) -> None:
    changes = ({"title": "Games"}, {"uploads_open": False}, {"upload_mb": 1})
    assert refused(at_once([partial(course.settings.change, **change) for change in changes])) == []
    assert course.settings.load() == Settings(title="Games", uploads_open=False, upload_mb=1)


def test_reads_do_not_wait_for_a_transaction(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    with course.transaction():
        course.teams.add("Team 2", NOW)
        seen: list[object] = []
        thread = Thread(target=lambda: seen.append(course.teams.all()))
        thread.start()
        thread.join(LIMIT_S)
        assert seen == [[team]]
    assert len(course.teams.all()) == 2


PROGRAM = """
import sys
from tests.support.courses import FAST_PASSWORDS, NOW, note
from tests.support.store_locations import from_argument
from tournaments.course.course import Course

with Course(from_argument(sys.argv[1]), FAST_PASSWORDS) as course:
    print(len(course.teams.all()), flush=True)
    team_id, account_id = map(int, sys.stdin.readline().split())
    for number in range(20):
        course.versions.add(team_id, f"{sys.argv[2]}-{number}", 1, 1, account_id, "api", NOW)
        note(course, NOW, None, "upload", sys.argv[2])
"""


@pytest.mark.slow
def test_two_processes_create_a_course_and_submit_to_it(place: Location) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, to_argument(place), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "other")
    ]
    try:
        assert [process.stdout and process.stdout.readline() for process in processes] == ["0\n", "0\n"]
        with Course(place, FAST_PASSWORDS) as course:
            team = course.teams.add("Team 1", NOW)
            student = add_student(course, team)
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(f"{team.id} {student.id}\n")
                process.stdin.flush()
            assert [process.wait(LIMIT_S) for process in processes] == [0, 0]
            versions = course.versions.of_team(team.id)
            assert [version.number for version in versions] == list(range(40, 0, -1))
            assert len({version.content for version in versions}) == 40
            subjects = Counter(event.subject for event in course.journal.entries(100))
            assert subjects == {"one": 20, "other": 20}
    finally:
        for process in processes:
            process.kill()
            process.communicate()
