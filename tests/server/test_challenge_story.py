"""Challenges and remote bots on a real server, with real bots and connections of all kinds."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from referee.judge.results import GameRecord
from tests.server.harness import GAME, until
from tests.server.served_course import ServedCourse, Student, served_course
from tests.server.server_process import served
from tests.support.builders import KALARENA, kalarena, one_object
from tests.support.confinement import needs_sandbox
from tests.support.databases import database_of, server_file_of
from tournaments.cli.remote.websocket import (
    ConnectionLostError,
    RefusedError,
    WebSocketClient,
    open_websocket,
)
from tournaments.course.model import ChallengeState, Version, VersionState
from tournaments.results.store import Store
from tournaments.server.remote.remote_bots import (
    MESSAGES_AT_ONCE,
    MOST_MESSAGE_BYTES,
    MOST_OF_TEAM,
    REPLACED,
    remote_control,
)
from tournaments.web.server_config import SERVER_FILE

pytestmark = [pytest.mark.slow, pytest.mark.any_database]

LIMIT_S = 120


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCourse]:
    folder = tmp_path_factory.mktemp("course") / "data"
    folder.mkdir()
    options = {"game": GAME, "move_s": 20.0, "sandbox_mode": "off", "references": ["random:1", "first_legal"]}
    with served_course(folder, **options, challenge_pairs_per_day=None) as made:
        yield made


def qualified(course: ServedCourse, student: Student, tmp_path: Path) -> Version:
    """Submit a quick bot for a student."""
    kalarena(tmp_path, "new", "python", "kit")
    status, _, errors = run(course, student, "submit", "kit", cwd=tmp_path)
    assert status == 0, errors
    return course.course.versions.current()[student.team_id]


def environment(course: ServedCourse, student: Student) -> dict[str, str]:
    return {"KALARENA_SERVER": course.url, "KALARENA_TOKEN": student.token}


def run(course: ServedCourse, student: Student, *arguments: Any, cwd: Path) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of a command."""
    done = kalarena(cwd, *map(str, arguments), **environment(course, student))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@dataclass
