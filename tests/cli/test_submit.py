"""`kalarena submit`, `challenge` and `connect`, with servers of any answers, and `submit` to a real one."""

import http.client
import io
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio
from click.testing import Result

from sample_bots.starters_catalog import STARTERS, starter_directory
from tests.server.harness import GAME, lasting_command
from tests.server.served_course import ServedCourse, Student, served_course
from tests.support.builders import KALARENA, invoke, kalarena, one_object, run_command
from tests.support.ordinary_user import as_ordinary_user
from tests.support.processes import command_lines_with
from tournaments.bots.upload.archive import read_upload
from tournaments.cli.remote import api_client, home_bot
from tournaments.cli.remote import connect as connect_module
from tournaments.cli.remote.api_client import Client, Package, SubmitError, pack
from tournaments.cli.remote.websocket import ConnectionLostError, RefusedError
from tournaments.course.model import VersionState

pytestmark = pytest.mark.any_database

Answer = tuple[int, dict[str, str], bytes]
TOKEN = "kal_" + "a" * 40


class Server:
    """A server with given answers, which records its requests."""

    def __init__(self, respond: Callable[[str, str, bytes], Answer]) -> None:
        asked = self.asked = list[tuple[str, str, str, bytes]]()

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.append((self.command, self.path, self.headers.get("Authorization", ""), body))
                status, headers, content = respond(self.command, self.path, body)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = _answer  # noqa: N815

            def log_message(self, *_arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Serve = Callable[[Callable[[str, str, bytes], Answer]], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(respond: Callable[[str, str, bytes], Answer]) -> Server:
        servers.append(Server(respond))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def as_json(status: int, value: object) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def names_in(content: bytes) -> dict[str, int]:
    """Path -> permissions."""
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        return {entry.filename: (entry.external_attr >> 16) & 0o777 for entry in zipped.infolist()}


# Packing.


@pytest.mark.parametrize("language", STARTERS)
def test_the_server_reads_what_was_packed(language: str) -> None:
    folder = starter_directory(language)
    package = pack(folder)
    upload = read_upload(package.name, io.BytesIO(package.content))
    for file in upload.files:
        assert file.content == (folder / file.path).read_bytes()
        assert file.executable == os.access(folder / file.path, os.X_OK)
    assert {file.path for file in upload.files} >= set(STARTERS[language].files) - {"__init__.py"}


def test_the_same_folder_makes_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("print()\n")
    first = pack(tmp_path).content
    os.utime(tmp_path / "bot.py", (1e9, 1e9))
    assert pack(tmp_path).content == first


def test_files_that_are_no_part_of_the_bot_are_left_out(tmp_path: Path) -> None:
    bot = tmp_path / "mine"
    (bot / "src").mkdir(parents=True)
    (bot / ".git").mkdir()
    (bot / ".git" / "config").write_text("x")
    (bot / "src" / "Bot.java").write_text("class Bot {}")
    (bot / "Bot.class").write_bytes(b"\xca\xfe\xba\xbe")
    (bot / "run.sh").write_text("#!/bin/sh\n")
    (bot / "run.sh").chmod(0o755)
    (bot / "bot.toml").write_text(
        'command = ["java", "Bot"]\nbuild = "javac src/Bot.java"\nmade = ["Bot.class"]\n'
    )
    package = pack(bot)
    assert package.name == "mine.zip"
    assert names_in(package.content) == {"bot.toml": 0o644, "run.sh": 0o755, "src/Bot.java": 0o644}
    assert set(package.left_out) == {".git", "Bot.class"}


def test_a_file_is_sent_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_bytes(b"print()\r\n")
    package = pack(tmp_path / "bot.py")
    assert (package.name, package.content) == ("bot.py", b"print()\r\n")


def test_folders_that_cannot_be_packed(tmp_path: Path) -> None:
    def refused(why: str, path: Path = tmp_path, most_bytes: int = api_client.MOST_BYTES) -> None:
        with pytest.raises(SubmitError, match=why):
            pack(path, most_bytes)

    refused("nowhere: there is no such folder or file; name the folder", tmp_path / "nowhere")
    refused("holds nothing to submit")
    (tmp_path / "bot.toml").write_text("command = 5\n")
    refused(r"bot\.toml")
    (tmp_path / "bot.toml").unlink()
    os.mkfifo(tmp_path / "pipe")
    refused(r"pipe is no file .*: remove it")
    (tmp_path / "pipe").unlink()
    (tmp_path / "large").write_bytes(b"12345")
    too_large = "more than 4 bytes, counted up to large: is it the folder of a bot"
    refused(too_large, most_bytes=4)


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    bot = tmp_path / "bot"
    bot.mkdir()
    (bot / "bot.py").write_text("print()\n")
    (tmp_path / "shared").mkdir()
    (bot / "__pycache__").symlink_to(tmp_path / "shared")  # no part of the bot
    pack(bot)
    (bot / "env" / "lib").mkdir(parents=True)
    (bot / "env" / "lib" / "module.py").write_text("")
    (bot / "env" / "pyvenv.cfg").write_text("")
    (bot / "env" / "lib64").symlink_to("lib")
    (bot / "node_modules" / ".bin").mkdir(parents=True)
    (bot / "node_modules" / ".bin" / "tsc").symlink_to("nowhere")
    package = pack(bot)
    assert set(names_in(package.content)) == {"bot.py", "env/lib/module.py", "env/pyvenv.cfg"}
    assert set(package.left_out) == {"__pycache__", "env/lib64", "node_modules/.bin"}
    (bot / "lib").symlink_to(tmp_path / "shared")
    with pytest.raises(SubmitError, match=r"bot/lib is a link to a folder.*: put the folder itself there"):
        pack(bot)


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "mode"), [("bot/data", 0o000), ("bot/data", 0o600), ("bot", 0o600)])
def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, closed: str, mode: int) -> None:
    (tmp_path / "bot" / "data").mkdir(parents=True)
    (tmp_path / "bot" / "data" / "weights").write_text("1")
    (tmp_path / "bot" / "bot.py").write_text("print()\n")
    given = [KALARENA, "submit", tmp_path / "bot", "--server", "http://localhost:9", "--token", TOKEN]
    command = as_ordinary_user([str(word) for word in given], [tmp_path])
    (tmp_path / closed).chmod(mode)
    done = run_command(command, tmp_path)
    (tmp_path / closed).chmod(0o755)
    assert done.returncode == 2
    assert "cannot be read: Permission denied: make it readable" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that cannot be read, as on Linux")
