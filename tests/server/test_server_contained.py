"""Bots that attack the server that builds and checks them: each fails with a sentence, and harms nobody."""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.bots.test_build import ENDLESS, REFUSED
from tests.bots.zips import Member, make_zip
from tests.server.harness import GAME, starter
from tests.server.hostile_uploads import GOOD
from tests.server.served_course import ServedCourse, Student, served_course
from tests.server.server_process import slowness
from tests.support.builders import RUN_LIMIT_S
from tests.support.building import SECRET
from tests.support.confinement import needs_sandbox
from tests.support.processes import GONE_WITHIN_S, kill_all_with, living_with
from tournaments.course.model import Checked, Version, VersionState

pytestmark = [pytest.mark.attack, pytest.mark.any_database]

CHECK_S = 6.0
"""Limit of a check in seconds, and of the build before it, for programs that never end.  It is multiplied by
the slowness of the machine, since these programs must begin before it."""
HONEST_S = 120.0
ANSWERED_WITHIN_S = 10.0
"""Bound for a page, times the slowness of the machine."""
VISIT_S = 0.2
"""Seconds between visits of pages, and between bytes of a slow upload."""
MARK = f"mark-{os.getpid()}"

READS = """\
cat {data}/secret {data}/course.db {data}/submissions/*/*/files/secret.txt {data}/bots/*/bot/secret.txt
ls /root /home /var/lib
exit 4
"""
CONNECTS = """\
import socket
socket.create_connection(("127.0.0.1", {port}), 5)
"""
BUILDS = {
    "forks for ever": (ENDLESS["forks for ever"], "took over {limit:g} s: begun"),
    "never ends": (ENDLESS["ignores signals"], "took over {limit:g} s: begun"),
    "writes until all is full": (
        ("make.sh", REFUSED["all its files"][0]),
        "No space left on device",
    ),
    "prints 100 MB": (("make.sh", "yes | head -c 100000000\n"), "printed over 16 MB"),
    "leaves processes": (
        ("make.sh", "(while :; do sleep 1; done) & setsid sh -c 'while :; do sleep 1; done' x $1 & exit 7\n"),
        "ended with exit status 7",
    ),
    "reads the files of others": (("make.sh", READS), "No such file or directory"),
    "connects to the server": (("make.py", CONNECTS), "Error: [Errno "),
}
"""Builds: the file, its text, and a part of the sentence on its failure."""
BOTS = {
    "forks for ever": (ENDLESS["forks for ever"][1], "plays-first"),
    "never answers": ("import time\nprint('begun', flush=True)\ntime.sleep(1000)\n", "one-reply"),
    "writes until all is full": (
        "import os\nfile = open(os.environ['TMPDIR'] + '/x', 'wb')\n"
        "while True:\n    file.write(bytes(1 << 20))\n",
        "starts",
    ),
    "prints for ever": ("while True:\n    print('x' * 1000)\n", "one-reply"),
    "leaves processes": (
        "import subprocess, sys\n"
        "child = [sys.executable, '-c', 'while True: __import__(\"time\").sleep(1)', sys.argv[1]]\n"
        "subprocess.Popen(child, start_new_session=True)\nsys.exit(7)\n",
        "starts",
    ),
    "reads the files of others": (
        "import subprocess, sys\nsys.exit(subprocess.call(['sh', 'reads.sh'], stdout=2))\n",
        "starts",
    ),
    "connects to the server": (CONNECTS, "starts"),
}
"""Bots in their check: the program, and an item that it fails."""


@dataclass
class Visits:
    """Visitor of pages, from a thread."""

    count: int = 0
    wrong: list[str] = field(default_factory=list)

    @contextmanager
    def going_on(self, course: ServedCourse, student: Student) -> Iterator[None]:
        over = threading.Event()

        def visit() -> None:
            with course.client(student) as browser:
                while not over.wait(VISIT_S):
                    for path in ("/health", "/my"):
                        began = time.monotonic()
                        try:
                            status = browser.get(path).status_code
                        except Exception as error:
                            self.wrong.append(f"{path}: {error!r}")
                        else:
                            seconds = time.monotonic() - began
                            is_late = seconds > ANSWERED_WITHIN_S and seconds > ANSWERED_WITHIN_S * slowness()
                            if status != 200 or is_late:
                                self.wrong.append(f"{path}: {status} after {seconds:.1f} s")
                        self.count += 1

        thread = threading.Thread(target=visit)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCourse]:
    needs_sandbox()
    folder = tmp_path_factory.mktemp("course")
    with served_course(folder, game=GAME, move_s=1.0, check_total_s=HONEST_S) as made:
        try:
            yield made
            made.server.assert_ends()
        finally:
            kill_all_with(MARK)


def packed(**files: str) -> bytes:
    """Return a zip; names have __ in place of the dot."""
    return make_zip(*(Member(name.replace("__", "."), text.encode()) for name, text in files.items()))


def honest(number: int) -> bytes:
    kit = [Member(file.path, file.content) for file in starter()]
    return make_zip(*kit, Member("secret.txt", f"{SECRET} {number}\n".encode()))