class Home:
    """A running `kalarena connect`."""

    process: "subprocess.Popen[str]"

    def until(self, pattern: str) -> str:
        """Return the next line of standard output with a pattern."""
        assert self.process.stdout is not None
        seen = []
        while line := self.process.stdout.readline():
            seen.append(line)
            if re.search(pattern, line):
                return line
        pytest.fail(f"no {pattern!r} in {seen}; {self.process.stderr and self.process.stderr.read()}")

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Return exit status, and the rest of both outputs."""
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, output, errors


@contextmanager
def at_home(course: ServedCourse, student: Student, bot: str, name: str, cwd: Path) -> Iterator[Home]:
    """Run `kalarena connect`, and wait until the bot is connected."""
    command = [str(KALARENA), "connect", bot, "--name", name, "--sandbox", "off"]
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=os.environ | environment(course, student),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        home = Home(process)
        home.until("is connected to")
        yield home
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def bot_at(folder: Path, program: str) -> str:
    """Write a bot that is a program; return its path."""
    folder.mkdir()
    (folder / "bot.py").write_text(program)
    (folder / "bot.toml").write_text('name = "mybot"\ncommand = ["python3", "bot.py"]\n')
    return str(folder)


SILENT = "import sys\nfor line in sys.stdin: pass\n"
LEAVES = "import sys\nfor line in sys.stdin:\n    print('no more', file=sys.stderr)\n    sys.exit(3)\n"


def records(course: ServedCourse) -> dict[str, Any]:
    with Store(database_of(course.data).competition("challenges"), read_only=True) as store:
        return {game.key: game for game in store.games()}


def test_a_version_challenges_a_bot_and_a_kill_loses_nothing(course: ServedCourse, tmp_path: Path) -> None:
    student = course.student()
    version = qualified(course, student, tmp_path)
    status, output, errors = run(course, student, "challenge", "random:1", cwd=tmp_path)
    assert (status, errors) == (0, "")
    assert "Team 1 v1 against random:1" in output
    assert output.count(": http://") == 3  # the challenge, and two games
    assert re.search(r"finished: \d won, \d drawn, \d lost\n$", output)
    page = re.findall(r"http://\S+/competitions/challenges/games/\S+", output)[0]
    with course.client(student) as browser:
        assert browser.get(page).status_code == 200
        assert "finished" in browser.get("/my/challenges").text
    assert httpx2.get(page, timeout=LIMIT_S).status_code in (303, 404)

    status, output, _ = run(
        course, student, "challenge", "random:1", "--pairs", "10", "--no-wait", "--json", cwd=tmp_path
    )
    made = one_object(output)["challenge"]
    assert (status, made["state"]) == (0, "waiting")
    course.server.kill()
    with served(course.data) as again:
        course.server = again
        status, output, _ = run(course, student, "challenge", "first_legal", cwd=tmp_path)
        assert status == 0
        found = course.course.challenges.get(made["id"])
        assert found is not None
        assert (found.state, found.played, found.bot.version_id) == (ChallengeState.FINISHED, 20, version.id)
        games = [key for key in records(course) if key.startswith(f"c{made['id']:07d}-")]
        assert len(games) == 20
        again.assert_ends()


def test_the_bots_of_a_challenge_are_confined(tmp_path: Path) -> None:
    needs_sandbox()
    options = {"game": GAME, "move_s": 20.0, "sandbox_mode": "required", "references": ["random:1"]}
    (tmp_path / "data").mkdir()
    with served_course(tmp_path / "data", **options) as course:
        student = course.student()
        qualified(course, student, tmp_path)
        status, output, errors = run(course, student, "challenge", "random:1", cwd=tmp_path)
        assert (status, errors) == (0, "")
        assert re.search(r"finished: \d won, \d drawn, \d lost\n$", output)
        for key, game in records(course).items():
            assert game.fault is None
            assert recorded(course, key).sandbox.startswith("bubblewrap")


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCourse]:
    """A course whose server no test ends."""
    folder = tmp_path_factory.mktemp("lasting") / "data"
    folder.mkdir()
    # Longer than a busy machine needs to notice that a connection was lost.
    options = {"game": GAME, "move_s": 60.0, "sandbox_mode": "off", "references": ["random:1"]}
    with served_course(folder, **options, challenge_pairs_per_day=None) as made:
        yield made


def test_a_remote_bot_plays_and_ends_with_ctrl_c(lasting: ServedCourse, tmp_path: Path) -> None:
    student = lasting.student()
    with at_home(lasting, student, "first_legal", "home", tmp_path) as home:
        listed = run(lasting, student, "challenge", cwd=tmp_path)
        assert listed == (0, "random:1\nhome (remote)\n", "")
        status, output, errors = run(lasting, student, "challenge", "random:1", "--bot", "home", cwd=tmp_path)
        assert (status, errors) == (0, "")
        assert "home (remote) against random:1" in output
        for seat in ("first", "second"):
            key = home.until(f"begins: against random:1, you move {seat}").split()[1]
            line = home.until(f"game {key}: (won|lost|drawn): ")
            assert records(lasting)[key].detail in line
            assert records(lasting)[key].fault is None, line
        assert home.end() == (130, "disconnected\n", "")
    assert run(lasting, student, "challenge", "random:1", "--bot", "home", cwd=tmp_path)[0] == 2


@pytest.mark.parametrize(
    ("program", "is_killed", "sentence"),
    [
        (SILENT, True, "the connection to the remote bot was lost"),
        (LEAVES, False, "the remote bot ended with exit status 3"),
    ],
)
def test_a_remote_bot_that_goes_forfeits(
    lasting: ServedCourse, tmp_path: Path, program: str, is_killed: bool, sentence: str
) -> None:
    student = lasting.student()
    with at_home(lasting, student, bot_at(tmp_path / "mybot", program), "gone", tmp_path) as home:
        status, output, _ = run(
            lasting, student, "challenge", "random:1", "--bot", "gone", "--no-wait", "--json", cwd=tmp_path
        )
        made = one_object(output)["challenge"]
        assert status == 0
        key = home.until("begins: ").split()[1]
        if is_killed:
            home.end(signal.SIGKILL)
        else:
            home.until(f"game {key}: lost: ")
            home.until("begins: ")
            home.until(": lost: ")
    record = recorded(lasting, key)
    assert record.result.winner == 1
    assert sentence in record.result.note
    assert record.players[0].how == "a remote bot"
    assert record.own_controls[0] == remote_control(record.control)
    if is_killed:  # the return game waits for the bot to come back
        trio.run(until, lambda: losses(lasting, made["id"]))  # a game is stored before it is counted
        cancel = httpx2.post(
            f"{lasting.url}/api/v1/challenges/{made['id']}/cancel",
            headers={"Authorization": f"Bearer {student.token}"},
            timeout=LIMIT_S,
        )
        assert cancel.json()["challenge"]["losses"] == 1


def test_the_end_of_a_remote_bot_is_explained_to_its_author(lasting: ServedCourse, tmp_path: Path) -> None:
    student = lasting.student()
    with at_home(lasting, student, bot_at(tmp_path / "mybot", "import helper\n"), "alone", tmp_path) as home:
        run(lasting, student, "challenge", "random:1", "--bot", "alone", cwd=tmp_path)
        _, _, errors = home.end()
    assert "No module named 'helper'" in errors
    assert "That is: the module helper is not there: if it is your own, it must lie in" in errors


def test_a_remote_bot_is_built_for_each_game_if_it_was_changed(lasting: ServedCourse, tmp_path: Path) -> None:
    student = lasting.student()
    bot = Path(bot_at(tmp_path / "mybot", ""))
    (bot / "bot.py").unlink()
    (bot / "bot.toml").write_text(
        'command = ["python3", "bot.py"]\nbuild = ["cp", "bot.c", "bot.py"]\nmade = ["bot.py"]\n'
    )

    def play() -> None:
        run(lasting, student, "challenge", "random:1", "--bot", "built", cwd=tmp_path)
        for _ in range(2):
            home.until(": lost: ")

    (bot / "bot.c").write_text(LEAVES)
    with at_home(lasting, student, str(bot), "built", tmp_path) as home:
        play()
        (bot / "bot.c").write_text(LEAVES.replace("no more", "improved"))
        play()
        (bot / "bot.py").unlink()
        (bot / "bot.c").unlink()
        play()
        _, _, errors = home.end()
    for sentence in ("standard error of the bot: no more", "standard error of the bot: improved"):
        assert errors.count(sentence) == 2, errors
    assert errors.count("the bot could not be started: ") == 2
    assert "cannot stat 'bot.c'" in errors


def test_a_check_does_not_wait_for_a_remote_bot_that_thinks(tmp_path: Path) -> None:
    """The server has one slot, and the remote bot never moves, for longer than any check."""
    data = tmp_path / "data"
    data.mkdir()
    (data / SERVER_FILE).write_text("\n".join([server_file_of(data), "places = 1"]))
    options = {"game": GAME, "move_s": 3600.0, "sandbox_mode": "off", "references": ["random:1"]}
    with served_course(data, **options) as course:
        student = course.student()
        with at_home(course, student, bot_at(tmp_path / "mybot", SILENT), "slow", tmp_path) as slow:
            run(course, student, "challenge", "random:1", "--bot", "slow", "--no-wait", cwd=tmp_path)
            key = slow.until("begins: ").split()[1]
            version = qualified(course, student, tmp_path)
            assert version.state is VersionState.QUALIFIED
            assert key not in records(course), "the game goes on"


def recorded(course: ServedCourse, key: str) -> GameRecord:
    """Return the record of a game, as soon as it is stored."""
    trio.run(_until_stored, course, key)
    with Store(database_of(course.data).competition("challenges"), read_only=True) as store:
        return store.record(key)


def losses(course: ServedCourse, challenge_id: int) -> int:
    found = course.course.challenges.get(challenge_id)
    assert found is not None
    return found.losses


async def _until_stored(course: ServedCourse, key: str) -> None:
    await until(lambda: key in records(course))


# Connections


@pytest.mark.parametrize(
    ("token", "path", "status", "sentence"),
    [
        (None, "/api/v1/remote?name=a%20b", 409, "The name of a remote bot has 1 to 30 of"),
        (None, "/api/v1/remote", 409, "The name of a remote bot has"),
        (None, "/api/v1/elsewhere?name=a", 404, "nothing at this address"),
        ("kal_wrong", "/api/v1/remote?name=a", 401, "not valid (any more)"),
        ("x", "/api/v1/remote?name=a", 401, "not valid (any more)"),
    ],
)
async def test_a_connection_that_is_refused(
    lasting: ServedCourse, token: str | None, path: str, status: int, sentence: str
) -> None:
    given = lasting.student().token if token is None else token
    with pytest.raises(RefusedError, match=re.escape(sentence)) as refused:
        async with open_websocket(lasting.url, path, given):
            pass
    assert refused.value.status == status


async def closed(course: ServedCourse, *messages: str) -> ConnectionLostError:
    """Return how a connection ends that sends these messages."""
    async with open_websocket(course.url, "/api/v1/remote?name=raw", course.student().token) as socket:
        with suppress(ConnectionLostError):  # the server may end it before the last one
            for message in messages:
                await socket.send(message)
        with pytest.raises(ConnectionLostError) as ended:
            await receive_all(socket)
        return ended.value


async def receive_all(socket: WebSocketClient) -> None:
    """Receive until the connection ends.  Raises ConnectionLostError."""
    with trio.fail_after(LIMIT_S):
        while True:
            await socket.receive()


HELLO = '{"type": "hello", "capabilities": []}'


async def test_messages_that_are_not_accepted(lasting: ServedCourse) -> None:
    flood = await closed(
        lasting, HELLO, *['{"type": "line", "key": "x", "line": "y"}'] * (MESSAGES_AT_ONCE + 50)
    )
    assert flood.code in (1008, None)
    large = await closed(lasting, HELLO, json.dumps({"type": "line", "line": "x" * MOST_MESSAGE_BYTES}))
    assert large.code in (1009, None)
    for message in ("[" * 5000, "no JSON", "[]", '{"type": 7}'):
        odd = await closed(lasting, HELLO, message)
        assert (odd.code, "messages of kalarena connect" in str(odd)) == (1008, True)
    nameless = await closed(lasting, '{"type": "line"}')
    assert (nameless.code, str(nameless)) == (1008, "the first message was not hello")
    async with httpx2.AsyncClient(base_url=lasting.url, timeout=LIMIT_S) as client:
        assert (await client.get("/health")).status_code == 200


async def test_a_bot_at_home_that_is_early_and_gives_odd_reasons(lasting: ServedCourse) -> None:
    """A line comes before the opponent has started, and a reason has half of a character and NUL."""
    student = lasting.student()
    answers = [{"type": "line", "line": "MOVE;99"}, {"type": "forfeit", "why": "half: \ud800, none: \0"}]
    keys, details = list[str](), list[str]()
    async with open_websocket(lasting.url, "/api/v1/remote?name=odd", student.token) as socket:
        await socket.send(HELLO)
        await socket.receive()
        async with httpx2.AsyncClient(base_url=lasting.url, timeout=LIMIT_S) as client:
            asked = await client.post(
                "/api/v1/challenges",
                json={"opponent": "random:1", "bot": "odd"},
                headers={"Authorization": f"Bearer {student.token}"},
            )
        assert asked.status_code == 201, asked.text
        with trio.fail_after(LIMIT_S):
            while True:
                message = json.loads(await socket.receive())
                if message["type"] == "game":
                    await socket.send(json.dumps({**answers[len(keys)], "key": message["key"]}))
                    keys.append(message["key"])
                elif message["type"] in ("over", "failed"):
                    details.append(message["detail"])
                    if len(details) == len(answers):
                        break
        await until(lambda: keys[1] in records(lasting))
    assert "MOVE;99" in details[0]
    with Store(database_of(lasting.data).competition("challenges"), read_only=True) as store:
        assert "half: ?, none: " in store.record(keys[1]).result.note
    with lasting.client(student) as browser:
        for key in keys:
            assert browser.get(f"/competitions/challenges/games/{key}").status_code == 200


async def test_the_newest_connection_of_a_name_stays(lasting: ServedCourse) -> None:
    student = lasting.student()
    path = "/api/v1/remote?name=twice"
    async with open_websocket(lasting.url, path, student.token) as first:
        await first.send(HELLO)
        assert json.loads(await first.receive()) == {"type": "welcome", "name": "twice", "game": GAME}
        async with open_websocket(lasting.url, path, student.token) as second:
            await second.send(HELLO)
            await second.receive()
            with pytest.raises(ConnectionLostError, match=REPLACED) as ended:
                await first.receive()
            assert ended.value.code == 4001
            await second.send('{"type": "alive"}')
            assert json.loads(await second.receive()) == {"type": "alive"}


async def test_a_team_has_few_remote_bots(lasting: ServedCourse) -> None:
    student = lasting.student()
    async with AsyncExitStack() as stack:
        for number in range(MOST_OF_TEAM):
            path = f"/api/v1/remote?name=bot{number}"
            socket = await stack.enter_async_context(open_websocket(lasting.url, path, student.token))
            await socket.send(HELLO)
            await socket.receive()
        with pytest.raises(RefusedError, match="Your team has 3 remote bots connected already"):
            async with open_websocket(lasting.url, "/api/v1/remote?name=more", student.token):
                pass


@pytest.mark.parametrize(
    ("bot", "server", "token", "sentence"),
    [
        ("nobody", None, None, "nobody"),
        ("first_legal", None, "kal_wrong", "This token is not valid (any more)"),
        ("first_legal", "ftp://x", None, "is no address of a server"),
        ("first_legal", "http://127.0.0.1:1", None, "cannot be reached"),
    ],
)
def test_a_wrong_bot_address_or_token_is_named(
    lasting: ServedCourse, tmp_path: Path, bot: str, server: str | None, token: str | None, sentence: str
) -> None:
    options = ["--server", server or lasting.url, "--token", token or lasting.student().token]
    done = kalarena(tmp_path, "connect", bot, *options, "--sandbox", "off")
    assert done.returncode == (3 if sentence == "cannot be reached" else 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
