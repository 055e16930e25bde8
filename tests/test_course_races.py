"""Several at the same moment: what is counted is counted once, and what may happen once happens once."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Barrier, Thread

import pytest

from tests.courses import CHEAP, NOW, a_person, a_student
from tests.places import to_argument
from tournaments.course.course import Course
from tournaments.course.model import CompetitionKind, CourseError, LinkPurpose, Role, Version
from tournaments.course.settings import Settings
from tournaments.database.base import Location

THREADS = 8
LIMIT_S = 60


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


def at_once(acts: Sequence[Callable[[], object]]) -> list[object]:
    """What each of them gives, or the CourseError that it raises; all begin at the same moment."""
    barrier = Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def run(number: int, act: Callable[[], object]) -> None:
        barrier.wait(LIMIT_S)
        try:
            results[number] = act()
        except CourseError as error:
            results[number] = error

    threads = [Thread(target=run, args=(number, act)) for number, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not any(thread.is_alive() for thread in threads)
    return results


def refused(results: Sequence[object]) -> list[str]:
    return [str(result) for result in results if isinstance(result, CourseError)]


def test_uploads_at_the_same_moment_get_different_numbers(course: Course) -> None:
    teams = [course.teams.add(f"Team {number}", NOW) for number in (1, 2)]
    student = a_student(course, teams[0])

    def submit(number: int) -> Callable[[], object]:
        team = teams[number % 2]
        return lambda: course.versions.add(team.id, f"c{number}", 1, 1, student.id, "page", NOW)[0]

    results = at_once([submit(number) for number in range(2 * THREADS)])
    for team in teams:
        numbers = [one.number for one in results if isinstance(one, Version) and one.team_id == team.id]
        assert sorted(numbers) == list(range(1, THREADS + 1))


def test_the_same_upload_twice_is_one_version(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = a_student(course, team)
    results = at_once([lambda: course.versions.add(team.id, "c", 1, 1, student.id, "page", NOW)] * THREADS)
    (version,) = course.versions.all(100)
    assert Counter(results) == {(version, True): 1, (version, False): THREADS - 1}


def test_the_last_upload_of_a_day_is_one(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = a_student(course, team)
    rules = Settings(uploads_per_day=3)

    def submit(number: int) -> Callable[[], object]:
        return lambda: course.versions.add(team.id, f"c{number}", 1, 1, student.id, "page", NOW, rules)

    results = at_once([submit(number) for number in range(THREADS)])
    assert len(course.versions.all(100)) == 3
    assert len(refused(results)) == THREADS - 3


def test_a_link_is_used_once(course: Course) -> None:
    student = course.accounts.add("student-1", "Student 1", Role.STUDENT, None, NOW)
    secret = course.links.make(student.id, LinkPurpose.INVITATION, NOW)
    passwords = [f"password {number} of all" for number in range(THREADS)]
    results = at_once([partial(course.links.use, secret, password, NOW) for password in passwords])
    (winner,) = (number for number, result in enumerate(results) if not isinstance(result, CourseError))
    assert all("used already" in sentence for sentence in refused(results))
    for number, password in enumerate(passwords):
        assert (course.accounts.check_password("student-1", password) is not None) is (number == winner)


def test_a_name_is_given_once(course: Course) -> None:
    cup = course.competitions.add("cup", "Cup", CompetitionKind.TOURNAMENT, {}, None, NOW)
    acts: list[Callable[[], object]] = [
        lambda: course.teams.add("Team 1", NOW),
        lambda: course.accounts.add("student-1", "Student 1", Role.STUDENT, None, NOW),
        lambda: course.competitions.add("practice", "Practice", CompetitionKind.PRACTICE, {}, None, NOW),
    ]
    results = at_once(acts * 4)
    assert len(refused(results)) == 9
    assert (len(course.teams.all()), len(course.accounts.all()), len(course.competitions.all())) == (1, 1, 2)
    results = at_once([lambda: course.competitions.enter(cup.id, "ladder:5", None, "ladder:5")] * THREADS)
    assert refused(results) == []
    assert len(course.competitions.competitors(cup.id)) == 1


def test_two_admins_cannot_disable_one_another(course: Course) -> None:
    for _ in range(5):
        admins = [a_person(course, Role.ADMIN, f"admin-{len(course.accounts.all())}") for _ in range(2)]
        for account in course.accounts.all():
            if account.id not in [admin.id for admin in admins] and not account.disabled:
                course.accounts.set_disabled(account.id, True)
        one, other = (admin.id for admin in admins)
        results = at_once(
            [
                partial(course.accounts.set_disabled, one, True),
                partial(course.accounts.set_role, other, Role.LECTURER),
            ]
        )
        assert len(refused(results)) == 1
        assert "the last admin" in refused(results)[0]


def test_settings_of_two_lecturers(course: Course) -> None:
    results = at_once(
        [
            lambda: course.settings.change(title="Games"),
            lambda: course.settings.change(uploads_open=False),
            lambda: course.settings.change(upload_mb=1),
        ]
    )
    assert refused(results) == []
    assert course.settings.load() == Settings(title="Games", uploads_open=False, upload_mb=1)


def test_reading_goes_on_while_others_write(course: Course) -> None:
    """A transaction that takes its time keeps nobody from looking."""
    team = course.teams.add("Team 1", NOW)
    with course.transaction():
        course.teams.add("Team 2", NOW)
        seen: list[object] = []
        thread = Thread(target=lambda: seen.append(course.teams.all()))
        thread.start()
        thread.join(LIMIT_S)
        assert seen == [[team]]
    assert len(course.teams.all()) == 2


SUBMITS = """
import sys
from tests.courses import CHEAP, NOW
from tests.places import from_argument
from tournaments.course.course import Course

place, who, team_id, account_id = sys.argv[1:]
with Course(from_argument(place), CHEAP) as course:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(20):
        course.versions.add(int(team_id), f"{who}-{number}", 1, 1, int(account_id), "api", NOW)
        course.journal.note(NOW, None, "upload", who)
"""


def test_two_processes(place: Location, course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = a_student(course, team)
    arguments = [str(team.id), str(student.id)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SUBMITS, to_argument(place), who, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("one", "other")
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.wait(LIMIT_S) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    versions = course.versions.of_team(team.id)
    assert [version.number for version in versions] == list(range(40, 0, -1))
    assert len({version.content for version in versions}) == 40
    assert Counter(event.subject for event in course.journal.entries(100)) == {"one": 20, "other": 20}


def test_two_processes_make_the_same_course(place: Location) -> None:
    program = SUBMITS.partition("    print")[0] + "    print(len(course.teams.all()))"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, to_argument(place), "", "0", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=LIMIT_S)[0] for process in processes] == ["0\n", "0\n"]
    assert [process.returncode for process in processes] == [0, 0]
