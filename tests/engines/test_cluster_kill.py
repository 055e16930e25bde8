"""SIGKILL of all processes of a cluster during one tournament, whose table is that of an undisturbed one.

Killed are the head, its scheduler, the workers' nannies, the workers below them and the processes of games,
at random moments.  Whatever ends is started again, as its owner would do, while others are killed.  Most of
the time goes to these starts: each takes up to 2 s of a core.
"""

import contextlib
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import trio

from tests.engines.clusters import WHO
from tests.engines.games import becomes, command_line
from tests.engines.lab_machines import SCHEDULER, Machine, machine
from tests.support.builders import KALARENA, invoke, kalarena, write_tournament
from tests.support.processes import GONE_WITHIN_S, all_end, descendants, open_pidfds
from tournaments.engines.remote.credentials import Credentials
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.results.game_files import GAMES as GAMES_FOLDER
from tournaments.results.store import Store

KILLS = int(os.environ.get("KALARENA_CLUSTER_KILLS", "8"))
KINDS = [*3 * ["game"], *2 * ["worker"], "nanny", "scheduler", "head"]
"""The kinds of processes of eight kills."""
MOMENTS = (*2 * ["any"], *4 * ["played"], *2 * ["ended"])
"""A kill comes at any moment, as while something starts, or while games are played, or when one has ended."""
LATEST_S = 0.3
"""And so long after that at the latest."""
LIMIT_S = 1800.0
"""Bound for the whole tournament, which takes half a minute where cores are free."""
MARKER = "KALARENA_TEST_CLUSTER"
"""In the environment of all processes of the tournament, bots among them."""
HOSTS = ("lab-1", "lab-2")
ROUNDS = 6
BOTS = ("first", "last", "fullest")
GAMES = ROUNDS * len(BOTS) * (len(BOTS) - 1)
FORMS = ("text", "csv", "json", "html")
CUP = f"""
name = "cup"
game = "kalah(3,2)"
rounds = {ROUNDS}
bots = {json.dumps(BOTS)}
openings = {{ random = {{ plies = 2, seed = 5 }} }}
[time]
move_s = 20.0
"""
BOT = """
import os, sys, time
from pathlib import Path

HOLD = Path({hold!r})

def answer(board, seat):
    if HOLD.exists():
        time.sleep(0.02)
    pits = len(board) // 2 - 1
    first = 0 if seat == "North" else pits + 1
    own = board[first : first + pits]
    legal = [number for number, seeds in enumerate(own, start=1) if seeds]
    choices = dict(first=legal[0], last=legal[-1], fullest=1 + own.index(max(own)))
    print("MOVE;%d" % choices[sys.argv[1]], flush=True)

for line in sys.stdin:
    word, *fields = line.strip().split(";")
    if word == "START":
        seat = fields[0]
    elif word == "CHANGE" and fields[2] == "YOU":
        answer([int(number) for number in fields[1].split(",")], seat)
    elif word == "END":
        break
"""
"""Takes its time while there is a file, so that the tournament lasts for as long as there are kills."""

pytestmark = [
    pytest.mark.kill,
    pytest.mark.any_database,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)"),
]


def parent_of(pid: int) -> int:
    """0 if the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def make_tournament(folder: Path, hold: Path) -> None:
    write_tournament(folder, CUP)
    for name in BOTS:
        (folder / name).mkdir()
        (folder / name / "bot.py").write_text(BOT.format(hold=str(hold)))
        (folder / name / "bot.toml").write_text(
            f'command = "python3 -S -E bot.py {name}"\ncapabilities = ["openings"]\n'
        )


def run_options(out: str, *more: str) -> tuple[str, ...]:
    return ("tournament", "run", "cup.toml", "--out", out, "--sandbox", "off", *more)


def tables(folder: Path, out: str) -> dict[str, str]:
    return {form: invoke("tournament", "table", folder / out, "--format", form).stdout for form in FORMS}


class Cluster:
    """Processes that are started again when they end."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.folder = folder
        self.credentials = Credentials.made(folder / "credentials")
        self.nursery = nursery
        self.up: dict[str, Machine] = {}
        """Running processes by name."""
        self.starts: Counter[str] = Counter()
        self.over = trio.CancelScope()

    async def keep_up(self, name: str, program: Sequence[str], arguments: Sequence[str]) -> None:
        """Start it whenever it is not there."""
        while True:
            self.starts[name] += 1
            life = f"{name}-{self.starts[name]}"
            async with machine(self.folder, life, arguments, program) as self.up[name]:
                await self.up[name].process.wait()
                assert "Traceback" not in self.up[name].said, self.up[name].said
                del self.up[name]

    async def start(self) -> str:
        """The scheduler and the workers; the scheduler's address, which stays."""
        where = [str(self.credentials.directory), "--host", "127.0.0.1"]
        async with machine(self.folder, "scheduler-0", where, SCHEDULER) as first:
            address: str = json.loads(await first.says("\n"))["address"]
        joining = ("--scheduler", address, "--credentials", str(self.credentials.directory))
        port = address.rpartition(":")[2]
        self.nursery.start_soon(self.keep_up, "scheduler", SCHEDULER, [*where, "--port", port])
        for name in HOSTS:
            worker = ("worker", *joining, "--slots", "2")
            self.nursery.start_soon(self.keep_up, name, [str(KALARENA)], worker)
        return address

    def victims(self, kind: str) -> list[int]:
        """The processes of a kind that there are now."""
        if kind not in WHO:
            return [self.up[kind].process.pid] if kind in self.up else []
        nannies = [self.up[name].process.pid for name in HOSTS if name in self.up]
        if kind == "nanny":
            return nannies
        found = [pid for nanny in nannies for pid in descendants(nanny) if WHO[kind] in command_line(pid)]
        # Not what one of them is about to start, and that has its command line until then: it may be a bot.
        return [pid for pid in found if parent_of(pid) not in found]

    def plays(self) -> bool:
        """Return True if a game is being played."""
        return any(descendants(game) for game in self.victims("game"))


