"""Adapters with real bots in real games: they play by score, and a fault is the bot's own as without one."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.beside import Loop
from referee.games.catalog import GAMES, parse_game
from referee.games.plugins import GAMES_VARIABLE
from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Reason
from referee.playing import Job, play_game
from tests.adapters.bots import (
    KGP_NODE,
    KGP_PYTHON,
    KGP_SIMPLE,
    KGP_WEBSOCKET,
    TURNS_LUA,
    TURNS_NODE,
    TURNS_PYTHON,
)
from tests.support.confinement import UNHURRIED, outcome, sandbox_of
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tiers import slow
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot

pytestmark = pytest.mark.usefixtures("patient_referee")

CONTROL = TimeControl(move_s=60.0, start_s=60.0, setup_s=0.0)
"""A bot's process starts in its first turn, and the KGP adapter counts all time that passes."""
HURRIED = TimeControl(move_s=0.5, start_s=60.0, setup_s=0.0)
"""For bots that are to be out of time."""

GAME = "manchester(4,3)"
BOTS = {
    "turns python": ("turns", "bot.py", TURNS_PYTHON, "python3 bot.py"),
    "turns node": ("turns", "bot.js", TURNS_NODE, "node bot.js"),
    "turns lua": ("turns", "bot.lua", TURNS_LUA, "lua5.4 bot.lua"),
    "kgp python": ("kgp", "bot.py", KGP_PYTHON, "python3 bot.py"),
    "kgp node": ("kgp", "bot.js", KGP_NODE, "node bot.js"),
}


def bot_of(folder: Path, kind: str, source: str | None = None, arguments: str = "") -> Path:
    """A bot's directory whose bot.toml names its protocol."""
    protocol, file, text, command = BOTS[kind]
    command = f"{command} {arguments}".strip()
    directory = folder / kind.replace(" ", "_")
    directory.mkdir()
    (directory / file).write_text(text if source is None else source)
    (directory / "bot.toml").write_text(f'command = "{command}"\nprotocol = "{protocol}"\n')
    return directory


async def played(bot: Path, tier: str = "bare", game: str = GAME, **changes: Any) -> GameRecord:
    """A game of the bot against a sample bot."""
    player = resolve_bot(str(bot), bot.parent, game=game)
    opponent = resolve_bot("first_legal", bot.parent, game=game)
    values = {"control": CONTROL, "sandbox": sandbox_of(tier), **changes}
    return await play_game(Job("game", game, (player, opponent), **values))


@pytest.mark.parametrize("tier", ["confined", "bare"])
@pytest.mark.parametrize("kind", ["turns python", "kgp python"])
async def test_a_bot_plays_by_score(tmp_path: Path, kind: str, tier: str) -> None:
    record = await played(bot_of(tmp_path, kind), tier)
    assert record.result.reason.value == "score"
    assert record.stderr[0] == ""


CONNECT = 'socket.create_connection((os.environ["KGP_HOST"], int(os.environ["KGP_PORT"])))'
KGP_CLIENTS = {
    "mode simple": (KGP_SIMPLE, "", "bare"),
    "websocket": (KGP_WEBSOCKET, "{ws}", "bare"),
    "address in arguments": (
        KGP_PYTHON.replace(CONNECT, "socket.create_connection(__import__('sys').argv[1:])"),
        "{host} {port}",
        "bare",
    ),
    "usual port": (
        KGP_PYTHON.replace(CONNECT, "socket.create_connection(('localhost', 2671))"),
        "",
        "confined",
    ),
    "ipv6": (KGP_PYTHON.replace('os.environ["KGP_HOST"]', "'::1'"), "", "confined"),
    "connects twice": (KGP_PYTHON.replace(CONNECT, f"{CONNECT}.close()\nserver = {CONNECT}", 1), "", "bare"),
    "two connections": (
        KGP_PYTHON.replace(CONNECT, f"{CONNECT}\nother, server = server, {CONNECT}", 1),
        "",
        "bare",
    ),
    "long lines and strange bytes": (
        KGP_PYTHON.replace(
            "lines = ",
            "server.sendall(b'9' * 40_000 + b'\\n\\xff\\0\\r\\n\\n' + b'9' * 5000 + b' ping\\n')\nlines = ",
        ),
        "",
        "bare",
    ),
}


@pytest.mark.parametrize("kind", KGP_CLIENTS)
async def test_a_kgp_client_may_differ(tmp_path: Path, kind: str) -> None:
    source, arguments, tier = KGP_CLIENTS[kind]
    record = await played(bot_of(tmp_path, "kgp python", source, arguments), tier, "kalah(2,2)")
    assert record.result.reason.value == "score"
    ignored = record.stderr[0].splitlines()
    assert len(ignored) == (2 if "strange" in kind else 0)
    assert all(line.startswith("KGP adapter: ignored, since it is no command: ") for line in ignored)


