"""Packing a bot, and talking to a server that may say anything."""

import io
import json
import os
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

import pytest

from sample_bots.starters_catalog import STARTERS, starter_directory
from tests.builders import invoke
from tournaments.bots.upload.archive import read_upload
from tournaments.bots.upload.limits import UploadLimits
from tournaments.cli import api_client
from tournaments.cli.api_client import Client, SubmitError, pack

Answer = tuple[int, dict[str, str], bytes]
TOKEN = "kal_" + "a" * 40


class Server:
    """Answers as it is told to, and remembers what it was asked."""

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
def test_what_is_packed_is_what_the_server_reads(language: str) -> None:
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


def test_what_is_no_part_of_the_bot_stays(tmp_path: Path) -> None:
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


def test_what_cannot_be_packed(tmp_path: Path) -> None:
    with pytest.raises(SubmitError, match=r"nowhere: there is no such folder or file; name the folder"):
        pack(tmp_path / "nowhere")
    with pytest.raises(SubmitError, match="holds nothing to submit"):
        pack(tmp_path)
    (tmp_path / "bot.toml").write_text("command = 5\n")
    with pytest.raises(SubmitError, match=r"bot\.toml"):
        pack(tmp_path)
    (tmp_path / "bot.toml").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SubmitError, match=r"pipe is no file .*: remove it"):
        pack(tmp_path)
    (tmp_path / "pipe").unlink()
    (tmp_path / "large").write_bytes(b"12345")
    with pytest.raises(
        SubmitError, match="more than 4 bytes, counted up to large: is it the folder of a bot"
    ):
        pack(tmp_path, UploadLimits(total_bytes=4))


# Talking.


@pytest.mark.parametrize(
    ("server", "token", "words"),
    [
        ("ftp://there", TOKEN, "is no address of a server, such as https://"),
        ("http://", TOKEN, "is no address"),
        ("http://there", "", "the token is empty"),
        ("http://there", "kal_\n", "the token is empty, or has characters"),
        ("http://there", "kal_é", "has characters that none has"),
    ],
)
def test_what_no_request_is_made_with(server: str, token: str, words: str) -> None:
    with pytest.raises(SubmitError, match=words):
        Client(server, token)


def test_the_token_is_shown_and_the_name_is_quoted(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda *_: as_json(201, {"version": {"id": 7}}))
    file = tmp_path / "a b&c=é.py"
    file.write_bytes(b"x")
    assert Client(server.address + "/", TOKEN).submit(pack(file)) == {"version": {"id": 7}}
    assert server.asked == [("POST", "/api/v1/submissions?name=a+b%26c%3D%C3%A9.py", f"Bearer {TOKEN}", b"x")]


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
    ],
)
def test_answers_that_are_none(serve: Serve, answer: Answer, words: str, is_ours: bool) -> None:
    server = serve(lambda *_: answer)
    with pytest.raises(SubmitError, match=words) as raised:
        Client(server.address, TOKEN).version(1)
    assert raised.value.is_ours is is_ours


def test_the_token_goes_nowhere_else(serve: Serve) -> None:
    other = serve(lambda *_: as_json(200, {}))
    server = serve(lambda *_: (307, {"Location": other.address + "/take-it"}, b""))
    with pytest.raises(SubmitError, match="has moved"):
        Client(server.address, TOKEN).version(1)
    assert other.asked == []


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening
        with pytest.raises(SubmitError, match="cannot be reached: Connection refused") as raised:
            Client(f"http://127.0.0.1:{taken.getsockname()[1]}", TOKEN).version(1)
    assert raised.value.is_ours


def test_a_log_is_followed_through_a_restart(serve: Serve) -> None:
    answers = iter(
        [
            as_json(200, {"lines": ["one", "two"], "next": 2, "is_over": False}),
            as_json(503, {"error": "not now"}),
            as_json(200, {"lines": [], "next": 1, "is_over": False}),  # begun again
            as_json(200, {"lines": ["one"], "next": 1, "is_over": False}),
            as_json(200, {"lines": [], "next": 1, "is_over": False}),
            as_json(200, {"lines": ["three"], "next": 2, "is_over": True}),
        ]
    )
    server = serve(lambda *_: next(answers))
    told: list[str] = []
    waited: list[float] = []
    Client(server.address, TOKEN).follow(3, told.append, waited.append)
    assert told == ["one", "two", "one", "three"]
    assert waited == [api_client.POLL_S] * 2
    assert [path.rpartition("=")[2] for _, path, _, _ in server.asked] == ["0", "2", "2", "0", "1", "1"]


def test_following_ends_when_the_server_stays_away(serve: Serve) -> None:
    server = serve(lambda *_: as_json(503, {"error": "gone for good"}))
    waited: list[float] = []
    with pytest.raises(SubmitError, match="gone for good"):
        Client(server.address, TOKEN).follow(3, lambda _: None, waited.append)
    assert len(waited) == api_client.POLLS_LOST


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


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("qualified", 0, "version 2 qualified, and is the one that plays now"),
        ("failed", 1, "version 2 did not qualify"),
        ("stuck", 3, "could not be checked, which is the server's fault"),
    ],
)
def test_the_command(serve: Serve, tmp_path: Path, state: str, status: int, words: str) -> None:
    (tmp_path / "bot.py").write_text("print()\n")
    report = {"items": [{"status": "failed", "sentence": "it is \x1b[1m late", "advice": "be quick"}]}
    server = serve(responder(state, report, current=True))
    done = invoke("submit", str(tmp_path), "--server", server.address, "--token", TOKEN)
    assert done.exit_code == status
    assert f"was taken as version 2: {server.address}/my/versions/7" in done.stdout
    assert "left out, as no part of the bot or made by its build: x.tmp" in done.stdout
    assert words in done.stdout + done.stderr
    assert ("failed: it is" in done.stdout) is (state == "failed")
    assert "\x1b" not in done.stdout  # a bot's lines cannot write on the terminal


def test_the_command_in_json_and_without_waiting(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("print()\n")
    server = serve(responder("qualified"))
    where = ("submit", str(tmp_path), "--server", server.address, "--token", TOKEN, "--json")
    found = json.loads(invoke(*where).stdout)
    assert (found["version"]["state"], found["new"], found["report"]) == ("qualified", True, None)
    assert json.loads(invoke(*where, "--no-wait").stdout)["version"]["state"] == "queued"


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
def test_a_token_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, warned: bool
) -> None:
    def away(*_arguments: object) -> NoReturn:
        raise SubmitError("it is not there", is_ours=True)

    monkeypatch.setattr(Client, "submit", away)
    (tmp_path / "bot.py").write_text("print()\n")
    done = invoke("submit", str(tmp_path), "--server", server, "--token", TOKEN, "--json")
    assert ("the token travels unencrypted" in done.stderr) is warned
    assert (done.exit_code, done.stdout) == (3, "")


def test_the_command_says_what_is_wrong(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("print()\n")
    done = invoke("submit", str(tmp_path / "x"), "--server", "http://127.0.0.1:1", "--token", TOKEN)
    assert (done.exit_code, "there is no such folder" in done.stderr) == (2, True)
    done = invoke("submit", str(tmp_path), "--server", "http://127.0.0.1:1", "--token", TOKEN)
    assert (done.exit_code, "cannot be reached" in done.stderr) == (3, True)
    server = serve(lambda *_: as_json(201, {"version": 5}))
    done = invoke("submit", str(tmp_path), "--server", server.address, "--token", TOKEN)
    assert (done.exit_code, "does not answer like a kalarena server of this version" in done.stderr) == (
        3,
        True,
    )