def test_a_file_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(SubmitError, match=r"/proc/self/mem cannot be read: .+: make it readable"):
        pack(Path("/proc/self/mem"))


# Requests.


@pytest.mark.parametrize(
    ("server", "token", "words"),
    [
        ("ftp://there", TOKEN, "is no address of a server, such as https://"),
        ("http://", TOKEN, "is no address"),
        ("https://[::1", TOKEN, "is no address"),
        ("https://bots..example.org", TOKEN, "is no address"),
        ("http://there:80a", TOKEN, "is no address"),
        ("http://there:99999", TOKEN, "is no address"),
        ("http://there/\udcfc", TOKEN, "is no address"),
        ("https://gie\u00dfen.invalid", TOKEN, "give the server's name in ASCII"),
        ("http://there", "", "the token is empty"),
        ("http://there", "kal_\n", "the token is empty, or has characters"),
        ("http://there", "kal_é", "has characters that none has"),
    ],
)
def test_invalid_addresses_and_tokens(server: str, token: str, words: str) -> None:
    with pytest.raises(SubmitError, match=words):
        Client(server, token)


@pytest.mark.parametrize(
    ("server", "base"),
    [
        ("https://b\u0142d.invalid/K\u00fcrse/", "https://xn--bd-xqa.invalid/K%C3%BCrse"),
        ("https://bu\u0308cher.invalid", "https://xn--bcher-kva.invalid"),
        ("https://XN--gieen-nqa.invalid", "https://xn--gieen-nqa.invalid"),
        ("http://[::1]:80/K%C3%BCrse", "http://[::1]:80/K%C3%BCrse"),
    ],
)
def test_addresses_are_sent_in_ascii(server: str, base: str) -> None:
    assert Client(server, TOKEN).base == base


def test_a_bot_with_an_invalid_address_is_not_connected() -> None:
    done = invoke("connect", "first_legal", "--server", "http://there:99999", "--token", TOKEN)
    assert done.exit_code == 2
    assert "is no address of a server" in done.stderr