def test_a_bot_that_never_stops_sending_does_not_put_off_its_deadline() -> None:
    loop = Loop()
    read_end, write_end = os.pipe()
    os.write(write_end, b"x")  # never read, so the descriptor is always ready
    rounds = 0

    def count() -> None:
        nonlocal rounds
        rounds += 1
        assert rounds < 1000

    loop.add(read_end, count)
    loop.set_deadline(0.0, loop.stop)
    loop.run()
    for descriptor in (read_end, write_end):
        os.close(descriptor)


@pytest.mark.toolchain
@pytest.mark.parametrize("kind", ["turns node", "turns lua", "kgp node"])
async def test_a_bot_in_another_language_plays_by_score(tmp_path: Path, kind: str) -> None:
    # "kgp node" sends no yield, and so takes all of its time in each of its two turns.
    game, control = ("manchester(2,3)", TimeControl(move_s=1.0)) if kind == "kgp node" else (GAME, CONTROL)
    record = await played(bot_of(tmp_path, kind), "confined", game, control=control)
    assert record.result.reason.value == "score"


def printed_bots() -> list[tuple[str, str]]:
    """The bots that docs/adapters.md prints, each with its language."""
    text = (REPOSITORY_ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    section = text.partition("\n## turns\n")[2].partition("\n## kgp\n")[0]
    return re.findall(r"^```(python|javascript|lua)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


KINDS = {"python": "turns python", "javascript": "turns node", "lua": "turns lua"}
GAME_FILES = REPOSITORY_ROOT / "tournaments" / "examples" / "games"


@pytest.mark.toolchain
@pytest.mark.usefixtures("game_catalog")
@pytest.mark.parametrize("game", ["kalah(4,3)", "kalamala+cap=40", "oware", "connect-four"])
@pytest.mark.parametrize("language", KINDS)
async def test_a_printed_bot_of_ten_lines_plays_every_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, game: str
) -> None:
    monkeypatch.setenv(GAMES_VARIABLE, os.pathsep.join(map(str, sorted(GAME_FILES.glob("*.py")))))
    (source,) = (source for name, source in printed_bots() if name == language)
    assert len(source.splitlines()) <= 10
    bot = bot_of(tmp_path, KINDS[language], source)
    record = await played(bot, "confined", game)
    assert record.result.reason.value in ("score", "turn-cap")
    assert record.stderr[0] == ""


async def test_turns_play_kalamala_and_openings(tmp_path: Path) -> None:
    bot = bot_of(tmp_path, "turns python")
    assert (await played(bot, game="kalamala+cap=20")).result.reason.value in ("score", "turn-cap")
    assert (await played(bot, opening="1 2")).result.reason.value == "score"


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("turns python", "import sys\nsys.stdin.readline()\nsys.exit(3)\n", (1, "exit", "exited")),
        ("turns python", "import sys\nsys.stdin.readline()\nprint('hello')\n", (1, "protocol", "bad-number")),
        ("turns python", "import sys\nsys.stdin.readline()\nprint(99)\n", (1, "illegal-move", "no-such-pit")),
        ("turns python", "import os\nos.kill(os.getpid(), 11)\n", (1, "exit", "killed")),
        *slow(
            ("turns python", "import time\ntime.sleep(60)\n", (1, "timeout", "late")),
            ("turns python", "import os, time\nos.close(1)\ntime.sleep(60)\n", (1, "exit", "closed-output")),
        ),
        ("kgp python", KGP_PYTHON.replace('send(f"@{number} move {move}")', "pass"), (1, "timeout", "late")),
        ("kgp python", "raise SystemExit(5)\n", (1, "exit", "exited")),
    ],
)
async def test_a_fault_is_the_bots_own(
    tmp_path: Path, kind: str, source: str, expected: tuple[int, str, str]
) -> None:
    control = HURRIED if expected[2] in ("late", "closed-output") else CONTROL
    assert outcome(await played(bot_of(tmp_path, kind, source), control=control)) == expected


HANGS_UP = """\
import socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1].split(":")[2].split("/")[0])))
server.shutdown(socket.SHUT_WR)
assert server.recv(1) == b""
raise SystemExit(5)
"""


async def test_a_websocket_client_may_hang_up_before_it_has_sent_its_request(tmp_path: Path) -> None:
    bot = bot_of(tmp_path, "kgp python", HANGS_UP, "{ws}")
    record = await played(bot)
    assert outcome(record) == (1, "exit", "exited")
    assert record.exit_status[0] == 5
    assert record.stderr[0] == ""


PINGS_AND_CLOSES = """\
frame(9, b"ping")
frame(8, b"\\x03\\xe8")
"""


async def test_a_websocket_client_may_ping_close_and_connect_again(tmp_path: Path) -> None:
    handshake = KGP_WEBSOCKET.partition("def messages():")[0]
    both = handshake.replace("server.sendall(bytes(", "out.append(bytes(") + PINGS_AND_CLOSES
    first = f"out = []\n{both}server.sendall(b''.join(out))\ndata.read()\n"
    bot = bot_of(tmp_path, "kgp python", first + KGP_WEBSOCKET, "{ws}")
    record = await played(bot)
    assert record.result.reason is Reason.SCORE, (record.result, record.stderr)


