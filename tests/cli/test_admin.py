"""`kalarena admin`: accounts, tokens, rosters, backups and moves from the command line."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result
from sqlalchemy import URL

from tests.support.builders import invoke
from tests.support.courses import FAST_PASSWORDS, NOW, add_account, add_student
from tests.support.databases import address, database_of, server_file_of
from tests.support.ordinary_user import forbid
from tests.support.paths import REPOSITORY_ROOT
from tests.support.postgresql import PostgreSQLServer
from tournaments.cli.admin import ADMIN_COMMANDS
from tournaments.cli.doctor import examine_server
from tournaments.course.course import Course
from tournaments.course.model import LinkPurpose, Role
from tournaments.database.location import POSTGRESQL, SQLITE, Database
from tournaments.web.data_directory import DataDirectory

LINK = re.compile(r"http://127\.0\.0\.1:8000/links/(\S+)")
ROSTER = "login,name,team\ns-1,Student 1,Team 1\ns-2,Student 2,Team 1\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a course with an administrator."""
    data = tmp_path / "data"
    with opened(data) as course:
        add_account(course, Role.ADMIN, "admin")
    data.mkdir(exist_ok=True)
    write_server_file(data)
    return data


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The same, whose database is a file in any case."""
    data = tmp_path / "files"
    with Course(Database(data).course(), FAST_PASSWORDS) as course:
        add_account(course, Role.ADMIN, "admin")
    return data


def opened(data: Path) -> Course:
    return Course(database_of(data).course(), FAST_PASSWORDS)


def write_server_file(data: Path, line: str = "") -> None:
    """With a line beside that which says where the database is."""
    (data / "server.toml").write_text(f"{server_file_of(data)}{line}\n")


def admin(data: Path, *arguments: str | Path) -> Result:
    return invoke("admin", *arguments, "--data", data)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return result.stderr


def secret_of(text: str) -> str:
    found = LINK.search(text)
    assert found, text
    return found[1]


def newest_action(course: Course) -> str:
    return course.journal.entries(1)[0].action


def test_add_prints_a_link_that_works(data: Path) -> None:
    out = done(admin(data, "add", "lecturer-2", "--role", "lecturer", "--name", "Lecturer 2"))
    with opened(data) as course:
        found = course.links.find(secret_of(out), datetime.now(UTC))
        assert found is not None
        account, purpose = found
        assert (account.login, account.name, account.role) == ("lecturer-2", "Lecturer 2", Role.LECTURER)
        assert purpose is LinkPurpose.INVITATION
        assert newest_action(course) == "account.add"


def test_add_a_student_to_a_team_that_is_made_only_if_all_goes_well(data: Path) -> None:
    told = json.loads(done(admin(data, "add", "s-1", "--role", "student", "--team", "Team 1", "--json")))
    assert told["login"] == "s-1"
    assert "is taken" in refused(admin(data, "add", "S-1", "--role", "student", "--team", "Team 2"))
    with opened(data) as course:
        assert [team.name for team in course.teams.all()] == ["Team 1"]


def test_reset_makes_the_earlier_link_void(data: Path) -> None:
    first = secret_of(done(admin(data, "reset", "admin")))
    second = secret_of(done(admin(data, "reset", "admin")))
    with opened(data) as course:
        assert course.links.find(first, datetime.now(UTC)) is None
        found = course.links.find(second, datetime.now(UTC))
        assert found is not None
        assert found[1] is LinkPurpose.RESET
    assert "there is no account 'nobody'" in refused(admin(data, "reset", "nobody"))


def test_links_lead_to_the_public_address(data: Path) -> None:
    write_server_file(data, 'public_url = "https://kalah.example.org"')
    assert done(admin(data, "reset", "admin")).startswith("https://kalah.example.org/links/")
    write_server_file(data, "prot = 1")
    assert "did you mean 'port'?" in refused(admin(data, "reset", "admin"))


def test_the_environment_has_the_directory_and_the_configuration(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "server.toml"
    config.write_text(f'{server_file_of(data)}public_url = "https://kalah.example.org"\n', encoding="utf-8")
    monkeypatch.setenv("KALARENA_DATA", str(data))
    monkeypatch.setenv("KALARENA_CONFIG", str(config))
    assert done(invoke("admin", "reset", "admin")).startswith("https://kalah.example.org/links/")
    given = invoke("admin", "reset", "admin", "--config", data / "server.toml")
    assert done(given).startswith("http://127.0.0.1:8000/links/")
    public = "https://kalah.example.org/links/"
    assert done(admin(data, "reset", "admin")).startswith(public)
    assert done(admin(data / ".." / data.name, "reset", "admin")).startswith(public)
    # The configuration of another directory may name another database.
    for variable in (str(tmp_path), ""):
        monkeypatch.setenv("KALARENA_DATA", variable)
        assert done(admin(data, "reset", "admin")).startswith("http://127.0.0.1:8000/links/")


def test_a_token_works_as_long_as_it_should(data: Path) -> None:
    told = json.loads(done(admin(data, "token", "admin", "--days", "3", "--name", "script", "--json")))
    forever = done(admin(data, "token", "admin")).strip()
    with opened(data) as course:
        for secret in (told["token"], forever):
            account = course.tokens.find(secret, datetime.now(UTC))
            assert account is not None
            assert account.login == "admin"
        owner = course.accounts.by_login("admin")
        assert owner is not None
        kept = course.tokens.of(owner.id)
        assert sorted(token.name for token in kept) == ["kalarena admin", "script"]
        assert told["expires_at"][:10] > datetime.now(UTC).isoformat()[:10]
        entry = course.journal.entries(1)[0]
        assert entry.action == "token.make"
        assert forever not in json.dumps(dict(entry.detail))


def test_a_roster_is_imported_once(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(ROSTER)
    result = admin(data, "roster", "import", path)
    lines = done(result).splitlines()
    assert lines[0] == "login,link"
    assert [line.partition(",")[0] for line in lines[1:]] == ["s-1", "s-2"]
    assert "2 added, 0 moved" in result.stderr
    with opened(data) as course:
        found = course.links.find(secret_of(lines[1]), datetime.now(UTC))
        assert found is not None
        assert found[0].name == "Student 1"
        assert newest_action(course) == "roster.import"
    again = json.loads(done(admin(data, "roster", "import", path, "--json")))
    assert (again["added"], again["links"], again["unchanged"]) == ([], {}, 2)


def test_a_wrong_roster_changes_nothing(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(ROSTER + "s-1,Student 3,Team 2\nadmin,A,Team 1\n")
    told = refused(admin(data, "roster", "import", path))
    assert f"{path}: line 4: " in told
    path.write_text(ROSTER + "admin,A,Team 1\n")
    assert f"{path}: line 4: 'admin' is no student" in refused(admin(data, "roster", "import", path))
    with opened(data) as course:
        assert [account.login for account in course.accounts.all()] == ["admin"]
        assert course.teams.all() == []
    assert "cannot be read" in refused(admin(data, "roster", "import", tmp_path / "no.csv"))


def test_a_backup_and_its_restoration(files: Path, tmp_path: Path) -> None:
    with Course(Database(files).course(), FAST_PASSWORDS) as course:
        add_student(course, course.teams.add("Team 1", NOW), "s-1")
        logins = [account.login for account in course.accounts.all()]
    told = json.loads(done(admin(files, "backup", tmp_path / "b.tar", "--json")))
    assert told["databases"]["course.db"]["account"] == 2
    assert "all verified" in done(admin(tmp_path / "new", "restore", tmp_path / "b.tar"))
    with Course(Database(tmp_path / "new").course(), FAST_PASSWORDS) as course:
        assert [account.login for account in course.accounts.all()] == logins
    assert "not empty" in refused(admin(tmp_path / "new", "restore", tmp_path / "b.tar"))
    assert "is there already" in refused(admin(files, "backup", tmp_path / "b.tar"))


def test_with_a_database_of_its_own_the_rest_is_backed_up(files: Path, tmp_path: Path) -> None:
    (files / "server.toml").write_text('database = "postgresql://user@host/course"\n')
    (files / "course.db").unlink()
    result = admin(files, "backup", tmp_path / "b.tar")
    assert "pg_dump" in (done(result) and result.stderr)
    result = admin(tmp_path / "new", "restore", tmp_path / "b.tar")
    assert "pg_restore" in (done(result) and result.stderr)


def test_a_directory_without_a_course_is_not_made_one(tmp_path: Path) -> None:
    for arguments in (("reset", "admin"), ("token", "admin"), ("backup", tmp_path.parent / "x.tar")):
        assert "course.db" in refused(admin(tmp_path, *arguments))
    assert list(tmp_path.iterdir()) == []


def test_move_refuses_what_makes_no_sense(files: Path, tmp_path: Path) -> None:
    assert "no address" in refused(admin(files, "move", "--to", "course"))
    assert "holds no course.db" in refused(admin(tmp_path, "move", "--to", "postgresql://u@h/d"))
    (files / "server.toml").write_text('database = "postgresql://user@host/course"\n')
    assert "PostgreSQL already" in refused(admin(files, "move", "--to", "postgresql://u@h/d"))


@pytest.mark.parametrize("recorded", [SQLITE, POSTGRESQL])
def test_the_configuration_of_another_kind_of_database_is_refused(
    files: Path, tmp_path: Path, recorded: str
) -> None:
    for kind in (POSTGRESQL, SQLITE):
        with_database = 'database = "postgresql://user@127.0.0.1:1/course"\n'
        (files / "server.toml").write_text(with_database if kind == POSTGRESQL else "")
        DataDirectory(files).record_database(kind)
        assert done(admin(files, "backup", tmp_path / f"{kind}.tar"))
    (files / "server.toml").write_text(with_database if recorded == SQLITE else "")
    DataDirectory(files).record_database(recorded)
    used = "SQLite files" if recorded == SQLITE else "a PostgreSQL database"
    names = "a" if recorded == SQLITE else "no"
    sentence = (
        f"the server of {files} was last started with {used}, but {files / 'server.toml'} names {names} "
        "PostgreSQL database: name the server's configuration with --config, or start the server once with "
        "this one"
    )
    for arguments in (
        ("backup", tmp_path / "b.tar"),
        ("reset", "admin"),
        ("move", "--to", "postgresql://u@127.0.0.1:1/d"),
    ):
        assert sentence in refused(admin(files, *arguments))
    assert not (tmp_path / "b.tar").exists()
    found = examine_server(files, None)
    assert found["database"] == f"does NOT work: {sentence}"
    assert found["database_works"] is False


def test_a_missing_configuration_is_refused_if_the_server_used_postgresql(
    files: Path, tmp_path: Path
) -> None:
    DataDirectory(files).record_database(POSTGRESQL)
    assert f"but there is no {files / 'server.toml'}: name the server's" in refused(
        admin(files, "backup", tmp_path / "b.tar")
    )


def test_move_names_the_configuration_that_is_used(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tournaments.cli.admin.backup.move", lambda *_arguments: None)
    config = tmp_path / "etc.toml"
    config.touch()
    to = ("move", "--to", "postgresql://u@127.0.0.1:1/d")
    assert f"Now say in {files / 'server.toml'}: database" in done(admin(files, *to))
    assert f"Now say in {config}: database" in done(admin(files, *to, "--config", config))


def test_after_a_move_the_new_configuration_is_accepted(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tournaments.cli.admin.backup.move", lambda *_arguments: None)
    DataDirectory(files).record_database(SQLITE)
    done(admin(files, "move", "--to", "postgresql://u@127.0.0.1:1/d"))
    (files / "server.toml").write_text('database = "postgresql://u@127.0.0.1:1/d"\n')
    assert "all verified" in done(admin(files, "backup", tmp_path / "b.tar"))


def test_a_data_directory_that_may_not_be_entered_is_named(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.toml").touch()
    forbid(monkeypatch, "stat", files)
    with_config = ("--config", tmp_path / "server.toml")
    for name, options in (("server.toml", ()), ("database", with_config)):
        sentence = f"{files / name} cannot be read: Permission denied; run this as the server's user"
        for arguments in (
            ("backup", tmp_path / "b.tar"),
            ("reset", "admin"),
            ("move", "--to", "postgresql://u@127.0.0.1:1/d"),
        ):
            assert sentence in refused(admin(files, *arguments, *options))
        config = tmp_path / "server.toml" if options else None
        assert examine_server(files, config)["database"] == f"does NOT work: {sentence}"
    sentence = f"{files / 'server.toml'} cannot be read: Permission denied; run this as the server's user"
    assert sentence in refused(invoke("serve", "--data", files, "--port", "0"))
    inner = examine_server(files / "inner", None)
    assert "inner cannot be read: Permission denied" in inner["database"]


def test_move_to_postgresql(files: Path, postgresql: PostgreSQLServer) -> None:
    with postgresql.database() as target:
        assert isinstance(target.address, URL)
        url = address(target.address)
        told = json.loads(done(admin(files, "move", "--to", url, "--json")))
        assert told[-1]["tables"]["account"]["rows"] == 1
        with Course(target.course(), FAST_PASSWORDS) as course:
            assert [account.login for account in course.accounts.all()] == ["admin"]
        assert "holds something already" in refused(admin(files, "move", "--to", url))


def test_every_subcommand_is_documented() -> None:
    text = (REPOSITORY_ROOT / "docs" / "operations.md").read_text()
    for name in ADMIN_COMMANDS:
        assert f"kalarena admin {name}" in text