@pytest.mark.parametrize("name", [b"L\xf6sung", b"L\xf6sung/bot.py", b"bot/L\xf6sung.txt"])
def test_names_that_are_not_utf_8_are_refused(tmp_path: Path, name: bytes) -> None:
    file = tmp_path / os.fsdecode(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text("x")
    words = r"L\\udcf6sung.*': this name is not UTF-8, and cannot be sent: rename it"
    with pytest.raises(SubmitError, match=words):
        pack(tmp_path / file.relative_to(tmp_path).parts[0])


def test_the_names_of_the_folders_above_do_not_matter(tmp_path: Path) -> None:
    bot = tmp_path / os.fsdecode(b"L\xf6sungen") / "bot"
    bot.mkdir(parents=True)
    (bot / "bot.py").write_text("x")
    assert pack(bot).name == "bot.zip"


def test_an_upload_has_the_token_and_a_quoted_name(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda *_: as_json(201, {"version": {"id": 7}}))
    file = tmp_path / "a b&c=é.py"
    file.write_bytes(b"x")
    assert Client(server.address + "/", TOKEN).submit(pack(file)) == {"version": {"id": 7}}
    assert server.asked == [("POST", "/api/v1/submissions?name=a+b%26c%3D%C3%A9.py", f"Bearer {TOKEN}", b"x")]


def test_an_upload_has_the_time_limit_for_each_block(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[int]()
    send = http.client.HTTPConnection.send

    def recording_send(self: http.client.HTTPConnection, data: bytes) -> None:
        sent.append(len(data))
        send(self, data)

    monkeypatch.setattr(http.client.HTTPConnection, "send", recording_send)
    server = serve(lambda *_: as_json(201, {}))
    content = os.urandom(1 << 20)
    Client(server.address, TOKEN).submit(Package("bot.zip", content, ()))
    assert [body for *_, body in server.asked] == [content]
    assert max(sent) <= 64 << 10  # a socket's time limit counts for one of these


def test_an_upload_that_the_server_cuts_off(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cut_off() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)  # what is left unread makes the end a reset

        thread = threading.Thread(target=cut_off)
        thread.start()
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}", TOKEN)
        with pytest.raises(SubmitError, match="ended the transfer: is the upload too large") as refused:
            client.submit(Package("bot.zip", bytes(32 << 20), ()))
        thread.join()
    assert refused.value.is_ours


@pytest.mark.parametrize(
    ("answer", "words", "is_ours"),
    [
        (as_json(422, {"error": "bot.zip is empty"}), "^bot.zip is empty$", False),
        (as_json(503, {"error": "not now"}), "^not now$", True),
        (as_json(500, {"oops": 1}), "status 500, and not like a kalarena server", True),
        ((404, {}, b"<html>"), "status 404, and not like a kalarena server", False),
        ((200, {}, b"<html>"), "does not answer like a kalarena server", False),
        ((200, {}, b"[]"), "does not answer like a kalarena server", False),
        ((302, {"Location": "http://elsewhere/"}, b""), "has moved to http://elsewhere/: give that", False),
        ((200, {"Content-Length": "50"}, b"{"), "did not answer", True),
        ((502, {"Transfer-Encoding": "chunked"}, b"5\r\nab"), "did not answer: it broke off in", True),
    ],
)
def test_invalid_answers(serve: Serve, answer: Answer, words: str, is_ours: bool) -> None:
    server = serve(lambda *_: answer)
    with pytest.raises(SubmitError, match=words) as raised:
        Client(server.address, TOKEN).version(1)
    assert raised.value.is_ours is is_ours


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (urllib.error.URLError(TimeoutError()), "cannot be reached: no answer within [0-9]+ s$"),
        (TimeoutError(), "did not answer: no answer within [0-9]+ s$"),
        (http.client.BadStatusLine("SSH-2.0"), "did not answer: SSH-2.0$"),
        (http.client.CannotSendRequest(), "did not answer: CannotSendRequest$"),
    ],
)
def test_a_server_without_an_answer(monkeypatch: pytest.MonkeyPatch, error: Exception, words: str) -> None:
    def fail(*_arguments: object, **_options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", fail)
    with pytest.raises(SubmitError, match=words) as raised:
        Client("https://kalah.invalid", TOKEN).version(1)
    assert raised.value.is_ours


def test_the_token_goes_nowhere_else(serve: Serve) -> None:
    other = serve(lambda *_: as_json(200, {}))
    server = serve(lambda *_: (307, {"Location": other.address + "/take-it"}, b""))
    with pytest.raises(SubmitError, match="has moved"):
        Client(server.address, TOKEN).version(1)
    assert other.asked == []


def test_a_log_is_followed_through_a_restart_until_the_server_stays_away(serve: Serve) -> None:
    away = as_json(503, {"error": "gone for good"})
    answers = iter(
        [
            as_json(200, {"lines": ["one", "two"], "next": 2, "is_over": False}),
            away,
            as_json(200, {"lines": [], "next": 1, "is_over": False}),  # begun again
            as_json(200, {"lines": ["one"], "next": 1, "is_over": False}),
            as_json(200, {"lines": [], "next": 1, "is_over": False}),
            as_json(200, {"lines": ["three"], "next": 2, "is_over": True}),
        ]
    )
    server = serve(lambda *_: next(answers, away))
    client, lines, waits = Client(server.address, TOKEN), list[str](), list[float]()
    client.follow(3, lines.append, waits.append)
    assert lines == ["one", "two", "one", "three"]
    assert waits == [api_client.POLL_S] * 2
    assert [path.rpartition("=")[2] for _, path, _, _ in server.asked] == ["0", "2", "2", "0", "1", "1"]
    with pytest.raises(SubmitError, match="gone for good"):
        client.follow(3, lines.append, waits.append)
    assert len(waits) == 2 + api_client.POLLS_LOST


PASSING = [
    as_json(429, {"error": "The API was asked too often."}),
    (404, {}, b"<html>a proxy's"),
    (200, {}, b"<html>back in a minute"),
    as_json(503, {"error": "not now"}),
]


@pytest.mark.parametrize("failure", PASSING)
def test_a_failure_that_passes_does_not_end_a_command(
    serve: Serve, bot: Path, monkeypatch: pytest.MonkeyPatch, failure: Answer
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    failures = [failure] * 3

    def respond(method: str, path: str, body: bytes) -> Answer:
        if method == "GET" and failures:
            return failures.pop()
        if "challenges" in path:
            return as_json(200, {"challenge": {**CHALLENGE, "is_over": method == "GET"}})
        return responder("qualified", current=True)(method, path, body)

    server = serve(respond)
    done = challenge(server, "other")
    assert (done.exit_code, failures) == (0, [])
    assert done.stdout.endswith("finished: 2 won, 0 drawn, 0 lost\n")
    failures += [failure] * 3
    assert (submit(bot, server.address).exit_code, failures) == (0, [])


@pytest.mark.parametrize("failure", [*PASSING, as_json(401, {"error": "This token is not valid."})])
def test_a_failure_after_the_acceptance_is_none_of_the_upload(
    serve: Serve, bot: Path, monkeypatch: pytest.MonkeyPatch, failure: Answer
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    server = serve(lambda method, *rest: failure if method == "GET" else responder("queued")(method, *rest))
    done = submit(bot, server.address)
    assert done.exit_code == 3, done.stderr
    assert "was accepted as version 2" in done.stdout


# The command.


def version(state: str, *, current: bool = False) -> dict[str, object]:
    return {"id": 7, "number": 2, "state": state, "current": current, "page": "/my/versions/7"}


def responder(
    state: str, report: object = None, *, current: bool = False
) -> Callable[[str, str, bytes], Answer]:
    def respond(method: str, path: str, _body: bytes) -> Answer:
        if method == "POST":
            return as_json(201, {"version": version("queued"), "new": True, "passed_over": ["x.tmp"]})
        if "/log" in path:
            lines = ["a line \x1b[31m"] if path.endswith("after=0") else []
            return as_json(200, {"lines": lines, "next": 1, "is_over": not lines})
        return as_json(200, {"version": version(state, current=current), "report": report})

    return respond


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text("print()\n")
    return tmp_path


def submit(bot: Path, server: str, *options: str) -> Result:
    return invoke("submit", bot, "--server", server, "--token", TOKEN, *options)


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("qualified", 0, "version 2 qualified, and is the one that plays now"),
        ("qualified again", 0, "version 2 qualified; a newer one plays"),
        ("failed", 1, "version 2 did not qualify"),
        ("stuck", 3, "could not be checked, which is the server's fault"),
    ],
)
def test_the_command(serve: Serve, bot: Path, state: str, status: int, words: str) -> None:
    report = {"items": [{"status": "failed", "sentence": "it is \x1b[1m late", "advice": "be quick"}]}
    server = serve(responder(state.split()[0], report, current=state == "qualified"))
    done = submit(bot, server.address)
    assert done.exit_code == status
    assert f"was accepted as version 2: {server.address}/my/versions/7" in done.stdout
    assert "left out, as no part of the bot or made by its build: x.tmp" in done.stdout
    assert words in done.stdout + done.stderr
    assert ("failed: it is" in done.stdout) is (state == "failed")
    assert "\x1b" not in done.stdout  # a bot's lines cannot write on the terminal


def test_the_command_in_json_and_without_waiting(serve: Serve, bot: Path) -> None:
    server = serve(responder("qualified"))
    found = json.loads(submit(bot, server.address, "--json").stdout)
    assert (found["version"]["state"], found["new"], found["report"]) == ("qualified", True, None)
    found = json.loads(submit(bot, server.address, "--json", "--no-wait").stdout)
    assert found["version"]["state"] == "queued"


def test_messages_of_the_command(serve: Serve, bot: Path) -> None:
    other = serve(lambda *_: as_json(201, {"version": 5}))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for folder, server, status, words in (
            (bot / "x", nobody, 2, "there is no such folder"),
            (bot, nobody, 3, "cannot be reached: Connection refused"),
            (bot, other.address, 3, "does not answer like a kalarena server of this version"),
        ):
            done = submit(folder, server)
            assert (done.exit_code, done.stdout) == (status, "")
            assert words in done.stderr


@pytest.mark.parametrize(
    ("server", "warned"),
    [
        ("http://kalah.invalid", True),
        ("http://kalah.invalid:8000/course", True),
        ("HTTP://192.0.2.1", True),
        ("https://kalah.invalid", False),
        ("kalah.invalid", False),
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
        ("http://localhost:1", False),
    ],
)
def test_a_warning_of_a_token_that_others_can_read(
    bot: Path, monkeypatch: pytest.MonkeyPatch, server: str, warned: bool
) -> None:
    def away(*_arguments: object) -> NoReturn:
        raise SubmitError("it is not there", is_ours=True)

    monkeypatch.setattr(Client, "submit", away)
    done = submit(bot, server, "--json")
    assert ("the token travels unencrypted" in done.stderr) is warned
    assert (done.exit_code, done.stdout) == (3, "")


# A real server.


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCourse]:
    folder = tmp_path_factory.mktemp("course")
    with served_course(folder, game=GAME, move_s=10.0, sandbox_mode="off") as made:
        yield made


