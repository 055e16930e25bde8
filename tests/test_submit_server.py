"""`kalarena submit` and a real server, from the folder to the verdict."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sample_bots.starters_catalog import starter_directory
from tests.builders import kalarena, one_object
from tests.served_course import ServedCourse, Student, served_course
from tests.test_service_workshop import GAME
from tournaments.course.model import VersionState

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCourse]:
    folder = tmp_path_factory.mktemp("course")
    with served_course(folder, game=GAME, move_s=1.0, sandbox_mode="off") as made:
        yield made


def submit(course: ServedCourse, student: Student, bot: Path, *options: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    known = {"KALARENA_SERVER": course.url, "KALARENA_TOKEN": student.token}
    done = kalarena(bot.parent, "submit", bot, *options, **known)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_from_the_folder_to_the_verdict(course: ServedCourse, tmp_path: Path) -> None:
    student, kit = course.student(), starter_directory("python")
    status, told, errors = submit(course, student, kit)
    (version,) = course.course.versions.of_team(student.team_id)
    assert (status, errors) == (0, "")
    assert f"was taken as version 1: {course.url}/my/versions/{version.id}\n" in told
    assert "Plays as South" in told  # the check's log
    assert told.endswith("version 1 qualified, and is the one that plays now\n")
    assert version.state is VersionState.QUALIFIED
    # The same folder again is the same version.
    status, told, _ = submit(course, student, kit, "--json")
    found = one_object(told)
    assert (status, found["new"], found["version"]["current"], found["report"]["ok"]) == (
        0,
        False,
        True,
        True,
    )

    bot = tmp_path / "broken"
    bot.mkdir()
    (bot / "bot.py").write_text("raise SystemExit('no idea')\n")
    status, told, _ = submit(course, student, bot)
    assert status == 1
    assert "failed: " in told
    assert "no idea" in told
    assert told.endswith("version 2 did not qualify; the one before it, if any, plays on\n")
    status, told, _ = submit(course, student, bot, "--json", "--no-wait")
    assert (status, one_object(told)["version"]["number"]) == (0, 2)
    assert course.course.versions.current()[student.team_id].number == 1


def test_what_is_not_taken(course: ServedCourse, tmp_path: Path) -> None:
    student = course.student()
    wrong = tmp_path / "bot.zip"
    wrong.write_bytes(b"PK\3\4")
    status, told, errors = submit(course, student, wrong)
    assert (status, told) == (2, "")
    assert '"bot.zip": the archive is cut off or damaged' in errors
    (tmp_path / "bot.py").write_text("print()\n")
    course.course.settings.change(uploads_open=False)
    try:
        assert submit(course, student, tmp_path / "bot.py") == (2, "", "Error: Uploads are closed.\n")
    finally:
        course.course.settings.change(uploads_open=True)
    (token,) = course.course.tokens.of(student.account.id)
    course.course.tokens.revoke(token.id, student.account.id)
    status, told, errors = submit(course, student, tmp_path / "bot.py", "--json")
    assert (status, told) == (2, "")
    assert "This token is not valid (any more): make one on your account's page." in errors
    assert course.course.versions.of_team(student.team_id) == []


def test_a_server_that_is_away(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("print()\n")
    with served_course(tmp_path / "course") as course:
        student = course.student()
        course.server.kill()
        status, told, errors = submit(course, student, tmp_path / "bot.py")
    assert (status, told) == (3, "")
    assert errors == f"Error: {course.url} cannot be reached: Connection refused\n"
