"""The image of docs/deploy/Containerfile, built and run by an ordinary user: it confines bots and serves."""

import json
import re
from typing import Any

import pytest
import yaml

from referee.version import VERSION
from tests.deploy.podman import IMAGE, Podman
from tests.support.paths import REPOSITORY_ROOT

DEPLOY = REPOSITORY_ROOT / "docs" / "deploy"
KALARENA = "/opt/kalarena/bin/kalarena"
UNMASK = "--security-opt=systempaths=unconfined"
READ_PAGE = """
import time, urllib.error, urllib.request
end = time.monotonic() + 300
while True:
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8000/").read().decode())
        break
    except urllib.error.URLError:  # it is starting
        if time.monotonic() > end:
            raise
        time.sleep(0.2)
"""


def options() -> list[str]:
    """Return the options of the server's container in the compose file."""
    server = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["server"]
    drop = [f"--cap-drop={name}" for name in server["cap_drop"]]
    return drop + [f"--security-opt={option}" for option in server["security_opt"]]


def doctor(podman: Podman, *run_options: str) -> dict[str, Any]:
    done = podman.attempt("run", "--rm", "--network=none", *run_options, IMAGE, "doctor", "--json")
    health: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if health["confines"] else 1), done.stderr
    return health


def test_the_operators_page_has_the_options_of_the_compose_file() -> None:
    page = (REPOSITORY_ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert UNMASK in options()
    assert [option for option in options() if option not in page] == []


def test_each_variable_that_the_compose_file_needs_has_a_message() -> None:
    """Without one, Debian 12's podman-compose takes the text "${NAME:?}" for the value, a password's, too."""
    needed = re.findall(r"\$\{(\w+):\?([^}]*)\}", (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert {name for name, _message in needed} == {"KALARENA_SITE", "KALARENA_DATABASE_PASSWORD"}
    assert all(message for _name, message in needed)


def test_the_image_and_the_compose_file_start_the_server_in_the_same_way() -> None:
    """The directory of the image's variable is meant: with `--data`, a configuration could be ignored."""
    containerfile = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    image = containerfile.partition("AS kalarena\n")[2].partition("\nFROM ")[0]
    assert "ENV KALARENA_DATA=/var/lib/kalarena\n" in image
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["server"]
    (command,) = re.findall(r"^CMD (.*)$", image, re.MULTILINE)
    assert json.loads(command) == service["command"]


@pytest.mark.image
def test_doctor_says_that_bots_are_confined(podman: Podman) -> None:
    health = doctor(podman, *options())
    assert health["confines"] is True
    assert health["tier"].startswith("bubblewrap")
    assert health["seccomp"] is health["network_unreachable"] is True
    assert health["bot_user"] == 900


@pytest.mark.image
def test_doctor_names_the_option_without_which_they_are_not(podman: Podman) -> None:
    health = doctor(podman, *(option for option in options() if option != UNMASK))
    assert (health["tier"], health["confines"]) == ("weak", False)
    assert "Can't mount proc" in health["why_not_better"]
    option = health["advice"].removeprefix("podman run ").removesuffix(" ...").replace("opt ", "opt=")
    advised = doctor(podman, *(one for one in options() if one != UNMASK), option)
    assert advised["confines"] is True


@pytest.mark.image
def test_a_confined_game_is_played_and_a_page_is_served(podman: Podman) -> None:
    """One container, since each start takes seconds; it is asked from within, so that it needs no network."""
    name = podman("run", "--detach", "--network=none", *options(), IMAGE).strip()
    run = ("exec", name, KALARENA)
    try:
        assert "Kalarena" in podman("exec", name, "/opt/kalarena/bin/python", "-c", READ_PAGE)
        assert podman(*run, "--version") == f"kalarena {VERSION}\n"
        play = ("play", "minimax:2", "first_legal", "--game", "kalah(3,2)", "--sandbox", "required")
        podman(*run, *play, "--record", "game.json")
        record = json.loads(podman("exec", name, "cat", "game.json"))
        assert record["sandbox"].startswith("bubblewrap")
        assert (record["reason"], record["fault"]) == ("score", None)
        podman(*run, "verify", "game.json")
        podman("exec", name, "/opt/kalarena/bin/python", "-c", "import numba, psycopg, xlsxwriter")
        podman("stop", name)
        assert podman("inspect", "--format", "{{.State.ExitCode}}", name) == "0\n"
    except AssertionError:
        print(podman.attempt("logs", name))
        raise
    finally:
        podman("rm", "--force", "--volumes", name)