ENDS_BEFORE_ITS_CONNECTION = "if os.fork(): os._exit(0)\n        import time; time.sleep(0.2); break"


@pytest.mark.parametrize(
    ("kind", "source", "words"),
    [
        (
            "turns python",
            "input()\nprint('hello')\n",
            "turns adapter: the reply 'hello' is none of the legal_moves: 1 2",
        ),
        (
            "turns python",
            "input()\nprint('1\\nhello', flush=True)\ninput()\n",
            "turns adapter: the reply 'hello' is none of the legal_moves: 2, and came before this turn began",
        ),
        (
            "kgp python",
            KGP_PYTHON.replace("@{number} move", "move"),
            "KGP adapter: error in answer to 'move 2': move has to refer to a state",
        ),
        (
            "kgp python",
            KGP_PYTHON.replace('send(f"@{number} yield")', "break"),
            "KGP adapter: the bot closed its connection before the end of the game",
        ),
        (  # another process of the bot has the connection for a moment longer
            "kgp python",
            KGP_PYTHON.replace('send(f"@{number} yield")', ENDS_BEFORE_ITS_CONNECTION),
            "KGP adapter: the bot closed its connection before the end of the game",
        ),
        (
            "kgp python",
            KGP_PYTHON.replace("freeplay", "verbatim"),
            "KGP adapter: error in answer to 'mode verbatim': the modes here are freeplay and simple",
        ),
    ],
)
async def test_an_adapter_names_the_mistake_on_standard_error(
    tmp_path: Path, kind: str, source: str, words: str
) -> None:
    # The bot without a state goes on until its time is over; its process has started before its first turn.
    control = replace(CONTROL, move_s=2.0) if "refer to a state" in words else CONTROL
    record = await played(bot_of(tmp_path, kind, source), game="kalah(2,2)", control=control)
    assert record.result.winner == 1
    assert record.stderr[0].splitlines()[0] == words


async def test_a_turns_reply_without_a_line_feed_is_named(tmp_path: Path) -> None:
    source = "import sys\ninput()\nsys.stdout.write('1')\nsys.stdout.flush()\ninput()\n"
    bot = bot_of(tmp_path, "turns python", source)
    # The adapter has read the reply when it is out of time, and writes its note after END.
    record = await played(bot, game="kalah(2,2)", control=HURRIED, limits=UNHURRIED)
    assert record.result.reason is Reason.TIMEOUT
    assert record.stderr[0].startswith("turns adapter: the reply '1' had no line feed at the end of the game")


async def test_a_turns_bot_that_keeps_its_reply_is_found_waiting_for_input(tmp_path: Path) -> None:
    source = TURNS_PYTHON.replace(", flush=True", "")
    record = await played(bot_of(tmp_path, "turns python", source), game="kalah(2,2)", control=HURRIED)
    assert "did you flush stdout?" in record.result.detail


async def test_a_kgp_client_that_stays_after_goodbye_is_ended_without_a_fault(tmp_path: Path) -> None:
    bot = bot_of(tmp_path, "kgp python", KGP_PYTHON + "import threading\nthreading.Event().wait()\n")
    record = await played(bot, game="kalah(2,2)", limits=UNHURRIED)
    assert (record.result.reason.value, record.exit_status[0]) == ("score", 0)


async def test_the_failure_of_an_adapter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules: Any = parse_game("kalah(2,2)")
    rules = replace(rules, name="nowhere")
    monkeypatch.setitem(GAMES, "nowhere", replace(GAMES["kalah"], build=lambda spec: rules))
    bot = resolve_bot(str(bot_of(tmp_path, "turns python")), tmp_path)
    # No adapter knows the game.
    record = await play_game(Job("game", "nowhere", (bot, bot), CONTROL))
    assert "the turns adapter of Kalarena failed, by no fault of the bot" in record.result.detail


def test_kgp_is_for_boards_with_pits(tmp_path: Path) -> None:
    with pytest.raises(BotError, match="cannot play kalamala: its protocol kgp cannot describe the board"):
        resolve_bot(str(bot_of(tmp_path, "kgp python")), tmp_path, game="kalamala")


def test_the_protocol_of_a_bot_without_a_manifest_is_part_of_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "bot.py"
    file.write_text(TURNS_PYTHON)
    plain, turns = (resolve_bot(str(file), tmp_path, protocol=protocol) for protocol in ("", "turns"))
    assert plain.digest != turns.digest
    assert (plain.capabilities, turns.capabilities) == ((), ("openings", "time"))
    assert resolve_bot("greedy", tmp_path, protocol="turns") == resolve_bot("greedy", tmp_path)


def test_an_unknown_protocol_is_refused(tmp_path: Path) -> None:
    bot = bot_of(tmp_path, "turns python")
    (bot / "bot.toml").write_text('command = "python3 bot.py"\nprotocol = "turn"\n')
    with pytest.raises(BotError, match="protocol: no protocol 'turn'; did you mean 'turns'"):
        resolve_bot(str(bot), tmp_path)
