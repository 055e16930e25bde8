"""Each attack of table.py, by a real bot in a real game: held in the sandbox, as root and as ordinary user.

A row that claims to escape without a sandbox has to do so here: else that it was held would prove nothing.
"""

import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.attacks import plays, probes
from tests.attacks.table import ATTACKS, UNCONFINED, Attack, Context, Got, little_memory
from tests.confinement import needs_sandbox
from tests.ordinary_user import USER, as_ordinary_user

MEMORY_MB = 256
"""Half of the default, so that the attacks are over sooner."""
GAME_LIMIT_S = 90
"""Far beyond the clocks of any of these games."""
ATTEMPTS = 3
LATE_S = 0.05
"""Where nobody could look at the bots for so long, the referee may have been late, too, whose looks are as
far apart: what a bot then holds says nothing (it may fill more than POLL_MB meanwhile), and the attack is
made again."""
OVER_LIMIT_S = 2.0
"""A bot that misbehaves costs its own clocks and this much more."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's"),
    pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the attacks need /usr/bin/python3"),
]


@contextmanager
def alone(wanted: bool) -> Iterator[None]:
    """Only one such test at a time, in whichever process: they look at the whole machine's memory."""
    if not wanted:
        yield
        return
    with (Path(tempfile.gettempdir()) / "kalarena-attacks.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass
class Scene:
    """The places and processes outside that attacks are aimed at."""

    base: Path
    as_root: bool
    stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.base.chmod(0o755)
        self.folders = {name: self._folder(name) for name in ("host_tmp", "home", "other", "scratch")}
        (self.folders["other"] / "source.py").write_text("secret = 1\n")
        self.results = self.base / "results.db"
        self.results.write_text("secret\n")
        self.heartbeat = self.base / "heartbeat"
        self.heartbeat.write_text("")
        self.heartbeat.chmod(0o666)
        self.environment = {**os.environ, "ATTACK_SECRET": "secret"}
        user = None if self.as_root or os.geteuid() else USER
        marker = f"victim-{self.base.name}"
        self.victim = self.stack.enter_context(probes.Victim(marker, self.environment, user))
        self.listeners = self.stack.enter_context(probes.Listeners(self.base))
        self.places = {
            "tcp_port": str(self.listeners.tcp_port),
            "udp_port": str(self.listeners.udp_port),
            "abstract_name": self.listeners.abstract_name,
            "socket_path": str(self.listeners.path),
            "victim_pid": str(self.victim.pid),
            "victim_marker": marker,
            "secret_name": "ATTACK_SECRET",
            "results": str(self.results),
            "other_bot": str(self.folders["other"]),
            "other_source": str(self.folders["other"] / "source.py"),
            "host_tmp": str(self.folders["host_tmp"]),
            "home": str(self.folders["home"]),
            "heartbeat": str(self.heartbeat),
            "file_name": f"left-{self.base.name}",
            "namespace": str(Path("/proc/self/ns/pid").readlink()),
        }

    def _folder(self, name: str) -> Path:
        folder = self.base / name
        folder.mkdir()
        folder.chmod(0o777)
        return folder

    def files(self) -> set[str]:
        """Files where a bot must not leave any; of /tmp those with the name that it gives them."""
        here = probes.files_in([self.folders["host_tmp"], self.folders["home"], self.folders["other"]])
        return here | {name for name in probes.files_in([Path("/tmp")]) if self.places["file_name"] in name}

    def observe(self, sampler: probes.Sampler, before: set[str], beats: int) -> None:
        """Fill in what is to be seen after the game, and end what should not be there."""
        outside, token, older = sampler.outside, sampler.token, sampler.older
        outside.survivors = sorted(probes.survivors(token, older=older))
        outside.heartbeats = self.heartbeat.stat().st_size - beats
        probes.end_survivors(token, older=older)
        outside.connections = self.listeners.taken()
        outside.signals = self.victim.signals()
        outside.new_files = sorted(self.files() - before)


@dataclass
class Stage:
    """A scene with those who play there."""

    scene: Scene
    plays: plays.Plays


@pytest.fixture(scope="module", params=["root", "ordinary user"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    as_root = request.param == "root"
    if as_root and os.geteuid() != 0:
        pytest.skip("the tests are not run by root")
    base = Path(tempfile.mkdtemp(prefix="attacks-"))
    try:
        with ExitStack() as stack:
            scene = Scene(base, as_root, stack)
            command = [*plays.COMMAND]
            if not as_root:
                command = as_ordinary_user(command, [scene.folders["home"]], [base])
            yield Stage(scene, stack.enter_context(plays.running(command, scene.environment)))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def report_of(text: str) -> Got:
    """What the attacker wrote of itself on standard error."""
    for line in text.splitlines():
        if line.startswith('{"attack"'):
            got: Got = json.loads(line)["got"]
            return got
    return {}


@pytest.mark.parametrize("name", ATTACKS)
def test_the_sandbox_holds(stage: Stage, name: str) -> None:
    needs_sandbox()
    scene = stage.scene
    attack = ATTACKS[name]
    context = Context(memory_mb=MEMORY_MB, places={**scene.places, "scratch": "$HOME"})
    token = f"token-{name}-{scene.base.name}"
    bot = probes.make_bot(scene.base / f"bot-{name}", token, attack.program, context.arguments(attack))
    first_legal = Path(__file__).parents[2] / "sample_bots" / "first_legal.py"
    arguments = [
        *(str(bot), str(first_legal), "--json", "--sandbox", "required"),
        *("--move-time", "6", "--start-time", "5", "--memory-mb", str(MEMORY_MB)),
    ]
    for _ in range(ATTEMPTS):
        with alone(attack.held is little_memory):
            before, beats = scene.files(), scene.heartbeat.stat().st_size
            scene.listeners.taken()
            scene.victim.signals()
            with probes.Sampler(token) as sampler:
                done = stage.plays.play(scene.base, arguments, GAME_LIMIT_S)
            context.outside = sampler.outside
            scene.observe(sampler, before, beats)
        assert done.status == 0, done.errors
        game = json.loads(done.output)
        got = report_of(game["stderr"][0])
        if attack.held(got, context) is None or sampler.longest_gap_s < LATE_S:
            break
    assert game["sandbox"].startswith("bubblewrap")
    assert attack.held(got, context) is None
    assert sampler.outside.survivors == []
    assert sampler.outside.new_files == []
    assert sampler.outside.connections == 0
    assert sampler.outside.signals == []
    assert got or game["fault"] is not None or not attack.reports, game["detail"]
    assert not attack.verdict or (game["fault"] or "") in attack.verdict, game["detail"]
    assert game["winner"] == 1 or game["fault"] is None, "it was not the attacker that lost"
    turns = 1 + sum(move["player"] == 0 for move in game["moves"])
    assert game["duration_ms"] / 1000 < 5 + 6 * turns + OVER_LIMIT_S


CONTEXT = Context(
    memory_mb=UNCONFINED["memory_mb"],
    processes=UNCONFINED["processes"],
    file_mb=UNCONFINED["file_mb"],
    scratch_mb=UNCONFINED["scratch_mb"],
)


def escaping(attack: Attack) -> bool:
    return attack.escapes_unconfined and (not attack.needs_root or os.geteuid() == 0)


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if escaping(attack)])
def test_it_escapes_where_nothing_confines_it(tmp_path: Path, name: str) -> None:
    attack = ATTACKS[name]
    base = Path(tempfile.mkdtemp(prefix="attacks-"))
    with ExitStack() as stack, alone(attack.held is little_memory) if attack.needs_root else nullcontext():
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        scene = Scene(base, attack.needs_root, stack)
        context = replace(CONTEXT, places={**scene.places, "scratch": str(scene.folders["scratch"])})
        token = f"token-{name}-{base.name}"
        bot = probes.make_bot(base / "bot", token, attack.program, context.arguments(attack))
        command = ["/usr/bin/python3", str(bot / "attacker.py"), "--token", token]
        if not attack.needs_root:
            command = as_ordinary_user(command, [scene.folders["home"], base])
        for _ in range(ATTEMPTS):  # what changes its number all the time can be overlooked
            before, beats = scene.files(), scene.heartbeat.stat().st_size
            with probes.Sampler(token) as sampler:
                said = probes.converse(command, scene.environment, GAME_LIMIT_S)
            context.outside = sampler.outside
            scene.observe(sampler, before, beats)
            for file in sampler.outside.new_files:
                Path(file).unlink(missing_ok=True)
            if attack.held(report_of(said.errors), context) is not None:
                break
        assert attack.held(report_of(said.errors), context) is not None, said.errors
