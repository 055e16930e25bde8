"""The services of docs/deploy/compose.yaml, run by an ordinary user: a course with TLS and PostgreSQL."""

import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.deploy.podman import BUILD_ARGUMENTS, PROJECT, Podman, needs_services
from tests.support.builders import kalarena
from tests.support.paths import REPOSITORY_ROOT

IMAGES = ("kalarena", "kalarena-database", "kalarena-proxy")
ROOT_CERTIFICATE = "/var/lib/caddy/pki/authorities/local/root.crt"
"""Certificate of Caddy's own authority, which signs for localhost."""
PASSWORD = "a long good phrase"
LIMIT_S = 300.0
"""Bound for the start of the services, which takes ten seconds, and for the first game on a busy machine."""


@dataclass
class Course:
    """The running services."""

    podman: Podman
    folder: Path
    """Folder with the compose file, .env and server.toml."""
    url: str
    certificate: Path

    def __call__(self, service: str, *command: str) -> str:
        """Run a command in the container of a service and return its output."""
        # podman-compose exec of Debian 12 writes lines of its own to the output.
        return self.podman("exec", container(service), *command).strip()

    def admin(self, *arguments: str) -> str:
        return self("server", "kalarena", "admin", *arguments)

    def browser(self) -> httpx2.Client:
        tls = ssl.create_default_context(cafile=str(self.certificate))
        return httpx2.Client(verify=tls, base_url=self.url, headers={"origin": self.url}, timeout=LIMIT_S)

    def health(self) -> Any:
        """Return what /health responds, as soon as it is served."""
        end = time.monotonic() + LIMIT_S
        with self.browser() as browser:
            while True:
                try:
                    shown = browser.get("/health")
                except httpx2.TransportError:  # the proxy is starting
                    shown = httpx2.Response(502)
                if shown.status_code == 200 or time.monotonic() > end:
                    return shown.json()
                time.sleep(0.2)

    def submit(self, bot: Path, login: str) -> dict[str, Any]:
        """Submit a bot and return the report of its check."""
        options = ("--server", self.url, "--json", "--token", self.admin("token", login))
        done = kalarena(self.folder, "submit", bot, *options, SSL_CERT_FILE=str(self.certificate))
        assert done.returncode == 0, done.stdout + done.stderr
        report: dict[str, Any] = json.loads(done.stdout)["report"]
        return report


def container(service: str) -> str:
    """Return the name that podman-compose gives to a container."""
    return f"{PROJECT}_{service}_1"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def course(podman: Podman, build_context: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """A course as docs/operations.md starts one, with ports of its own."""
    needs_services()
    folder = build_context / "docs/deploy"
    http, https = free_port(), free_port()
    url = f"https://localhost:{https}"
    (folder / ".env").write_text(
        f"KALARENA_SITE=localhost\nKALARENA_DATABASE_PASSWORD=it's/secret\n"
        f"KALARENA_HTTP=127.0.0.1:{http}\nKALARENA_HTTPS=127.0.0.1:{https}\n",
        encoding="utf-8",
    )
    (folder / "server.toml").write_text(
        f'public_url = "{url}"\ntrusted_proxies = ["10.89.0.0/16"]\n'
        'database = "postgresql://kalarena@database/kalarena"\n',
        encoding="utf-8",
    )
    for name in (".env", "server.toml"):
        (folder / name).chmod(0o644)
    certificate = tmp_path_factory.mktemp("tls") / "root.crt"
    course = Course(podman, folder, url, certificate)
    try:
        podman.compose(folder, "build", *BUILD_ARGUMENTS)
        podman.compose(folder, "up", "--detach")
        end = time.monotonic() + LIMIT_S
        while True:  # until Caddy has made its authority
            found = podman.attempt("exec", container("proxy"), "cat", ROOT_CERTIFICATE)
            if found.returncode == 0 and found.stdout:
                break
            assert time.monotonic() < end, found
            time.sleep(0.2)
        certificate.write_text(found.stdout, encoding="ascii")
        yield course
    finally:
        for service in ("database", "server", "proxy"):  # shown if a test fails
            print(podman.attempt("logs", "--tail=20", container(service)))
        podman.compose(folder, "down", "--volumes")
        podman("network", "rm", f"{PROJECT}_default")  # which podman-compose 1.0 leaves
        podman("rmi", "--force", *IMAGES)
    assert PROJECT not in podman("volume", "ls")


@pytest.mark.image
def test_the_site_is_served_with_tls_and_postgresql(course: Course) -> None:
    assert course.health()["database"] == "ok"
    with course.browser() as browser:
        assert "Kalarena" in browser.get("/", follow_redirects=True).text
    doctor = json.loads(course("server", "kalarena", "doctor", "--json"))
    assert doctor["database"].startswith("PostgreSQL")
    assert (doctor["tier"].split(":")[0], doctor["confines"]) == ("bubblewrap", True)


@pytest.mark.image
def test_a_bot_is_checked_confined_and_plays_on_the_ladder_while_a_page_follows(course: Course) -> None:
    assert course.health()["database"] == "ok"
    link = course.admin("add", "student", "--role", "student", "--team", "Ants")
    assert link.startswith(f"{course.url}/links/")
    report = course.submit(REPOSITORY_ROOT / "sample_bots/random_bot.py", "student")
    assert report["ok"] is True
    assert report["sandbox"].startswith("bubblewrap")
    with course.browser() as browser:
        csrf = re.search(r'name="csrf" value="([^"]*)"', browser.get(link).text)
        assert csrf
        form = {"csrf": csrf[1], "password": PASSWORD, "again": PASSWORD}
        assert browser.post(link, data=form).status_code == 303
        with browser.stream("GET", "/events") as events:
            playing = next(line for line in events.iter_lines() if "Ants v1" in line)
        assert playing.startswith("data: ")
        end = time.monotonic() + LIMIT_S
        while not (games := games_of(browser, "Ants v1")):
            assert time.monotonic() < end, "no game of the ladder has ended"
            time.sleep(0.2)
        game = browser.get(f"/competitions/practice/games/{games[0]}/game.json").json()
        assert game["sandbox"].startswith("bubblewrap")
        assert game["fault"] is None


def games_of(browser: httpx2.Client, bot: str) -> list[str]:
    """Return the keys of a bot's finished games on the practice ladder."""
    shown = browser.get("/competitions/practice/games", params={"bot": bot}).text
    return re.findall(r'/competitions/practice/games/([a-z0-9-]+)"', shown)


@pytest.mark.image
def test_a_backup_is_made_and_a_restart_keeps_the_data(course: Course) -> None:
    assert course.health()["database"] == "ok"
    course.admin("add", "lecturer", "--role", "lecturer")
    assert "all verified" in course.admin("backup", "/tmp/kalarena.tar")
    assert "kalarena" in course(
        "database", "sh", "-c", "pg_dump --format=custom kalarena | pg_restore --list"
    )
    course.podman.compose(course.folder, "restart", "server", "database")
    assert course.health()["database"] == "ok"
    assert course.admin("reset", "lecturer").startswith(f"{course.url}/links/")
