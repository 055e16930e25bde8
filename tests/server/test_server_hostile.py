"""Uploads that attack a real server: they are refused with a sentence, and leave nothing."""

import html
import json
import select
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO

import pytest

from tests.bots.zips import Member, make_zip
from tests.server.hostile_uploads import ATTACKS, GOOD, MEBIBYTE
from tests.server.served_course import ServedCourse, error_message, multipart, served_course
from tournaments.bots.upload.limits import UploadLimits

pytestmark = [pytest.mark.attack, pytest.mark.any_database]  # nothing of an attack is stored

EDGE = "edge-of-the-form"
ALLOWED = UploadLimits().upload_bytes
REFUSALS = (400, 408, 413, 422)
RAW_LIMIT_S = 60.0
SLOW_S = 0.05
"""Seconds between two chunks of a body that has no end, once it is too long."""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCourse]:
    with served_course(tmp_path_factory.mktemp("course")) as made:
        yield made
        made.server.assert_ends()


@contextmanager
def nothing_kept(course: ServedCourse) -> Iterator[None]:
    """Check that the block makes no version and leaves no file."""
    versions, contents = len(course.versions()), list((course.data / "submissions").iterdir())
    yield
    assert len(course.versions()) == versions
    assert course.incoming() == []
    assert list((course.data / "submissions").iterdir()) == contents


def by_form(course: ServedCourse, content: bytes, name: str = "bot.zip") -> tuple[int, str, str]:
    """Upload with the form; return status, sentence, and the page's markup."""
    answer = course.send_form(multipart(EDGE, ("file", name.encode(), content)), EDGE)
    return answer.status_code, html.unescape(error_message(answer.text)), answer.text


def by_api(course: ServedCourse, content: bytes, name: str = "bot.zip") -> tuple[int, str, str]:
    answer = course.send(content, name)
    return answer.status_code, answer.json()["error"], ""


# Archives.


@pytest.mark.parametrize("way", [by_form, by_api])
def test_archives_that_attack(
    course: ServedCourse, way: Callable[[ServedCourse, bytes], tuple[int, str, str]]
) -> None:
    with nothing_kept(course):
        for name, (content, words) in ATTACKS.items():
            status, sentence, page = way(course, content)
            assert status == 422, name
            assert words in sentence, name
            assert sentence.isprintable(), name
            assert "<img" not in page


@pytest.mark.parametrize("way", [by_form, by_api])
def test_names_of_uploads_are_shown_as_text(
    course: ServedCourse, way: Callable[[ServedCourse, bytes, str], tuple[int, str, str]]
) -> None:
    with nothing_kept(course):
        status, sentence, page = way(course, b"", "<script>alert(1)</script>.zip")
        assert (status, "<script>alert(1)</script>.zip" in sentence) == (422, True)
        assert "<script>alert" not in page
        status, sentence, _ = way(course, b"", "bot\u202epiz.zip")
        assert (status, "\\u202e" in sentence) == (422, True)


def test_seventy_thousand_files(course: ServedCourse) -> None:
    many = BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(70_000):
            archive.writestr(f"{number}", b"")
    fewer = make_zip(*(Member(f"{number}", b"x") for number in range(65_000)))
    parts = [("folder", b"bot/%d" % number, b"x") for number in range(70_000)]
    with nothing_kept(course):
        assert "ZIP64" in by_api(course, many.getvalue())[1]
        assert "more than 2,000 files" in by_form(course, fewer)[1]
        answer = course.send_form(multipart(EDGE, *parts), EDGE)
        assert answer.status_code == 400
        assert "Too many files. Maximum number of files is 2000" in answer.text


def test_the_largest_upload_and_one_byte_more(course: ServedCourse) -> None:
    most = b"#" * ALLOWED
    with nothing_kept(course):
        assert by_api(course, most + b"#", "bot.py")[:2] == (
            413,
            "An upload may have 20 MiB: leave out what the bot does not need, or compress it.",
        )
        status, sentence, _ = by_form(course, most + b"#", "bot.py")
        assert (status, sentence) == (
            422,
            f'"bot.py" has {ALLOWED + 1:,} bytes, {ALLOWED:,} bytes are allowed; '
            "leave out what the bot does not need.",
        )
        status, sentence, _ = by_form(course, most + b"#" * 3 * MEBIBYTE, "bot.py")
        assert (status, sentence.startswith("This is too large: at most 22 MiB")) == (413, True)
    assert course.send(most, "bot.py").status_code == 201
    form = multipart(EDGE, ("file", b"bot.py", most[:-1] + b"\n"))
    assert course.send_form(form, EDGE).status_code == 303


# Forms

