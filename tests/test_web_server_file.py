"""server.toml, the data directory and the first account."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from argon2.profiles import CHEAPEST

from tests.web_site import NOW
from tournaments.course.course import Course
from tournaments.course.model import Role
from tournaments.course.passwords import Passwords
from tournaments.course.roster import invite_first_admin
from tournaments.database.base import Location
from tournaments.web.data_directory import DataDirectory, DataDirectoryError
from tournaments.web.server_config import ServerFile, ServerFileError, load_server_file

ROOT = Path(__file__).parent.parent


def load(folder: Path, text: str) -> ServerFile:
    path = folder / "server.toml"
    path.write_text(text, encoding="utf-8")
    return load_server_file(path)


def test_everything_may_be_left_out(tmp_path: Path) -> None:
    assert load(tmp_path, "") == ServerFile()
    assert ServerFile().networks == ()


def test_everything_may_be_said(tmp_path: Path) -> None:
    file = load(
        tmp_path,
        """
        host = "0.0.0.0"
        port = 80
        database = "postgresql://kalarena@localhost/course"
        public_url = "https://Kalah.example.org/"
        trusted_proxies = ["127.0.0.1", "10.0.0.0/8", "::1"]
        places = 4
        log_level = "debug"
        """,
    )
    assert (file.host, file.port, file.places, file.log_level) == ("0.0.0.0", 80, 4, "debug")
    assert file.public_url == "https://kalah.example.org"
    assert [str(network) for network in file.networks] == ["127.0.0.1/32", "10.0.0.0/8", "::1/128"]


def test_it_may_say_that_tournaments_are_played_elsewhere(tmp_path: Path) -> None:
    table = load(tmp_path, '[cluster]\nengine = "slurm"\nqueue = "students"\nsame_speed = "10%"\n').cluster
    assert table is not None
    assert (table.engine, table.queue, table.same_speed) == ("slurm", "students", 0.1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[cluster]\n", "cluster.engine: is missing"),
        ('[cluster]\nengine = "local"\n', "cluster.engine: must be 'dask' or 'slurm', not 'local'"),
        ('[cluster]\nengine = "dask"\nqueu = "x"\n', "cluster.queu: unknown key; did you mean 'queue'?"),
        (
            '[cluster]\nengine = "dask"\nscale_time = true\n',
            "cluster: scale_time is for the command line's tournaments: on the server's pages a time limit "
            "is the same for all; take same_speed",
        ),
    ],
)
def test_what_is_wrong_with_that_is_said(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ServerFileError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"{tmp_path / 'server.toml'}: {why}"


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ServerFileError) as caught:
        load(
            tmp_path,
            """
            prot = 80
            port = "80"
            database = "mysql://x"
            public_url = "kalah.example.org"
            trusted_proxies = ["10.0.0.1/8"]
            places = 0
            log_level = "loud"
            """,
        )
    lines = str(caught.value).replace(f"{tmp_path / 'server.toml'}: ", "").splitlines()
    assert sorted(lines) == [
        "database: must be as in postgresql://USER@HOST/DATABASE; leave it out for SQLite",
        "log_level: must be 'debug', 'info', 'warning' or 'error', not 'loud'",
        "places: must be greater than or equal to 1, not 0",
        "port: must be integer, not '80'",
        "prot: unknown key; did you mean 'port'?",
        "public_url: must be as in https://bots.example.org: no path, and nothing else",
        "trusted_proxies: '10.0.0.1/8' is no address and no network, such as 127.0.0.1 or 10.0.0.0/8",
    ]


@pytest.mark.parametrize(
    "url",
    ["https://x.org/kalah", "https://", "ftp://x.org", "https://a@x.org", "https://x.org:0", "https://[",
     "https://x.org?y"],
)  # fmt: skip
def test_a_public_address_is_an_origin(tmp_path: Path, url: str) -> None:
    with pytest.raises(ServerFileError, match="public_url: must be as in"):
        load(tmp_path, f'public_url = "{url}"')


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"port = ", "is not TOML"), (b"# \xff", "is not a text in UTF-8")]
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "server.toml"
    path.write_bytes(content)
    with pytest.raises(ServerFileError, match=sentence):
        load_server_file(path)


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "server.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    for key in ServerFile.model_fields:
        assert any(f"`{key}`" in row for row in rows), key


# The data directory.


def test_one_server_at_a_time(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "a" / "data")
    with (
        directory.locked(),
        pytest.raises(DataDirectoryError, match="another server is at work"),
        DataDirectory(directory.path).locked(),
    ):
        pass
    with directory.locked():
        pass


def test_the_key_stays(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    key = directory.key()
    assert len(key) == 32
    assert directory.key() == key
    path = directory.path / "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)  # copied
    assert directory.key() == key
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"")  # a full disk
    (directory.path / "secret.part").write_bytes(b"half")
    assert len(directory.key()) == 32
    assert sorted(os.listdir(directory.path)) == ["secret"]  # noqa: PTH208
    assert DataDirectory(tmp_path / "other").key() != key


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryError, match="file is no directory"):
        DataDirectory(tmp_path / "file")


# The first admin.


def test_the_first_admin_is_invited_until_there_is_a_password(place: Location) -> None:
    with Course(place, Passwords(CHEAPEST)) as course:
        first = invite_first_admin(course, NOW)
        second = invite_first_admin(course, NOW + timedelta(days=1))
        assert first is not None
        assert second is not None
        assert course.links.find(first, NOW) is None
        admin = course.links.use(second, "a long password", NOW + timedelta(days=2))
        assert (admin.login, admin.role) == ("admin", Role.ADMIN)
        assert invite_first_admin(course, NOW + timedelta(days=3)) is None
        assert len(course.accounts.all()) == 1


def test_a_course_that_was_arranged_otherwise_is_left_alone(place: Location) -> None:
    with Course(place, Passwords(CHEAPEST)) as course:
        course.accounts.add("lecturer", "Lecturer", Role.LECTURER, None, NOW)
        assert invite_first_admin(course, NOW) is None
        assert len(course.accounts.all()) == 1
