"""Mails are sent by SMTP: what they look like, which are tried again, and that a kill loses none."""

import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from signal import SIGKILL
from subprocess import PIPE, Popen
from typing import Any

import pytest
import trio
from sqlalchemy import update

from tests.server.harness import until
from tests.support.courses import FAST_PASSWORDS, NOW, add_student, add_version, decide
from tests.support.mail_server import HOST, MailServer, mail_server, make_certificate
from tests.support.store_locations import to_argument
from tests.web.site import Clock
from tournaments.course.course import Course
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import Mail, MailKind, VersionState
from tournaments.course.schema import mail
from tournaments.database.base import Connections, Location, StoreError
from tournaments.server.failures import Failures
from tournaments.server.mail import mailer as mailer_module
from tournaments.server.mail.mail_table import Mailing, MailTable
from tournaments.server.mail.mailer import MOST_TRIES, Mailer, next_try
from tournaments.server.mail.smtp import TIMEOUT_S, MailServerError, RefusedError, deliver, message_of

SECOND = timedelta(seconds=1)
HOME = MailHome("home-1", b"key")
SITE = "https://bots.example.org"
SENDER = "Bots of the course <bots@example.org>"
MAIL = Mail(
    7, MailKind.CHECKS, "ada@example.org", "[Games] Version 1 qualified", "Well.", "/my/versions/3", NOW, 0
)


def mailing(server: MailServer, **values: Any) -> Mailing:
    table = {"host": HOST, "port": server.port, "security": "none", "sender": SENDER, "per_minute": 1000}
    return Mailing(MailTable.model_validate(table | values), SITE)


def send(server: MailServer, mail: Mail = MAIL, **values: Any) -> str:
    """Send a mail at once; the values are of the table."""
    used = mailing(server, **values)
    return deliver(used.table, message_of(used, mail), mail.address)


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as state:
        yield state


# One mail


def test_a_mail_is_plain_text_with_a_link(server: MailServer) -> None:
    assert send(server) == "250 2.0.0 accepted as 7"
    [found] = server.received
    assert (found.sender, found.to) == ("bots@example.org", "ada@example.org")
    message = found.message
    assert message["From"] == SENDER
    assert message["To"] == "ada@example.org"
    assert message["Subject"] == MAIL.subject
    assert message["Date"] == "Mon, 02 Mar 2026 12:00:00 +0000"
    assert message["Message-ID"] == "<kalarena.7.20260302120000000000@bots.example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["List-Unsubscribe"] == f"<{SITE}/account#mail>"
    assert message.get_content_type() == "text/plain"
    assert found.text.startswith(f"Well.\n\n{SITE}/my/versions/3\n\n-- \n")


def test_a_mail_that_somebody_waits_for_has_no_list(server: MailServer) -> None:
    send(server, replace(MAIL, kind=MailKind.LINK))
    assert server.received[0].message["List-Unsubscribe"] is None


