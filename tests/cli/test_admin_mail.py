"""`kalarena admin mail`, `kalarena doctor` and `kalarena serve` with a mail server."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server.server_process import served
from tests.support.builders import invoke, one_object
from tests.support.courses import FAST_PASSWORDS, add_account
from tests.support.databases import database_of, server_file_of
from tests.support.mail_server import HOST, MailServer, mail_server
from tournaments.course.course import Course
from tournaments.course.model import Role
from tournaments.database.base import Connections
from tournaments.web.data_directory import DataDirectory

SITE = "http://127.0.0.1:9"
"""In the links of the mails; nothing listens there."""
LIMIT_S = 180.0


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as state:
        yield state


@pytest.fixture
def data(tmp_path: Path, server: MailServer) -> Path:
    """The data directory of a server that sends mail and was started before."""
    data = tmp_path / "data"
    data.mkdir()
    DataDirectory(data).identity()
    with Course(database_of(data).course(), FAST_PASSWORDS) as course:
        add_account(course, Role.ADMIN, "admin")
    write_server_file(data, server)
    return data


def write_server_file(data: Path, server: MailServer, database: str | None = None, mail: str = "") -> None:
    table = f'[mail]\nhost = "{HOST}"\nport = {server.port}\nsecurity = "none"\nsender = "bots@example.org"\n'
    line = server_file_of(data) if database is None else database
    (data / "server.toml").write_text(f'public_url = "{SITE}"\n{line}{table}{mail}')


def admin(data: Path, *arguments: str | Path) -> str:
    result = invoke("admin", *arguments, "--data", data)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(data: Path, *arguments: str | Path) -> tuple[int, str]:
    result = invoke("admin", *arguments, "--data", data)
    assert "Traceback" not in result.output
    return result.exit_code, result.stderr


def numbers(data: Path) -> tuple[int, int, int]:
    found = json.loads(admin(data, "mail", "list", "--json"))
    return found["waiting"], found["held"], found["failed"]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_test_mail_prints_the_answer(data: Path, server: MailServer) -> None:
    assert admin(data, "mail", "test", "ada@example.org") == (
        f"mail server {HOST}:{server.port}: 250 2.0.0 accepted as 7\n"
    )
    assert [one.to for one in server.received] == ["ada@example.org"]
    server.replies["RCPT ada@example.org"] = "550 5.1.1 no such user"
    status, text = refused(data, "mail", "test", "ada@example.org")
    assert (status, "refused the mail: 550 5.1.1 no such user" in text) == (1, True), text
    server.replies["CONNECT"] = "554 no service"
    assert "554 no service" in refused(data, "mail", "test", "ada@example.org")[1]
    status, text = refused(data, "mail", "test", "ada")
    assert (status, "'ada' is no e-mail address" in text) == (2, True), text


def test_without_a_table_there_is_no_mail(data: Path) -> None:
    (data / "server.toml").write_text(server_file_of(data))
    for words in (("test", "ada@example.org"), ("retry",), ("release",), ("discard",)):
        status, text = refused(data, "mail", *words)
        assert (status, "has no table [mail]" in text) == (2, True), text
    status, text = refused(data, "add", "s-1", "--role", "student", "--email", "s-1@example.org")
    assert (status, "sends no mail" in text) == (2, True), text
    admin(data, "add", "s-1", "--role", "student", "--team", "Team 1")
    assert numbers(data) == (0, 0, 0)
    with Course(database_of(data).course(), FAST_PASSWORDS) as course:
        assert course.addresses.known() == frozenset()


def test_a_directory_that_was_never_served_writes_no_mail(data: Path) -> None:
    (data / "identity").unlink()
    status, text = refused(data, "reset", "admin")
    assert (status, "start the server once" in text) == (2, True), text


def test_links_of_the_command_line_go_out_by_mail(data: Path, tmp_path: Path) -> None:
    link = admin(data, "add", "s-1", "--role", "student", "--team", "Team 1", "--email", "s-1@example.org")
    assert link.startswith(f"{SITE}/links/")
    roster = tmp_path / "roster.csv"
    roster.write_text("login,name,team,email\ns-2,S 2,Team 1,s-2@example.org\ns-3,S 3,Team 1,\n")
    result = invoke("admin", "roster", "import", roster, "--data", data)
    assert "1 address set; 1 link goes out by mail" in result.stderr
    assert numbers(data) == (2, 0, 0)
    assert "2 waiting, 0 failed" in one_object(invoke("doctor", "--json", "--data", str(data)).output)["mail"]


@pytest.mark.slow
def test_the_doctor_counts_mails_of_another_directory_as_held(data: Path) -> None:
    admin(data, "add", "s-1", "--role", "lecturer", "--email", "s-1@example.org")
    assert mail_text(data).endswith("; 1 waiting, 0 failed")
    (data / "identity").write_text("another\n")
    assert mail_text(data).endswith("; 0 waiting, 1 held (see kalarena admin mail release), 0 failed")
    (data / "identity").unlink()
    assert mail_text(data).endswith("; 0 waiting, 1 held (see kalarena admin mail release), 0 failed")


def test_the_doctor_reports_on_a_server_in_words(data: Path) -> None:
    lines = invoke("doctor", "--data", data).stdout.splitlines()
    for name in ("Disk", "Database", "Mail"):
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
    assert line.removeprefix("Mail").strip().startswith(f"sent by {HOST}:")


def test_the_doctor_refuses_the_course_of_a_newer_version(data: Path) -> None:
    with Connections(database_of(data).course()) as connections, connections.writing("") as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    result = invoke("doctor", "--json", "--data", str(data))
    assert result.exit_code == 1
    assert "does NOT work" in one_object(result.output)["database"]
    assert "was written by a newer version of kalarena" in one_object(result.output)["database"]


def mail_text(data: Path) -> str:
    return str(one_object(invoke("doctor", "--json", "--data", str(data)).output)["mail"])


@pytest.mark.slow
def test_a_server_sends_what_waits_and_a_restored_one_asks(
    data: Path, server: MailServer, tmp_path: Path
) -> None:
    with served(data) as running:
        admin(data, "add", "s-1", "--role", "student", "--team", "Team 1", "--email", "s-1@example.org")
        [found] = server.until(1)
        assert f"{SITE}/links/" in found.text
        until(lambda: numbers(data) == (0, 0, 0))  # it is noted as sent when the mail server has it
        server.replies["CONNECT"] = "554 down"
        link = admin(data, "reset", "s-1").strip()
        running.kill()
    assert numbers(data) == (1, 0, 0)
    archive, restored = tmp_path / "b.tar", tmp_path / "restored"
    is_file = isinstance(database_of(data).address, Path)
    if is_file:
        admin(data, "backup", archive)
    server.replies.clear()
    with served(data) as running:
        assert link in server.until(2)[1].text
        until(lambda: numbers(data) == (0, 0, 0))
        running.assert_ends()
    if not is_file:
        return
    admin(restored, "restore", archive)
    write_server_file(restored, server, database="")
    with served(restored) as running:
        until(lambda: (restored / "identity").is_file())
        assert numbers(restored) == (0, 1, 0)
        admin(restored, "reset", "admin")
        assert len(server.received) == 2
        assert admin(restored, "mail", "release") == "1 mail is released\n"
        assert link in server.until(3)[2].text
        running.assert_ends()