def upload(course: ServedCourse, student: Student, bot: Path, *options: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    known = {"KALARENA_SERVER": course.url, "KALARENA_TOKEN": student.token}
    done = kalarena(bot.parent, "submit", bot, *options, **known)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_from_the_folder_to_the_verdict(course: ServedCourse, tmp_path: Path) -> None:
    student, kit = course.student(), starter_directory("python")
    status, told, errors = upload(course, student, kit)
    (version,) = course.course.versions.of_team(student.team_id)
    assert (status, errors) == (0, ""), told
    assert f"was accepted as version 1: {course.url}/my/versions/{version.id}\n" in told
    assert "Plays as South" in told  # the check's log
    assert told.endswith("version 1 qualified, and is the one that plays now\n")
    assert version.state is VersionState.QUALIFIED
    # The same folder again is the same version.
    status, told, _ = upload(course, student, kit, "--json")
    found = one_object(told)
    assert (status, found["new"]) == (0, False)
    assert (found["version"]["current"], found["report"]["ok"]) == (True, True)

    bot = tmp_path / "broken"
    bot.mkdir()
    (bot / "bot.py").write_text("raise SystemExit('no idea')\n")
    status, told, _ = upload(course, student, bot)
    assert status == 1
    assert "failed: " in told
    assert "no idea" in told
    assert told.endswith("version 2 did not qualify; the one before it, if any, plays on\n")
    status, told, _ = upload(course, student, bot, "--json", "--no-wait")
    assert (status, one_object(told)["version"]["number"]) == (0, 2)
    assert course.course.versions.current()[student.team_id].number == 1


@pytest.mark.slow
def test_refused_uploads(course: ServedCourse, tmp_path: Path) -> None:
    student = course.student()
    wrong = tmp_path / "bot.zip"
    wrong.write_bytes(b"PK\3\4")
    status, told, errors = upload(course, student, wrong)
    assert (status, told) == (2, "")
    assert '"bot.zip": the archive is cut off or damaged' in errors
    (tmp_path / "bot.py").write_text("print()\n")
    course.course.settings.change(uploads_open=False)
    try:
        assert upload(course, student, tmp_path / "bot.py") == (2, "", "Error: Uploads are closed.\n")
    finally:
        course.course.settings.change(uploads_open=True)
    (token,) = course.course.tokens.of(student.account.id)
    course.course.tokens.revoke(token.id, student.account.id)
    status, told, errors = upload(course, student, tmp_path / "bot.py", "--json")
    assert (status, told) == (2, "")
    assert "This token is not valid (any more): make one on your account's page." in errors
    assert course.course.versions.of_team(student.team_id) == []


CHALLENGE = {
    "id": 3,
    "bot": "mine",
    "opponent": "other",
    "page": "/c/3",
    "state": "finished",
    "message": "",
    "wins": 2,
    "draws": 0,
    "losses": 0,
    "is_over": True,
    "results": [],
}


def challenge(server: Server, *arguments: str) -> Result:
    return invoke("challenge", *arguments, "--server", server.address, "--token", TOKEN)


def test_the_bots_that_can_be_challenged(serve: Serve) -> None:
    found = {"opponents": [{"name": "ladder:3"}, {"name": "Team \x1b[31m 1"}]}
    server = serve(lambda *_: as_json(200, found))
    assert challenge(server).stdout == "ladder:3\nTeam \\x1b[31m 1\n"
    assert one_object(challenge(server, "--json").stdout) == found
    assert {path for _, path, _, _ in server.asked} == {"/api/v1/opponents"}


def test_a_challenge_that_was_not_played_to_its_end(serve: Serve) -> None:
    game = {"outcome": "lost", "detail": "it was \x1b late", "page": "/g/1"}
    ended = {
        "state": "failed",
        "message": "The bot \x1b has left.",
        "losses": 1,
        "wins": 0,
        "results": [game],
    }
    server = serve(lambda *_: as_json(201, {"challenge": {**CHALLENGE, **ended}}))
    done = challenge(server, "other", "--pairs", "2", "--bot", "home")
    assert (done.exit_code, done.stderr) == (1, "The bot \\x1b has left.\n")
    assert done.stdout.splitlines() == [
        f"challenge 3: mine against other: {server.address}/c/3",
        f"  lost: it was \\x1b late: {server.address}/g/1",
        "failed: 0 won, 0 drawn, 1 lost",
    ]
    assert json.loads(server.asked[0][3]) == {"opponent": "other", "pairs": 2, "bot": "home"}
    done = challenge(server, "other", "--json")
    assert (done.exit_code, done.stderr) == (1, "")
    assert one_object(done.stdout)["challenge"]["message"] == ended["message"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_challenge_that_is_not_waited_for(serve: Serve, options: tuple[str, ...]) -> None:
    server = serve(lambda *_: as_json(201, {"challenge": {**CHALLENGE, "state": "queued", "is_over": False}}))
    done = challenge(server, "other", "--no-wait", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    if options:
        assert one_object(done.stdout)["challenge"]["state"] == "queued"
    else:
        assert done.stdout == f"challenge 3: mine against other: {server.address}/c/3\n"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (as_json(201, {"challenge": {"id": 3}}), 3, "does not answer like a kalarena server of this version"),
        (as_json(201, {"challenge": None}), 3, "does not answer like a kalarena server of this version"),
        (as_json(422, {"error": "There is no bot other."}), 2, "Error: There is no bot other."),
        (as_json(503, {"error": "not now"}), 3, "Error: not now"),
    ],
)
def test_a_challenge_that_is_not_accepted(serve: Serve, answer: Answer, status: int, words: str) -> None:
    done = challenge(serve(lambda *_: answer), "other")
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


def test_a_challenge_has_a_pair_at_least() -> None:
    server = ("--server", "http://127.0.0.1:1", "--token", "kal_x")
    result = invoke("challenge", "ladder:3", "--pairs", "0", *server)
    assert result.exit_code == 2
    assert "Invalid value for '--pairs'" in result.stderr


def test_a_memory_limit_that_is_too_low_is_refused_before_connecting() -> None:
    server = ("--server", "http://127.0.0.1:1", "--token", "kal_x")
    result = invoke("connect", "first_legal", "--memory-mb", "1", *server)
    assert result.exit_code == 2
    assert "Invalid value for '--memory-mb': 1 is not in the range x>=16" in result.stderr


# A remote bot.


class Socket:
    """A connection whose server sends given messages."""

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        """Messages, errors to be raised, and conditions on what was sent that are waited for."""
        self.sent: list[dict[str, Any]] = []
        self._next_send: trio.Event | None = None
        self.is_broken = False
        self.unsent = 0
        """Messages that were not sent, because the connection is broken."""

    async def send(self, text: str) -> None:
        await trio.lowlevel.checkpoint()
        if self._next_send is not None:
            self._next_send.set()
        if self.is_broken:
            self.unsent += 1
            raise ConnectionLostError("it broke off")
        self.sent.append(json.loads(text))

    async def receive(self) -> str:
        if self._script and isinstance(self._script[0], str):
            await trio.lowlevel.cancel_shielded_checkpoint()  # it is there: nobody was silent
        else:
            await trio.lowlevel.checkpoint()
        while self._script:
            item = self._script.pop(0)
            if isinstance(item, Exception):
                raise item
            if isinstance(item, str):
                return item
            assert callable(item)
            while not item(self):
                self._next_send = trio.Event()
                await self._next_send.wait()
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    @property
    def lines(self) -> list[str]:
        """Lines of the bot, with its forfeits."""
        return [message.get("line") or message["why"] for message in self.sent if "key" in message]


def forfeited(socket: Socket) -> bool:
    return any(message["type"] == "forfeit" for message in socket.sent)


WELCOME = json.dumps({"type": "welcome", "game": "kalah(2,2)"})
REPLACED = ConnectionLostError("another one has the name", 4001)
LOST = ConnectionLostError("it broke off")


def game_message(game: str = "kalah(2,2)", *, moves_first: bool = True) -> str:
    return json.dumps(
        {
            "type": "game",
            "key": "c3-1",
            "game": game,
            "moves_first": moves_first,
            "opponent": "ladder:3",
            "control": {"move_s": 2.0},
            "opening": "",
        }
    )


Connect = Callable[..., Result]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Run `kalarena connect` with a bot on these connections; an error is one that is not made."""

    def run(*connections: Socket | Exception, bot: str = "first_legal") -> Result:
        remaining = list(connections)

        @asynccontextmanager
        async def open_websocket(*_arguments: str) -> AsyncIterator[Socket]:
            found = remaining.pop(0)
            if isinstance(found, Exception):
                raise found
            yield found

        monkeypatch.setattr(connect_module, "open_websocket", open_websocket)
        monkeypatch.setattr(connect_module, "FIRST_WAIT_S", 0.0)
        server = ("--server", "https://kalah.invalid", "--token", TOKEN)
        done = invoke("connect", bot, "--name", "home", "--sandbox", "off", *server)
        assert remaining == []
        return done

    return run


@pytest.mark.parametrize(
    ("connection", "status", "words"),
    [
        (LOST, 3, "Error: https://kalah.invalid cannot be reached: it broke off\n"),
        (RefusedError(503, "not now"), 3, "Error: https://kalah.invalid cannot be reached: not now\n"),
        (RefusedError(429, "too often"), 3, "Error: https://kalah.invalid cannot be reached: too often\n"),
        (RefusedError(401, "This token is not valid."), 2, "Error: This token is not valid.\n"),
        (Socket(WELCOME, REPLACED), 1, "Error: ended: another one has the name\n"),
    ],
)
def test_connections_that_are_not_made_again(
    connect: Connect, connection: Socket | Exception, status: int, words: str
) -> None:
    done = connect(connection)
    assert (done.exit_code, done.stderr) == (status, words)


@pytest.mark.parametrize("message", ["no JSON", "{}", "[]", '{"type": "welcome"}', '{"type": "game"}'])
def test_messages_of_another_kind_of_server(connect: Connect, message: str) -> None:
    done = connect(Socket(message))
    assert done.exit_code == 3
    assert "https://kalah.invalid does not answer like a kalarena server of this version" in done.stderr


def test_a_lost_connection_is_made_again(connect: Connect) -> None:
    done = connect(Socket(WELCOME, LOST), RefusedError(503, "not now"), Socket(WELCOME, REPLACED))
    assert done.exit_code == 1
    head = "home is connected to https://kalah.invalid"
    assert done.stdout.splitlines() == [
        f"{head} as a remote bot. Ctrl-C ends it.",
        f"{head} again as a remote bot. Ctrl-C ends it.",
    ]
    assert done.stderr.splitlines()[:-1] == [
        "the connection was lost (it broke off): trying again in 0 s",
        "the connection was lost (not now): trying again in 0 s",
    ]


def test_after_many_failures_no_further_connection_is_made(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_module, "TRIES", 2)
    done = connect(Socket(WELCOME, LOST), LOST, LOST)
    assert done.exit_code == 3
    assert done.stderr.endswith("Error: https://kalah.invalid cannot be reached: it broke off\n")


def test_a_silent_server_is_lost(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_module, "SILENCE_S", 0.01)
    done = connect(Socket(WELCOME), RefusedError(401, "gone"))
    assert done.exit_code == 2
    assert "the connection was lost (the server was silent for 0.01 s)" in done.stderr


def test_the_connection_is_kept_alive(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_module, "ALIVE_S", 0.001)

    def is_kept(socket: Socket) -> bool:
        socket.is_broken = len(socket.sent) > 2
        return socket.unsent > 0

    socket = Socket(WELCOME, is_kept, REPLACED)
    assert connect(socket).exit_code == 1
    assert socket.sent[:3] == [{"type": "hello", "capabilities": ["openings"]}, *[{"type": "alive"}] * 2]


def test_a_game_that_the_bot_cannot_play_is_forfeited(connect: Connect) -> None:
    welcome = json.dumps({"type": "welcome", "game": "chess"})
    socket = Socket(welcome, game_message("chess"), forfeited, REPLACED)
    done = connect(socket)
    assert socket.lines == ["the remote bot could not be started"]
    assert "the bot cannot play as it is: no game 'chess'" in done.stderr
    assert "the bot could not be started: no game 'chess'" in done.stderr


def built_bot(folder: Path, build: str, program: str) -> str:
    """Write a bot that is built from bot.c by a shell command; return its path."""
    folder.mkdir()
    (folder / "bot.c").write_text(program)
    (folder / "bot.toml").write_text(
        f"command = ['python3', 'bot.py']\nbuild = ['sh', '-c', {json.dumps(build)}]\nmade = ['bot.py']\n"
    )
    return str(folder)


def test_a_lost_connection_is_made_again_during_a_build(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_module, "ALIVE_S", 0.001)
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    folder = tmp_path / "mybot"
    bot = built_bot(
        folder,
        "mkdir building && echo build >> builds && read go < ../go && cp bot.c bot.py && rmdir building",
        HOME_BOTS["speaks"][0],
    )

    def is_building(_: Socket) -> bool:
        return (folder / "building").exists()

    def release(_: Socket) -> bool:
        assert is_building(again)
        return os.write(go, b"go\n") > 0

    again = Socket(
        WELCOME,
        game_message(),
        release,
        json.dumps({"type": "line", "key": "c3-1", "line": "START;South"}),
        lambda socket: bool(socket.lines),
        REPLACED,
    )
    done = connect(Socket(WELCOME, is_building, LOST), again, bot=bot)
    os.close(go)
    assert (again.lines, (folder / "builds").read_text()) == (["START;South"], "build\n")
    assert "could not be" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_build(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(connect_module, "ALIVE_S", 0.001)
    compiler = lasting_command(6)

    def is_compiling(_: Socket) -> bool:
        return len(command_lines_with(compiler)) == 3  # with the shell's

    def end(_: Socket) -> bool:
        os.kill(os.getpid(), number)
        return True

    bot = built_bot(tmp_path / "mybot", f"{compiler} & {compiler}; true", "")
    done = connect(Socket(WELCOME, is_compiling, end), bot=bot)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (130, "disconnected")
    assert done.stderr == "", "the build was not waited for, until its time limit"
    assert command_lines_with(compiler) == []


HOME_BOTS = {
    "speaks": ("print(input(), flush=True); input()", "START;South", ""),
    "long line": ("print('x' * 100_000, flush=True); input()", "x" * 50, ""),
    "exits": ("import sys; sys.exit('no idea')", "the remote bot ended with exit status 1", "no idea"),
    "is killed": (
        "import os; os.kill(os.getpid(), 9)",
        "the remote bot was ended by signal 9",
        "",
    ),
    "closes": ("import os; os.close(1); input(); input()", "the remote bot closed its output", ""),
}


@pytest.mark.parametrize("name", HOME_BOTS)
def test_a_bot_at_home_in_a_game(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program, answer, words = HOME_BOTS[name]
    monkeypatch.setattr(home_bot, "STATUS_S", 5.0 if name != "closes" else 0.01)
    (tmp_path / "bot.py").write_text(program)
    socket = Socket(
        WELCOME,
        game_message(moves_first=name != "exits"),
        json.dumps({"type": "line", "key": "c3-1", "line": "START;South"}),
        json.dumps({"type": "line", "key": "another", "line": "END"}),
        lambda socket: bool(socket.lines),
        json.dumps({"type": "over", "key": "c3-1", "outcome": "lost", "detail": "it \x1b ended"}),
        REPLACED,
    )
    done = connect(socket, bot=f"{sys.executable} -S {tmp_path / 'bot.py'}")
    (line,) = socket.lines
    assert line[:50] == answer
    assert len(line) <= connect_module.LONGEST_LINE
    assert done.stdout.splitlines()[1:] == [
        f"game c3-1 begins: against ladder:3, you move {'second' if name == 'exits' else 'first'}",
        "game c3-1: lost: it \\x1b ended",
    ]
    assert ("standard error of the bot: no idea" in done.stderr) is bool(words)


def test_a_connection_that_breaks_off_before_a_forfeit(connect: Connect) -> None:
    def is_cut_off(socket: Socket) -> bool:
        socket.is_broken = True
        return socket.unsent > 0

    failed = json.dumps({"type": "failed", "key": "c3-1", "detail": "the server ends"})
    socket = Socket(WELCOME, game_message("chess"), is_cut_off, failed, REPLACED)
    done = connect(socket)
    assert (done.exit_code, socket.lines) == (1, [])
    assert done.stdout.endswith("game c3-1: no result: the server ends\n")


def test_a_connection_that_breaks_off_before_a_line_gives_no_result(connect: Connect, tmp_path: Path) -> None:
    def is_cut_off(socket: Socket) -> bool:
        socket.is_broken = True
        return socket.unsent > 0

    (tmp_path / "bot.py").write_text("print('MOVE;1', flush=True); input()")
    failed = json.dumps({"type": "failed", "key": "c3-1", "detail": "the server ends"})
    socket = Socket(WELCOME, game_message(), is_cut_off, failed, REPLACED)
    done = connect(socket, bot=f"{sys.executable} -S {tmp_path / 'bot.py'}")
    assert (done.exit_code, socket.lines) == (1, [])
    assert done.stdout.endswith("game c3-1: no result: the server ends\n")