def test_nothing_in_a_mail_can_add_a_header_or_end_it(server: MailServer) -> None:
    subject = "a\r\nBcc: eve@example.org\n\n\N{RIGHT-TO-LEFT OVERRIDE}\N{SNOWMAN}" + "x" * 300
    send(server, replace(MAIL, subject=subject, body="\r\n.\r\nMAIL FROM:<eve@example.org>\r\n\N{SNOWMAN}"))
    [found] = server.received
    assert found.message["Bcc"] is None
    assert r"\r\nBcc: eve" in found.message["Subject"]
    assert "\N{SNOWMAN}" in found.message["Subject"]
    assert "\N{SNOWMAN}" in found.text
    assert all(len(line) <= 998 for line in found.content.splitlines())
    with pytest.raises(ValueError, match=r"[Ii]nvalid|CR or LF"):
        message_of(mailing(server), replace(MAIL, address="ada@example.org\nBcc: eve@example.org"))


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_tls_with_a_password(security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = make_certificate(tmp_path / "mail.pem")
    secret = tmp_path / "password"
    secret.write_text("correct horse\n")
    monkeypatch.setenv("MAIL_PASSWORD", "wrong horse")
    used: dict[str, Any] = {"security": security, "ca_file": str(certificate), "username": "bots"}
    with mail_server(
        MailServer(passwords={"bots": "correct horse"}), certificate, is_tls=security == "tls"
    ) as server:
        send(server, **used, password_file=str(secret))
        [found] = server.received
        assert (found.is_encrypted, found.user) == (True, "bots")
        with pytest.raises(
            MailServerError, match=f"mail server {HOST}:{server.port}: 535 5.7.8 wrong password"
        ):
            send(server, **used, password_env="MAIL_PASSWORD")
        with pytest.raises(MailServerError, match="no variable NOT_SET"):
            send(server, **used, password_env="NOT_SET")
        with pytest.raises(MailServerError, match="cannot be read: No such file"):
            send(server, **used, password_file=str(tmp_path / "none"))
        no_certificate = {"ca_file": str(secret), "password_file": str(secret)}
        with pytest.raises(MailServerError, match=f"mail.ca_file: {secret} cannot be used: it has no cert"):
            send(server, **used | no_certificate)
        with pytest.raises(MailServerError, match="cannot be used: No such file"):
            send(server, **used | no_certificate | {"ca_file": str(tmp_path / "none")})
        secret.write_text("")
        with pytest.raises(MailServerError, match="has no password in its first line"):
            send(server, **used, password_file=str(secret))


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_that_is_not_trusted_gets_no_mail(security: str, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "mail.pem")
    other = make_certificate(tmp_path / "other.pem")
    elsewhere = make_certificate(tmp_path / "elsewhere.pem", "192.0.2.1")
    with mail_server(None, certificate, is_tls=security == "tls") as server:
        for trusted in (None, str(other)):
            with pytest.raises(MailServerError, match=r"its certificate is not trusted: self.signed"):
                send(server, security=security, ca_file=trusted)
        assert server.received == []
    with mail_server(None, elsewhere, is_tls=security == "tls") as server:
        with pytest.raises(MailServerError, match="its certificate is not trusted: IP address mismatch"):
            send(server, security=security, ca_file=str(elsewhere))
        assert server.received == []


def test_no_mail_goes_out_without_the_tls_that_is_asked_for(server: MailServer) -> None:
    with pytest.raises(MailServerError, match="STARTTLS extension not supported"):
        send(server, security="starttls")
    assert server.received == []


@pytest.mark.parametrize(
    ("key", "reply", "is_final"),
    [
        ("RCPT ada@example.org", "550 5.1.1 no such user", True),
        ("RCPT ada@example.org", "450 4.2.0 greylisted", False),
        ("END ada@example.org", "554 5.7.1 spam", True),
        ("DATA", "451 later", False),
    ],
)
def test_a_mail_that_is_refused(server: MailServer, key: str, reply: str, is_final: bool) -> None:
    server.replies[key] = reply
    with pytest.raises(RefusedError) as caught:
        send(server)
    assert (str(caught.value), caught.value.is_final) == (reply, is_final)


def test_a_server_that_gives_up_at_a_mail_has_refused_this_mail(server: MailServer) -> None:
    server.replies["END ada@example.org"] = "close"
    with pytest.raises(RefusedError, match="Connection unexpectedly closed") as caught:
        send(server)
    assert not caught.value.is_final


@pytest.mark.parametrize(
    ("key", "reply"),
    [("CONNECT", "554 no"), ("MAIL", "550 you may not send"), ("RCPT ada@example.org", "421 bye")],
)
def test_a_server_that_refuses_everybody(server: MailServer, key: str, reply: str) -> None:
    server.replies[key] = reply
    with pytest.raises(MailServerError, match=reply):
        send(server)


def test_a_server_that_is_down() -> None:
    with mail_server() as server:
        pass
    with pytest.raises(MailServerError, match=f"^mail server {HOST}:{server.port}: Connection refused$"):
        send(server)


def test_a_server_that_does_not_answer_in_time(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*_: object, **__: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", wait)
    with pytest.raises(MailServerError, match=f"no answer within {TIMEOUT_S:g} s"):
        send(server)


# The task that sends


@dataclass
class Scene:
    """A course whose mails are sent, and a mail server."""

    course: Course
    clock: Clock
    failures: Failures
    server: MailServer
    mailer: Mailer

    def write(self, number: int) -> None:
        """Write so many mails to one address each."""
        team = self.course.teams.by_name("Team 1") or self.course.teams.add("Team 1", NOW)
        for _ in range(number):
            students = self.course.accounts.of_team(team.id)
            student = add_student(self.course, team, f"s{len(students) + 1}")
            self.course.addresses.enrol(student.id, f"{student.login}@example.org")
        version = add_version(self.course, team, student, f"c{len(self.server.received)}{number}")
        decide(self.course, version, VersionState.FAILED, self.clock())


@asynccontextmanager
async def sending(place: Location, server: MailServer, **values: Any) -> AsyncIterator[Scene]:
    clock = Clock()
    with Course(place, FAST_PASSWORDS, HOME) as course:
        failures = Failures(clock)
        used = mailing(server, **values)
        mailer = Mailer(course.outbox, used, failures, clock, retry_s=0.01, poll_s=0.01)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mailer.run)
            yield Scene(course, clock, failures, server, mailer)
            nursery.cancel_scope.cancel()


def waiting(scene: Scene) -> int:
    return scene.course.outbox.status().waiting


async def test_mails_are_sent_once(place: Location, server: MailServer) -> None:
    async with sending(place, server) as scene:
        scene.write(3)
        await until(lambda: not scene.course.outbox.due(NOW, 9))
        assert sorted(one.to for one in server.received) == [f"s{number}@example.org" for number in (1, 2, 3)]
        status = scene.course.outbox.status()
        assert (status.waiting, status.failed, scene.failures.newest()) == (0, 0, ())


async def test_a_server_that_was_down_gets_all_mails_and_none_has_failed(place: Location) -> None:
    with mail_server() as server:
        pass
    async with sending(place, server) as scene:
        scene.write(2)
        await until(lambda: scene.failures.newest() and scene.failures.newest()[0].times > 2)
        assert "Connection refused" in scene.mailer.trouble
        assert scene.course.outbox.status().waiting == 2
        with mail_server(server):
            await until(lambda: len(server.received) == 2)
            await until(lambda: scene.course.outbox.status().waiting == 0)
        assert scene.mailer.trouble == ""
        assert scene.course.outbox.status().failed == 0


async def test_a_mail_that_is_refused_for_good_has_failed_and_the_others_are_sent(
    place: Location, server: MailServer
) -> None:
    server.replies["RCPT s1@example.org"] = "550 5.1.1 no such user"
    async with sending(place, server) as scene:
        scene.write(2)
        await until(lambda: scene.course.outbox.status().waiting == 0)
        assert [one.to for one in server.received] == ["s2@example.org"]
        [failure] = scene.course.outbox.status().failures
        assert (failure.login, failure.answer) == ("s1", "550 5.1.1 no such user")
        server.replies.clear()
        scene.course.outbox.retry(NOW)
        await until(lambda: len(server.received) == 2)


async def test_a_mail_that_cannot_be_written_does_not_stop_the_others(
    place: Location, server: MailServer
) -> None:
    async with sending(place, server) as scene:
        scene.server.replies["CONNECT"] = "554 not yet"
        scene.write(2)
        with Connections(place) as connections, connections.writing("") as connection:
            of_first = mail.c.address == "s1@example.org"
            connection.execute(update(mail).where(of_first).values(address="s1@example.org\nBcc: eve"))
        server.replies.clear()
        await until(lambda: waiting(scene) == 0)
        assert [one.to for one in server.received] == ["s2@example.org"]
        [failure] = scene.course.outbox.status().failures
        assert "cannot be written" in failure.answer


async def test_a_temporary_refusal_is_tried_again_later_and_not_for_ever(
    place: Location, server: MailServer
) -> None:
    server.replies["RCPT s1@example.org"] = "450 4.2.2 mailbox full"
    async with sending(place, server) as scene:
        scene.write(1)
        for tries in range(1, MOST_TRIES):
            await until(lambda: scene.course.outbox.tried_between(scene.clock() - SECOND, scene.clock()))
            assert scene.course.outbox.due(next_try(tries, scene.clock()) - SECOND, 9) == []
            [again] = scene.course.outbox.due(next_try(tries, scene.clock()), 9)
            assert again.attempts == tries
            scene.clock.at = next_try(tries, scene.clock())
        await until(lambda: scene.course.outbox.status().failed == 1)
        assert server.attempts == ["s1@example.org"] * MOST_TRIES
        assert scene.clock() - NOW > timedelta(hours=24)


async def test_the_bound_of_a_minute_is_kept(place: Location, server: MailServer) -> None:
    async with sending(place, server, per_minute=2) as scene:
        scene.write(5)
        for number in (2, 4):
            await until(lambda number=number: waiting(scene) == 5 - number)  # type: ignore[misc]
            scene.clock.advance(seconds=59)
            for _ in range(5):  # several turns of the task
                await trio.sleep(0.01)
            assert len(server.received) == number
            scene.clock.advance(seconds=1)
        await until(lambda: len(server.received) == 5)


async def test_mails_that_were_sent_while_the_clock_was_ahead_leave_room_for_others(
    place: Location, server: MailServer
) -> None:
    async with sending(place, server, per_minute=2) as scene:
        scene.clock.advance(days=1)
        scene.write(2)
        await until(lambda: waiting(scene) == 0)
        scene.clock.at = NOW
        scene.write(1)  # a mail to each of three
        await until(lambda: waiting(scene) == 1)
        assert len(server.received) == 4


async def test_a_mail_whose_delivery_cannot_be_recorded_is_not_sent_again(
    place: Location, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def fail(mail_id: int, *_: object) -> None:
        tries.append(mail_id)
        raise StoreError("the disk is full", is_ours=True)

    with Course(place, FAST_PASSWORDS, HOME) as course:
        clock = Clock()
        mailer = Mailer(course.outbox, mailing(server), Failures(clock), clock, retry_s=0.01, poll_s=0.01)
        scene = Scene(course, clock, Failures(clock), server, mailer)
        scene.write(2)
        with monkeypatch.context() as patched:
            patched.setattr(course.outbox, "sent", fail)
            for number in range(1, 4):  # as if it were kept running
                with pytest.raises(StoreError, match="the disk is full"):
                    await mailer.run()
                assert len(tries) == number
                assert [one.to for one in server.received] == ["s1@example.org"]
        delivered_at = clock()
        clock.advance(hours=1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mailer.run)
            await until(lambda: waiting(scene) == 0)
            nursery.cancel_scope.cancel()
        assert [one.to for one in server.received] == ["s1@example.org", "s2@example.org"]
        assert course.outbox.tried_between(NOW - SECOND, clock()) == [delivered_at, clock()]


async def test_changes_of_addresses_and_accounts_hold_while_other_mails_are_sent(
    place: Location, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Course(place, FAST_PASSWORDS, HOME) as course:
        clock = Clock()
        mailer = Mailer(course.outbox, mailing(server), Failures(clock), clock, retry_s=0.01, poll_s=0.01)
        scene = Scene(course, clock, Failures(clock), server, mailer)
        scene.write(4)
        _, second, third, fourth = course.accounts.of_team(1)

        def deliver_and_change(*arguments: Any) -> str:
            answer = deliver(*arguments)
            if len(server.received) == 1:
                course.addresses.enrol(second.id, "new@example.org")
                course.addresses.remove(third.id)
                course.accounts.set_disabled(fourth.id, True)
            return answer

        monkeypatch.setattr(mailer_module, "deliver", deliver_and_change)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mailer.run)
            await until(lambda: waiting(scene) == 0)
            nursery.cancel_scope.cancel()
        assert [one.to for one in server.received] == ["s1@example.org", "new@example.org"]


async def test_a_slow_mail_server_does_not_hold_up_the_end(place: Location) -> None:
    with socket.create_server((HOST, 0)) as silent:
        server = MailServer(silent.getsockname()[1])
        end = trio.CancelScope()
        with end:
            async with sending(place, server) as scene:
                scene.write(1)
                accepted, _ = await trio.to_thread.run_sync(silent.accept)
                end.deadline = trio.current_time() + TIMEOUT_S / 2  # of the end alone
        assert not end.cancelled_caught
        accepted.close()  # which ends the thread that is left behind


# Kills

# Importing everything takes longer than sending: each line that is read makes a copy of the process.
KILLED = """
import sys
import trio
from tests.server.test_mailer import HOME, NOW, MailServer, mailing
from tests.support.courses import FAST_PASSWORDS
from tests.support.statement_faults import fault_before, in_copy, kill_process
from tests.support.store_locations import from_argument
from tournaments.course.course import Course
from tournaments.server.failures import Failures
from tournaments.server.mail.mailer import Mailer

async def main(port, number):
    with Course(from_argument(sys.argv[1]), FAST_PASSWORDS, HOME) as course:
        server = MailServer(port)
        mailer = Mailer(course.outbox, mailing(server), Failures(lambda: NOW), lambda: NOW, 0.01, 0.01)
        async with trio.open_nursery() as nursery:
            with fault_before(number, kill_process):
                nursery.start_soon(mailer.run)
                while course.outbox.due(NOW, 9):
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()

for line in sys.stdin:
    print(in_copy(trio.run, main, *map(int, line.split())), flush=True)
"""


@pytest.mark.kill
def test_a_kill_before_any_statement_loses_no_mail(place: Location) -> None:
    """A mail that was accepted just before a kill is sent again, with the same Message-ID."""
    with Course(place, FAST_PASSWORDS, HOME) as course:
        team = course.teams.add("Team 1", NOW)
        students = [add_student(course, team, login) for login in ("ada", "bob")]
        for student in students:
            course.addresses.enrol(student.id, f"{student.login}@example.org")
        words = [sys.executable, "-c", KILLED, to_argument(place)]
        with Popen(words, text=True, stdin=PIPE, stdout=PIPE) as sender:
            assert sender.stdin is not None
            assert sender.stdout is not None
            for number in count(1):
                version = add_version(course, team, students[0], f"c{number}")
                decide(course, version, VersionState.FAILED)
                with mail_server() as server:
                    sender.stdin.write(f"{server.port} {number}\n{server.port} 1000\n")
                    sender.stdin.flush()
                    status, again = (int(sender.stdout.readline()) for _ in range(2))
                assert again == 0
                ids = {one.message["Message-ID"] for one in server.received}
                assert len(ids) == 2  # each at least once
                assert len(server.received) <= 3
                assert course.outbox.status().waiting == 0
                if status == 0:
                    break
                assert status == SIGKILL
            sender.stdin.close()
    assert number == 5  # two statements for each mail
