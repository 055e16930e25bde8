"""Each attack of table.py, by a real bot in a real game: held in the sandbox, as root and as ordinary user.

A row that claims to escape without a sandbox has to do so here: else its being held would prove nothing.
"""

import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.attacks import plays, probes
from tests.attacks.table import (
    ALONE,
    ATTACKS,
    PLAYED,
    TOGETHER,
    UNCONFINED,
    Attack,
    Context,
    Got,
    little_memory,
)
from tests.support.confinement import TIER_VARIABLE, needs_sandbox
from tests.support.ordinary_user import USER, as_ordinary_user

MEMORY_MB = 256
"""Half of the default, so that the attacks are over sooner."""
START_S, MOVE_S = 5, 6
"""Time controls of a bot that makes one attack."""
LATE_MOVE_S = 1
"""Time for a move of a bot whose attack is to use up that time."""
PATIENT_S = 60
"""Time where an attack does not use it up: for the start of most, and for the moves of one that plays on."""
GAME_LIMIT_S = 300
"""Far beyond the clocks of any of these games."""
UNCONFINED_LIMIT_S = 400
"""For an attack that nothing stops: 200,000 files take more than 90 s on a busy machine."""
ATTEMPTS = 3
LATE_S = 0.05
"""Longest time between two samples of an attempt that counts.  On a busier machine the referee's checks may
be late, too, and a bot may fill more than POLL_MB meanwhile: the attack is made again."""
OVER_LIMIT_S = 2.0
"""A bot that misbehaves costs its own clocks and this much more.  A busy machine makes both longer: waits for
a CPU are not charged."""

