"""A course with students on a real server, a process of its own, for tests of all of it together."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx2
from starlette.responses import Response

from tests.courses import CHEAP
from tests.databases import database_of
from tests.server_process import Served, served
from tournaments.course.course import Course
from tournaments.course.model import Account, Role, Version
from tournaments.web.data_directory import DataDirectory
from tournaments.web.http.sessions import Cookie, Cookies

UPLOADS_AT_ONCE = 10
"""Of one account, before it is told that it uploads often."""
ANSWER_LIMIT_S = 60.0
"""For one answer on a machine that has other things to do."""


@dataclass
class Student:
    """Somebody with a team, a browser that is signed in, and a token."""

    account: Account
    team_id: int
    csrf: str
    cookies: dict[str, str]
    token: str
    uploads: int = 0


@dataclass
class ServedCourse:
    """A server, and the database and the files that it uses."""

    server: Served
    data: Path
    course: Course
    students: list[Student] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it is."""
        return self.server.url

    def student(self) -> Student:
        """Another student, of another team."""
        number, now = len(self.students) + 1, datetime.now(UTC)
        team = self.course.teams.add(f"Team {number}", now)
        account = self.course.accounts.add(
            f"student-{number}", f"student-{number}", Role.STUDENT, team.id, now
        )
        secret, session = self.course.sessions.start(account.id, now)
        answer = Response()
        Cookies(DataDirectory(self.data).key(), secure=False).write(answer, Cookie.SESSION, secret)
        sent = SimpleCookie(answer.headers["set-cookie"])
        cookies = {name: morsel.value for name, morsel in sent.items()}
        token, _ = self.course.tokens.make(account.id, "test", now, None)
        self.students.append(Student(account, team.id, session.csrf, cookies, token))
        return self.students[-1]

    def uploader(self) -> Student:
        """A student who may upload once more without being told to wait."""
        if not self.students or self.students[-1].uploads >= UPLOADS_AT_ONCE:
            self.student()
        self.students[-1].uploads += 1
        return self.students[-1]

    def client(self, student: Student) -> httpx2.Client:
        """The student's browser."""
        return httpx2.Client(base_url=self.url, cookies=student.cookies, timeout=ANSWER_LIMIT_S)

    def send_form(self, body: bytes, boundary: str, student: Student | None = None) -> httpx2.Response:
        """Send what a form with files comes to.  Raises httpx2.HTTPError if there is no answer."""
        student = student or self.uploader()
        headers = {
            "origin": self.url,
            "x-csrf": student.csrf,
            "content-type": f"multipart/form-data; boundary={boundary}",
        }
        with self.client(student) as browser:
            return browser.post("/my/upload", content=body, headers=headers)

    def send(self, content: Any, name: str = "bot.zip", student: Student | None = None) -> httpx2.Response:
        """Send it to the API.  Raises httpx2.HTTPError if there is no answer."""
        student = student or self.uploader()
        headers = {"authorization": f"Bearer {student.token}"}
        return httpx2.post(
            f"{self.url}/api/v1/submissions",
            params={"name": name},
            content=content,
            headers=headers,
            timeout=ANSWER_LIMIT_S,
        )

    def versions(self) -> list[Version]:
        """All that was ever submitted."""
        return self.course.versions.all(10_000)

    def incoming(self) -> list[str]:
        """What was begun to be written below ``submissions``."""
        return [path.name for path in (self.data / "submissions" / "incoming").iterdir()]


@contextmanager
def served_course(data: Path, **settings: Any) -> Iterator[ServedCourse]:
    """A server without practice, unless the settings say otherwise."""
    with Course(database_of(data).course(), CHEAP) as course:
        course.settings.change(**{"practice_on": False, "references": []} | settings)
        with served(data) as server:
            yield ServedCourse(server, data, course)


def complaint(page: str) -> str:
    """The markup of what a page complains about, or of an error's page."""
    found = re.search(r'role="alert">(.*?)</p>', page, re.DOTALL) or re.search(
        r"<h1>.*?</h1>\s*<p>(.*?)</p>", page, re.DOTALL
    )
    assert found, page
    return found[1]


def multipart(boundary: str, *parts: tuple[str, bytes, bytes]) -> bytes:
    """A form's body, byte by byte: parts are a field, a file's name as it is sent, and its content."""
    made = [
        b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n'
        % (boundary.encode(), name.encode(), file, content)
        for name, file, content in parts
    ]
    return b"".join([*made, b"--%s--\r\n" % boundary.encode()])
