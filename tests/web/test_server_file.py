"""server.toml, the data directory and the first account."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.courses import FAST_PASSWORDS, NOW, use_link
from tests.support.paths import REPOSITORY_ROOT
from tournaments.course.course import Course
from tournaments.course.model import Role
from tournaments.course.people.roster import invite_first_admin
from tournaments.database.base import Location
from tournaments.web.data_directory import DataDirectory, DataDirectoryError
from tournaments.web.server_config import ServerFile, ServerFileError, address_and_port, load_server_file


def load(folder: Path, text: str) -> ServerFile:
    path = folder / "server.toml"
    path.write_text(text, encoding="utf-8")
    return load_server_file(path)


def test_a_file_is_loaded(tmp_path: Path) -> None:
    assert load(tmp_path, "") == ServerFile()
    assert ServerFile().networks == ()
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
        log_format = "json"
        metrics = "[::1]:9464"
        [cluster]
        engine = "slurm"
        queue = "students"
        same_speed = "10%"
        [mail]
        host = "mail.example.org"
        username = "kalah"
        password_env = "MAIL_PASSWORD"
        sender = "Kalah <kalah@example.org>"
        """,
    )
    assert file.mailing is not None
    assert (file.mailing.table.port_used, file.mailing.table.per_minute) == (587, 30)
    assert file.mailing.site == "https://kalah.example.org"
    assert (file.host, file.port, file.places, file.log_level) == ("0.0.0.0", 80, 4, "debug")
    assert (file.log_format, file.metrics) == ("json", "[::1]:9464")
    assert file.metrics is not None
    assert address_and_port(file.metrics) == ("::1", 9464)
    assert file.public_url == "https://kalah.example.org"
    assert [str(network) for network in file.networks] == ["127.0.0.1/32", "10.0.0.0/8", "::1/128"]
    assert file.cluster is not None
    assert (file.cluster.engine, file.cluster.queue, file.cluster.same_speed) == ("slurm", "students", 0.1)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("[cluster]", ["cluster.engine: is missing"]),
        ("[mail]", ["mail.host: is missing", "mail.sender: is missing"]),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org, c@d.org"',
            [
                "mail.sender: must be one address, as in bots@example.org or Bots <bots@example.org>, not "
                "'a@b.org, c@d.org'"
            ],
        ),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org"',
            ["mail: public_url is missing, with which the links in mails begin"],
        ),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org"\nusername = "u"',
            ["mail: username needs either password_file or password_env"],
        ),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org"\nusername = "u"\npassword_env = "P"\nsecurity = "none"',
            ['mail: a password needs security = "starttls" or "tls": everybody could read it'],
        ),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org"\npassword_env = "P"\nsecurtiy = "tls"',
            ["mail.securtiy: unknown key; did you mean 'security'?"],
        ),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org"\npassword_env = "P"',
            ["mail: a password needs a username"],
        ),
        (
            '[mail]\nhost = "h"\nsender = "a@b.org\\nBcc: c@d.org"',
            [
                "mail.sender: must be one address, as in bots@example.org or Bots <bots@example.org>, not "
                "'a@b.org\\nBcc: c@d.org'"
            ],
        ),
        (
            'metrics = "[::1:9464"',
            ["metrics: must be an address and a port, as in 127.0.0.1:9464 or [::1]:9464"],
        ),
        (
            'metrics = "127.0.0.1:99999"',
            ["metrics: must be an address and a port, as in 127.0.0.1:9464 or [::1]:9464"],
        ),
        ('[cluster]\nengine = "local"', ["cluster.engine: must be 'dask' or 'slurm', not 'local'"]),
        (
            '[cluster]\nengine = "dask"\nqueu = "x"',
            ["cluster.queu: unknown key; did you mean 'queue'?"],
        ),
        (
            '[cluster]\nengine = "dask"\nscale_time = true',
            [
                "cluster: scale_time is for the command line's tournaments: on the server's pages "
                "a time limit is the same for all; take same_speed"
            ],
        ),
        (
            """
            prot = 80
            port = "80"
            database = "mysql://x"
            public_url = "kalah.example.org"
            trusted_proxies = ["10.0.0.1/8"]
            places = 0
            log_level = "loud"
            metrics = "9464"
            """,
            [
                "database: must be as in postgresql://USER@HOST/DATABASE; leave it out for SQLite",
                "log_level: must be 'debug', 'info', 'warning' or 'error', not 'loud'",
                "metrics: must be an address and a port, as in 127.0.0.1:9464 or [::1]:9464",
                "places: must be greater than or equal to 1, not 0",
                "port: must be a whole number, not '80'",
                "prot: unknown key; did you mean 'port'?",
                "public_url: must be as in https://bots.example.org: no path, and nothing else",
                "trusted_proxies: '10.0.0.1/8' is no address and no network, such as 127.0.0.1 or 10.0.0.0/8",
            ],
        ),
    ],
)
def test_all_problems_of_a_file_are_shown_at_once(tmp_path: Path, text: str, problems: list[str]) -> None:
    with pytest.raises(ServerFileError) as caught:
        load(tmp_path, text)
    lines = str(caught.value).replace(f"{tmp_path / 'server.toml'}: ", "").splitlines()
    assert sorted(lines) == problems