pytestmark = [
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
        self.victim = self.stack.enter_context(closing(probes.Victim(marker, self.environment, user)))
        self.listeners = self.stack.enter_context(closing(probes.Listeners(self.base)))
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

    @contextmanager
    def observed(self, token: str) -> Iterator[probes.Sampler]:
        """Observe a bot; when it should have ended, look for what it left, and end that."""
        before, beats = self.files(), self.heartbeat.stat().st_size
        self.listeners.take()
        self.victim.signals()
        with probes.Sampler(token) as sampler:
            yield sampler
        outside, older = sampler.outside, sampler.older
        outside.survivors = sorted(probes.survivors(token, older))
        outside.heartbeats = self.heartbeat.stat().st_size - beats
        probes.end_survivors(token, older)
        outside.reached = self.listeners.take()
        outside.signals = self.victim.signals()
        outside.new_files = sorted(self.files() - before)
        for file in outside.new_files:
            Path(file).unlink(missing_ok=True)


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


def reports_of(text: str) -> dict[str, Got]:
    """The attacker's own measurements of each attack, on its standard error."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{"attack"')]
    return {line["attack"]: line["got"] for line in lines}


def bot_with(scene: Scene, name: str, attacks: dict[str, Attack], context: Context) -> tuple[Path, str]:
    """A bot that makes these attacks, and its token."""
    token = f"token-{name}-{scene.base.name}"
    rows = [[label, each.program, *context.arguments(each)] for label, each in attacks.items()]
    return probes.make_bot_with(scene.base / f"bot-{name}", token, rows), token


def judged(attacks: dict[str, Attack], reports: dict[str, Got], context: Context) -> dict[str, str]:
    """The complaints about attacks that were not held."""
    found = {name: each.held(reports.get(name, {}), context) for name, each in attacks.items()}
    return {name: complaint for name, complaint in found.items() if complaint is not None}


REPRESENTATIVE = (
    "daemon-holds-output",
    "memory-shared",
    "forks",
    "big-file",
)
"""Attacks of the quick tier beside all those of TOGETHER."""


def batches() -> Iterator[object]:
    """Names of the attacks that are made in one game."""
    yield pytest.param(tuple(TOGETHER), id="together")
    for name in ALONE:
        yield pytest.param((name,), id=name, marks=() if name in REPRESENTATIVE else pytest.mark.attack)


@pytest.mark.parametrize("names", [*batches()])
def test_the_sandbox_holds(request: pytest.FixtureRequest, stage: Stage, names: tuple[str, ...]) -> None:
    needs_sandbox()
    scene, attacks = stage.scene, {name: ATTACKS[name] for name in names}
    context = Context(memory_mb=MEMORY_MB, places={**scene.places, "scratch": "$HOME"})
    bot, token = bot_with(scene, request.node.callspec.id.replace(" ", "-"), attacks, context)
    first_legal = Path(__file__).parents[2] / "sample_bots" / "first_legal.py"
    is_late = all(attack.verdict == ("late",) for attack in attacks.values())
    move_s = LATE_MOVE_S if is_late else MOVE_S * min(len(names), 5)
    plays_on = all(attack.verdict == PLAYED for attack in attacks.values())
    move_limit_s = PATIENT_S if plays_on else move_s
    start_limit_s = START_S if "never-start" in names else PATIENT_S
    arguments = [
        *(str(bot), str(first_legal), "--json", "--sandbox", "required"),
        *("--move-time", str(move_limit_s), "--start-time", str(start_limit_s)),
        *("--memory-mb", str(MEMORY_MB)),
    ]
    for _ in range(ATTEMPTS):
        watches_memory = any(attack.held is little_memory for attack in attacks.values())
        with alone(watches_memory), scene.observed(token) as sampler:
            done = stage.plays.play(scene.base, arguments, GAME_LIMIT_S)
        assert done.status == 0, done.errors
        context.outside = sampler.outside
        game = json.loads(done.output)
        reports = reports_of(game["stderr"][0])
        if not judged(attacks, reports, context) or sampler.longest_gap_s < LATE_S:
            break
    assert game["sandbox"].startswith(os.environ.get(TIER_VARIABLE, "bubblewrap"))
    assert judged(attacks, reports, context) == {}
    assert sampler.outside.survivors == []
    assert sampler.outside.new_files == []
    assert sampler.outside.reached == set()
    assert sampler.outside.signals == []
    for name, attack in attacks.items():
        assert name in reports or game["fault"] is not None or not attack.reports, (name, game["detail"])
        assert not attack.verdict or (game["fault"] or "") in attack.verdict, (name, game["detail"])
    assert game["winner"] == 1 or game["fault"] is None, "it was not the attacker that lost"
    turns = 1 + sum(move["player"] == 0 for move in game["moves"])
    own_s = START_S + move_s * turns + OVER_LIMIT_S
    assert game["duration_ms"] / 1000 < own_s * sampler.slowdown


def escaping(attacks: dict[str, Attack], *, needs_root: bool) -> tuple[str, ...]:
    return tuple(
        name for name, each in attacks.items() if each.escapes_unconfined and each.needs_root is needs_root
    )


def unconfined() -> Iterator[object]:
    """Names of the attacks that one bot makes without a sandbox."""
    for needs_root in (False, True) if os.geteuid() == 0 else (False,):
        yield pytest.param(escaping(TOGETHER, needs_root=needs_root), id=f"together-{needs_root}")
        for name in escaping(ALONE, needs_root=needs_root):
            yield pytest.param((name,), id=name)


@pytest.mark.attack
@pytest.mark.parametrize("names", [*unconfined()])
def test_attacks_escape_where_nothing_confines_them(names: tuple[str, ...]) -> None:
    attacks = {name: ATTACKS[name] for name in names}
    needs_root = attacks[names[0]].needs_root
    base = Path(tempfile.mkdtemp(prefix="attacks-"))
    is_alone = needs_root or any(attack.held is little_memory for attack in attacks.values())
    with ExitStack() as stack, alone(is_alone):
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        scene = Scene(base, needs_root, stack)
        context = replace(UNCONFINED, places={**scene.places, "scratch": str(scene.folders["scratch"])})
        bot, token = bot_with(scene, "unconfined", attacks, context)
        command = ["/usr/bin/python3", str(bot / "attacker.py"), "--token", token]
        if not needs_root:
            command = as_ordinary_user(command, [scene.folders["home"], base])
        for _ in range(ATTEMPTS):  # what changes its number all the time can be overlooked
            with scene.observed(token) as sampler:
                said = probes.converse(command, scene.environment, UNCONFINED_LIMIT_S)
            context.outside = sampler.outside
            held = attacks.keys() - judged(attacks, reports_of(said.errors), context).keys()
            if not held:
                break
        assert not held, said.errors