FOLDERS = {
    "up": ([b"bot/../../x"], "leads out of the bot's folder"),
    "absolute": ([b"/etc/passwd"], "is an absolute path"),
    "drive": ([b"C:/x"], "begins with a drive letter"),
    "backslash": ([b"bot/..\\x"], "has a backslash in its name"),
    "control character": ([b"bot/a\x1b[2Jb"], "has a character in its name that does not show"),
    "turned around": (["bot/\u202eyp.exe".encode()], "has a character in its name that does not show"),
    "markup": ([b"bot/<img src=x onerror=alert(1)>"], "has the character < in its name"),
    "a device": ([b"bot/CON"], "stands for a device"),
    "twice": ([b"bot/a", b"bot/a"], '"bot/a" is there twice'),
    "case": ([b"bot/a", b"bot/A"], "differ only in upper and lower"),
    "file and folder": ([b"bot/a", b"bot/a/b"], "is both a file and a folder"),
    "deep": ([b"bot/" + b"a/" * 40 + b"x"], "folders deep"),
    "long": ([b"bot/" + b"x" * 2000], "is a path of"),
    "litter alone": ([b"bot/.git/config"], "holds no file, beside what is passed over"),
}
"""Paths of a folder's files, and a part of the sentence that refuses them."""
FIELD = b'--%s\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n' % EDGE.encode()
FORMS = {
    "two files": (multipart(EDGE, ("file", b"a", b"1"), ("file", b"b", b"2")), EDGE, "Choose one file alone"),
    "no name": (multipart(EDGE, ("file", b"", GOOD)), EDGE, "Choose a zip archive"),
    "no file": (multipart(EDGE), EDGE, "Choose a zip archive"),
    "another field": (multipart(EDGE, ("other", b"bot.zip", GOOD)), EDGE, "Choose a zip archive"),
    "another boundary": (multipart(EDGE, ("file", b"bot.zip", GOOD)), "other", "The form cannot be read"),
    "cut off": (multipart(EDGE, ("file", b"bot.zip", GOOD))[:-40], EDGE, "Choose a zip archive"),
    "nothing": (b"", EDGE, "Choose a zip archive"),
    "long header": (multipart(EDGE, ("file", b"x" * 100_000, GOOD)), EDGE, ""),
    "many fields": (FIELD * 9000 + multipart(EDGE), EDGE, "Too many fields"),
}
"""Body, boundary, and a part of the sentence that refuses them."""


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_attack(course: ServedCourse, name: str) -> None:
    paths, words = FOLDERS[name]
    with nothing_kept(course):
        response = course.send_form(multipart(EDGE, *(("folder", path, b"x") for path in paths)), EDGE)
    sentence = html.unescape(error_message(response.text))
    assert (response.status_code, words in sentence, sentence.isprintable()) == (422, True, True), sentence
    assert "<img" not in response.text


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_are_invalid(course: ServedCourse, name: str) -> None:
    body, boundary, words = FORMS[name]
    with nothing_kept(course):
        response = course.send_form(body, boundary)
    assert response.status_code in REFUSALS
    assert words in html.unescape(error_message(response.text))


def test_a_form_without_a_boundary(course: ServedCourse) -> None:
    student = course.uploader()
    headers = {"origin": course.url, "x-csrf": student.csrf, "content-type": "multipart/form-data"}
    with nothing_kept(course), course.client(student) as browser:
        response = browser.post("/my/upload", content=GOOD, headers=headers)
    assert response.status_code == 400
    assert error_message(response.text) == "The form cannot be read: Missing boundary in multipart."


# Requests


def raw(course: ServedCourse, *headers: str, body: bytes = b"", half_close: bool = False) -> bytes:
    """Send a raw request to the API; return the response until the connection ends."""
    head = [
        "POST /api/v1/submissions?name=bot.zip HTTP/1.1",
        f"Host: 127.0.0.1:{course.server.port}",
        f"Authorization: Bearer {course.uploader().token}",
        "Connection: close",
        *headers,
    ]
    answered = b""
    with course.server.connect() as connection:
        connection.settimeout(RAW_LIMIT_S)
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        try:
            while piece := connection.recv(65_536):
                answered += piece
        except ConnectionResetError:
            pass
    return answered


def test_lengths_that_lie(course: ServedCourse) -> None:
    with nothing_kept(course):
        answer = raw(course, "Content-Length: 99999", body=GOOD, half_close=True)
        assert answer.startswith(b"HTTP/1.1 400")
        answer = raw(course, f"Content-Length: {len(GOOD) - 9}", body=GOOD)
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 422")), answer
        for lie in ("-1", "1e3", "99999999999999999999999", "7, 8"):
            answer = raw(course, f"Content-Length: {lie}", body=GOOD)
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")), (lie, answer)
        answer = raw(course, "Content-Length: 7", "Content-Length: 8", body=GOOD)
        assert answer.startswith(b"HTTP/1.1 400"), answer
        answer = raw(course, "Transfer-Encoding: chunked", body=b"zz\r\n" + GOOD)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert course.server.process.poll() is None


def test_a_body_without_an_end(course: ServedCourse) -> None:
    head = (
        f"POST /api/v1/submissions?name=bot.zip HTTP/1.1\r\nHost: 127.0.0.1:{course.server.port}\r\n"
        f"Authorization: Bearer {course.uploader().token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    answered, waiting, sent, is_open = b"", head.encode(), 0, True
    with nothing_kept(course), course.server.connect() as connection:
        while is_open:
            # Beyond what is allowed, the body is a slow one: for a minute, the server reads what comes.
            pause_s = 0.0 if sent < 2 * ALLOWED else SLOW_S
            is_readable = bool(select.select([connection], [], [], pause_s)[0])
            try:
                if is_readable:
                    piece = connection.recv(65_536)
                    answered, is_open = answered + piece, bool(piece)
                elif select.select([], [connection], [], RAW_LIMIT_S)[1]:
                    count = connection.send(waiting)
                    sent, waiting = sent + count, waiting[count:] or chunk
            except (BrokenPipeError, ConnectionResetError):
                is_open = bool(select.select([connection], [], [], 0)[0]) and not answered
    assert answered.startswith(b"HTTP/1.1 413")
    assert json.loads(answered.partition(b"\r\n\r\n")[2])["error"].startswith("An upload may have 20 MiB")