def submitted(course: ServedCourse, content: bytes) -> Version:
    """Submit an archive as another student."""
    answer = course.send(content, student=course.student())
    assert answer.status_code == 201, answer.text
    version = course.course.versions.get(answer.json()["version"]["id"])
    assert version is not None
    return version


def filled_in(course: ServedCourse, text: str) -> str:
    return text.replace("{data}", str(course.data)).replace("{port}", str(course.server.port))


def checked(course: ServedCourse, version: Version) -> Checked:
    """Return the result of a check, which its team sees."""
    found = course.course.versions.checked(version.id)
    assert found is not None
    return found


def failures(course: ServedCourse, version: Version) -> dict[str, str]:
    """Return item -> sentence for the failed items of a check."""
    report = checked(course, version).report
    assert report is not None
    return {item["id"]: item["sentence"] for item in report["items"] if item["status"] == "failed"}


def trickled(course: ServedCourse, student: Student) -> bytes:
    """Return the response to an upload of a byte now and then."""
    with course.server.connect() as connection:
        connection.sendall(
            f"POST /api/v1/submissions?name=bot.zip HTTP/1.1\r\nHost: 127.0.0.1:{course.server.port}\r\n"
            f"Authorization: Bearer {student.token}\r\nContent-Length: 1000\r\n\r\n".encode()
        )
        for byte in GOOD:
            if select.select([connection], [], [], VISIT_S)[0]:
                break
            connection.sendall(bytes([byte]))
        return connection.recv(65_536)


def test_the_attacks_work_where_nothing_confines_them(course: ServedCourse, tmp_path: Path) -> None:
    version = submitted(course, honest(0))
    assert course.decided(version.id).state is VersionState.QUALIFIED
    (tmp_path / "make.sh").write_text(filled_in(course, READS))
    (tmp_path / "make.py").write_text(filled_in(course, CONNECTS))
    done = subprocess.run(
        ["sh", "make.sh"], cwd=tmp_path, capture_output=True, check=False, timeout=RUN_LIMIT_S
    )
    assert done.stdout.count(f"{SECRET} 0".encode()) == 2
    assert (course.data / "secret").read_bytes() in done.stdout
    subprocess.run([sys.executable, "make.py"], cwd=tmp_path, check=True, timeout=RUN_LIMIT_S)


def build_attack(course: ServedCourse, name: str) -> Version:
    file, script = BUILDS[name][0]
    runs = "python3" if file.endswith(".py") else "sh"
    manifest = f'command = ["./engine"]\nbuild = ["{runs}", "{file}", "{MARK}"]\nmade = ["engine"]\n'
    files = {"bot__toml": manifest, file.replace(".", "__"): filled_in(course, script)}
    return submitted(course, packed(**files))


def bot_attack(course: ServedCourse, name: str) -> Version:
    manifest = f'command = ["python3", "bot.py", "{MARK}"]\n'
    files = {"bot__toml": manifest, "bot__py": BOTS[name][0], "reads__sh": READS}
    return submitted(course, packed(**{file: filled_in(course, text) for file, text in files.items()}))


@pytest.mark.long
def test_they_are_contained(course: ServedCourse) -> None:
    """All run at once, while a student visits pages and another one uploads as slowly as possible."""
    visits, answered, sender = Visits(), list[bytes](), course.student()
    slow = threading.Thread(target=lambda: answered.append(trickled(course, sender)))
    victim = submitted(course, honest(1))
    assert course.decided(victim.id).state is VersionState.QUALIFIED
    endless = [name for name, (_, words) in BUILDS.items() if words.startswith("took over")]
    with visits.going_on(course, course.student()):
        slow.start()
        built = {name: build_attack(course, name) for name in BUILDS if name not in endless}
        after = [course.decided(version.id) for version in built.values()]
        limit_s = round(min(60.0, CHECK_S * max(1.0, slowness())), 1)
        course.course.settings.change(check_total_s=limit_s)
        built |= {name: build_attack(course, name) for name in endless}
        played = {name: bot_attack(course, name) for name in BOTS}
        after += [course.decided(version.id) for version in (*built.values(), *played.values())]
        course.course.settings.change(check_total_s=HONEST_S)
        assert course.decided(submitted(course, honest(2)).id).state is VersionState.QUALIFIED
        slow.join()
    assert {version.state for version in after} == {VersionState.FAILED}
    for name, version in built.items():
        assert BUILDS[name][1].format(limit=limit_s) in failures(course, version)["found"], name
    for name, version in played.items():
        assert BOTS[name][1] in failures(course, version), (name, failures(course, version))
    for version in after:
        assert SECRET not in repr(checked(course, version))
    deadline = time.monotonic() + GONE_WITHIN_S
    while living_with(MARK):
        assert time.monotonic() < deadline, "processes of a bot are left"
        time.sleep(0.1)
    assert course.incoming() == []
    assert list((course.data / "bots" / "incoming").iterdir()) == []
    assert answered[0].startswith(b"HTTP/1.1 408")
    assert visits.wrong == []
    assert visits.count > 20
