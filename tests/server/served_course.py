"""A course with students on a real server, for tests."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx2
from starlette.responses import Response

from tests.server.server_process import Served, served
from tests.support.courses import FAST_PASSWORDS
from tests.support.databases import database_of
from tournaments.course.course import Course
from tournaments.course.model import Account, Role, Version
from tournaments.web.data_directory import DataDirectory
from tournaments.web.http.sessions import Cookie, Cookies

UPLOADS_AT_ONCE = 10
"""Uploads of one account before the server refuses more for a while."""
ANSWER_LIMIT_S = 240.0
"""Bound for one response on a busy machine."""

DECIDED_WITHIN_S = 900.0
"""Bound for checks on a busy machine."""
POLL_S = 0.1


@dataclass
class Student:
    """A student with a team, a browser that is signed in, and a token."""

    account: Account
    team_id: int
    csrf: str
    cookies: dict[str, str]
    token: str
    uploads: int = 0


@dataclass
class ServedCourse:
    """A server, and its database and files."""

    server: Served
    data: Path
    course: Course
    students: list[Student] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Address of the server."""
        return self.server.url

    def student(self) -> Student:
        """Add a student in a new team."""
        number, now = len(self.students) + 1, datetime.now(UTC)
        team = self.course.teams.add(f"Team {number}", now)
        account = self.course.accounts.add(
            f"student-{number}", f"student-{number}", Role.STUDENT, team.id, now
        )
        csrf, cookies = sign_in(self.course, self.data, account)
        token, _ = self.course.tokens.make(account.id, "test", now, None)
        self.students.append(Student(account, team.id, csrf, cookies, token))
        return self.students[-1]

    def uploader(self) -> Student:
        """Return a student who may upload now."""
        if not self.students or self.students[-1].uploads >= UPLOADS_AT_ONCE:
            self.student()
        self.students[-1].uploads += 1
        return self.students[-1]

    def client(self, student: Student) -> httpx2.Client:
        """Return the student's browser."""
        return httpx2.Client(base_url=self.url, cookies=student.cookies, timeout=ANSWER_LIMIT_S)

    def send_form(self, body: bytes, boundary: str, student: Student | None = None) -> httpx2.Response:
        """Send the body of a form with files.  Raises httpx2.HTTPError without a response."""
        student = student or self.uploader()
        headers = {
            "origin": self.url,
            "x-csrf": student.csrf,
            "content-type": f"multipart/form-data; boundary={boundary}",
        }
        with self.client(student) as browser:
            return browser.post("/my/upload", content=body, headers=headers)

    def send(self, content: Any, name: str = "bot.zip", student: Student | None = None) -> httpx2.Response:
        """Upload a file with the API.  Raises httpx2.HTTPError without a response."""
        student = student or self.uploader()
        headers = {"authorization": f"Bearer {student.token}"}
        return httpx2.post(
            f"{self.url}/api/v1/submissions",
            params={"name": name},
            content=content,
            headers=headers,
            timeout=ANSWER_LIMIT_S,
        )

    def decided(self, version_id: int) -> Version:
        """Return a version after its check."""
        deadline = time.monotonic() + DECIDED_WITHIN_S
        while version_id in {version.id for version in self.course.versions.unfinished()}:
            assert time.monotonic() < deadline, f"version {version_id} was not checked"
            time.sleep(POLL_S)
        version = self.course.versions.get(version_id)
        assert version is not None
        return version

    def versions(self) -> list[Version]:
        """Return all versions."""
        return self.course.versions.all(10_000)

    def incoming(self) -> list[str]:
        """Return the names of submissions that are not complete."""
        return [path.name for path in (self.data / "submissions" / "incoming").iterdir()]


def sign_in(course: Course, data: Path, account: Account) -> tuple[str, dict[str, str]]:
    """Return the CSRF token and the cookies of a browser that is signed in."""
    secret, session = course.sessions.start(account.id, datetime.now(UTC))
    response = Response()
    Cookies(DataDirectory(data).key(), secure=False).write(response, Cookie.SESSION, secret)
    sent = SimpleCookie(response.headers["set-cookie"])
    return session.csrf, {name: morsel.value for name, morsel in sent.items()}


@contextmanager
def served_course(data: Path, **settings: Any) -> Iterator[ServedCourse]:
    """Run a server without practice, unless the settings say otherwise."""
    with Course(database_of(data).course(), FAST_PASSWORDS) as course:
        course.settings.change(**{"practice_on": False, "references": []} | settings)
        with served(data) as server:
            yield ServedCourse(server, data, course)


def error_message(page: str) -> str:
    """Return the markup of a page's error message."""
    found = re.search(r'role="alert">(.*?)</p>', page, re.DOTALL) or re.search(
        r"<h1>.*?</h1>\s*<p>(.*?)</p>", page, re.DOTALL
    )
    assert found, page
    return found[1]


def multipart(boundary: str, *parts: tuple[str, bytes, bytes]) -> bytes:
    """Return a form's body; a part is a field, a file's name as it is sent, and its content."""
    made = [
        b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n'
        % (boundary.encode(), name.encode(), file, content)
        for name, file, content in parts
    ]
    return b"".join([*made, b"--%s--\r\n" % boundary.encode()])