class Tournament:
    """A tournament on a cluster."""

    def __init__(self, cluster: Cluster, out: str, address: str) -> None:
        self.cluster = cluster
        self.arguments = run_options(
            out,
            *("--engine", "dask", "--scheduler", address),
            *("--credentials", str(cluster.credentials.directory)),
        )
        directory = TournamentDirectory(cluster.folder / out)
        self.store = directory.store_path
        self.files = directory.path / GAMES_FOLDER
        self.seen: set[str] = set()
        self.is_over = False

    def ended(self) -> int:
        """Games that were kept, and have their files."""
        return len(list(self.files.iterdir())) if self.files.exists() else 0

    async def run(self) -> None:
        """With one head after the other, until all games are played; no game that was kept is ever gone."""
        up = self.cluster.up
        while not self.is_over:
            self.cluster.starts["head"] += 1
            life = f"head-{self.cluster.starts['head']}"
            async with machine(self.cluster.folder, life, self.arguments) as up["head"]:
                status = await up["head"].process.wait()
                said = up["head"].said
                del up["head"]
            assert "Traceback" not in said, said
            assert status in (0, 1, -signal.SIGKILL), said
            self.is_over = status == 0
            if self.store.exists():
                with Store(self.store) as store:
                    played = store.played()
                assert self.seen <= played, "a game that was kept is gone"
                self.seen = played


async def kill(disturbed: Tournament, kind: str, chance: random.Random) -> None:
    """Kill one of a kind; nothing is left of what it had started."""
    cluster, before = disturbed.cluster, disturbed.ended()
    has_come = {
        "any": lambda: True,
        "played": cluster.plays,
        "ended": lambda: disturbed.ended() > before,
    }[chance.choice(MOMENTS)]
    after_s = chance.uniform(0.0, LATEST_S)
    pick = chance.random()
    await becomes(has_come, LIMIT_S, every_s=0.05)  # it looks at all processes
    await trio.sleep(after_s)
    below: list[int] | None = None
    while below is None:
        await becomes(lambda: bool(cluster.victims(kind)), LIMIT_S)
        victims = cluster.victims(kind)
        with contextlib.suppress(IndexError, ProcessLookupError):  # it has just ended: another one, then
            victim = victims[int(pick * len(victims))]
            found = open_pidfds(descendants(victim))
            os.kill(victim, signal.SIGKILL)
            below = found
    assert await trio.to_thread.run_sync(all_end, below), f"left by a {kind}"


def marked(marker: str) -> Iterator[str]:
    """The processes that have this in their environment."""
    wanted = f"{MARKER}={marker}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                yield f"{process.name}: {(process / 'cmdline').read_bytes()!r}"
        except OSError:  # it has ended
            continue


@contextlib.contextmanager
def printed_on_failure(folder: Path) -> Iterator[None]:
    """Print the end of what each process said, in the order in which they last said something."""
    try:
        yield
    except BaseException:
        for said in sorted(folder.glob("*.said"), key=lambda path: path.stat().st_mtime):
            print(f"--- {said.name}", *said.read_text().splitlines()[-12:], sep="\n", file=sys.stderr)
        raise


@pytest.mark.long
async def test_kills_lose_no_game_repeat_none_and_leave_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(KILLS)
    kinds = [kind for _ in range(0, KILLS, len(KINDS)) for kind in chance.sample(KINDS, len(KINDS))][:KILLS]
    hold = tmp_path / "hold"
    make_tournament(tmp_path, hold)
    assert kalarena(tmp_path, *run_options("calm")).returncode == 0
    monkeypatch.setenv(MARKER, str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hold.touch()
    with trio.fail_after(LIMIT_S), printed_on_failure(tmp_path):
        async with trio.open_nursery() as nursery:
            cluster = Cluster(tmp_path, nursery)
            disturbed = Tournament(cluster, "disturbed", await cluster.start())
            async with trio.open_nursery() as playing:
                playing.start_soon(disturbed.run)
                for kind in kinds:
                    await kill(disturbed, kind, chance)
                    assert not disturbed.is_over, "over too soon"
                print(f"{disturbed.ended()} games had ended by the last kill", file=sys.stderr)
                hold.unlink()
            nursery.cancel_scope.cancel()
    await becomes(lambda: not list(marked(str(tmp_path))), GONE_WITHIN_S)

    assert tables(tmp_path, "disturbed") == tables(tmp_path, "calm")
    with Store(disturbed.store) as store:
        games = store.games()
        assert len({game.key for game in games}) == len(games) == GAMES
        assert not [game for game in games if game.fault is not None]
    verified = invoke("verify", tmp_path / "disturbed")
    assert (verified.exit_code, verified.stdout) == (0, f"{GAMES} games verified, nothing wrong\n")
    print(Counter(kinds), cluster.starts, file=sys.stderr)