@pytest.mark.parametrize(
    "url",
    ["https://x.org/kalah", "https://", "ftp://x.org", "https://a@x.org", "https://x.org:0", "https://[",
     "https://x.org?y"],
)  # fmt: skip
def test_a_public_address_is_an_origin(tmp_path: Path, url: str) -> None:
    with pytest.raises(ServerFileError, match="public_url: must be as in"):
        load(tmp_path, f'public_url = "{url}"')


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"port = ", "is not TOML"), (b"# \xff", "it is not UTF-8 text")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "server.toml"
    path.write_bytes(content)
    with pytest.raises(ServerFileError, match=sentence):
        load_server_file(path)


def test_every_key_is_documented() -> None:
    text = (REPOSITORY_ROOT / "docs" / "server.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [key for key in ServerFile.model_fields if not any(f"`{key}`" in row for row in rows)] == []


# The data directory.


def test_one_server_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryError, match="file is no directory"):
        DataDirectory(tmp_path / "file")
    directory = DataDirectory(tmp_path / "a" / "data")
    with (
        directory.locked(),
        pytest.raises(DataDirectoryError, match="another server is at work"),
        DataDirectory(directory.path).locked(),
    ):
        pass
    with directory.locked():
        pass


def test_the_key_of_cookies_stays_private_and_the_same(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    key = directory.key()
    assert len(key) == 32
    assert directory.key() == key
    path = directory.path / "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)  # as after a copy
    assert directory.key() == key
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"")  # as after a full disk
    (directory.path / "secret.part").write_bytes(b"half")
    assert len(directory.key()) == 32
    assert sorted(os.listdir(directory.path)) == ["secret"]  # noqa: PTH208
    assert DataDirectory(tmp_path / "other").key() != key


# The first admin.


def test_the_first_admin_is_invited_until_there_is_a_password(place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as course:
        first = invite_first_admin(course, NOW)
        second = invite_first_admin(course, NOW + timedelta(days=1))
        assert first is not None
        assert second is not None
        assert course.links.find(first, NOW) is None
        admin = use_link(course, second, "a long password", NOW + timedelta(days=2))
        assert (admin.login, admin.role) == ("admin", Role.ADMIN)
        assert invite_first_admin(course, NOW + timedelta(days=3)) is None
        assert len(course.accounts.all()) == 1


def test_nobody_is_invited_to_a_course_with_accounts(place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as course:
        course.accounts.add("lecturer", "Lecturer", Role.LECTURER, None, NOW)
        assert invite_first_admin(course, NOW) is None
        assert len(course.accounts.all()) == 1
