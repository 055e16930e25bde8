"""The hash chain of a results store: each change of a stored item is detected and named."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, Executable, select, text

from benchmarks.bench_verify import make_store
from referee.judge.results import GameRecord
from tests.cli.test_tournament_run import on_terminal
from tests.support.builders import RUN_LIMIT_S, invoke, make_record, one_object, write_tournament
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tampering import rechain, tampering
from tournaments.database.base import Connections, Location
from tournaments.reporting.verification import Verification
from tournaments.results.chain import (
    Head,
    Item,
    adopted_item,
    digest_of,
    extend,
    ruling_item,
    tournament_item,
)
from tournaments.results.chain_check import ChainCheck, ExpectedHead, HeadError
from tournaments.results.game_summary import PackedGame
from tournaments.results.journal import Action, Entry
from tournaments.results.packing import unpacked
from tournaments.results.schema import chain, game
from tournaments.results.shared_parts import SharedParts
from tournaments.results.store import ChainedStore, Store, StoreError, _row

CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy", "random:1"]\n'
GAMES = 6
OPENINGS = "rounds = 2\nopenings = { random = { plies = 2, seed = 7 } }\n"
KEY = "r001-1v2"
OTHER = "r001-2v1"
ENTRIES = GAMES + 2
"""The tournament, its games, a ruling."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tournament with a ruling, of which only database and file are left; no test changes it."""
    folder = tmp_path_factory.mktemp("played")
    file = write_tournament(folder, CUP)
    assert invoke("tournament", "run", file, "--out", folder / "out").exit_code == 0
    assert invoke("tournament", "void", folder / "out", OTHER, "--why", "x").exit_code == 0
    (folder / "alone").mkdir()
    shutil.copy(folder / "out" / "results.db", folder / "alone")
    shutil.copy(file, folder / "alone" / "cup.toml")
    return folder / "alone"


@pytest.fixture
def copy(played: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may change."""
    return Path(shutil.copytree(played, tmp_path / "out"))


def head_of(directory: Path) -> Head:
    with Store(directory / "results.db", read_only=True) as store:
        head = store.head()
    assert head is not None
    return head


def verified(directory: Path, *arguments: object) -> tuple[int, list[str]]:
    result = invoke("tournament", "verify", directory, *map(str, arguments))
    assert "Traceback" not in result.output
    return result.exit_code, result.output.splitlines()


def rewrite(connection: Connection, change: Callable[[GameRecord], GameRecord], *keys: str) -> None:
    """Store other records, with all columns that follow from them."""
    for key in keys:
        row = connection.execute(
            select(game.c.round, game.c.pair, game.c.record).where(game.c.key == key)
        ).one()
        whole = SharedParts().whole(connection, {key: row.record})
        one = PackedGame.of(change(unpacked(whole[key])), row.round, row.pair)
        values = _row(one, one.packed)
        connection.execute(game.update().where(game.c.key == key).values(values))


def give_to_another_bot(connection: Connection) -> None:
    def renamed(record: GameRecord) -> GameRecord:
        first, second = record.players
        return replace(record, players=(replace(first, name="greedy"), replace(second, name="first_legal")))

    rewrite(connection, renamed, KEY)


def change_digests(connection: Connection) -> None:
    """Change the digest of a bot in the identity and in all records, with its command and the host."""
    noted = json.loads(connection.execute(text("SELECT identity FROM tournament")).scalar_one())
    noted["bots"]["greedy"] = "0" * 64
    connection.execute(text("UPDATE tournament SET identity = :identity"), {"identity": json.dumps(noted)})

    def changed(record: GameRecord) -> GameRecord:
        first, second = (
            replace(one, digest="0" * 64, command=("/else",)) if one.name == "greedy" else one
            for one in record.players
        )
        return replace(record, players=(first, second), host="another")

    rewrite(connection, changed, *connection.execute(select(game.c.key)).scalars().all())


def in_record(**changes: object) -> Callable[[Connection], None]:
    return lambda connection: rewrite(connection, lambda record: replace(record, **changes), KEY)  # type: ignore[arg-type]


def by_sql(statement: Executable) -> Callable[[Connection], None]:
    def tamper(connection: Connection) -> None:
        connection.execute(statement)

    return tamper


def add_game(connection: Connection) -> None:
    values = dict(connection.execute(select(game).where(game.c.key == KEY)).mappings().one())
    connection.execute(game.insert(), {**values, "key": "r002-1v2"})


delete_game = by_sql(game.delete().where(game.c.key == KEY))
CHANGED = rf"{KEY}: it was changed since it was stored as entry \d of the chain"
TAMPERINGS: dict[str, tuple[Callable[[Connection], None], str]] = {
    "game deleted": (
        delete_game,
        rf"{KEY}: this game was stored as entry \d of the chain and is not there any more",
    ),
    "game given to another bot": (give_to_another_bot, CHANGED),
    "digests, commands and host": (
        change_digests,
        r"tournament: its name, what is to be played, or its identity .* stored as entry 1 of the chain",
    ),
    "standard error": (in_record(stderr=("", "it was the host")), CHANGED),
    "start": (in_record(started_at="2020-01-02T03:04:05.678+00:00"), CHANGED),
    "CPU times": (in_record(cpu_us=(1, 1)), CHANGED),
    "sandbox": (in_record(sandbox="none"), CHANGED),
    "ruling changed": (
        by_sql(text("UPDATE journal SET why = 'y'")),
        rf"ruling 1 \(void {OTHER}\): it was changed since it was stored as entry {ENTRIES} of the chain",
    ),
    "ruling deleted": (
        by_sql(text("DELETE FROM journal")),
        rf"ruling 1 \(void {OTHER}\): this ruling was stored as entry {ENTRIES} .* is not there any more",
    ),
    "game added": (add_game, "r002-1v2: this game is in the store, but not in the chain"),
    "entry removed": (
        by_sql(chain.delete().where(chain.c.number == 3)),
        r"chain: 1 entry is missing before entry 4",
    ),
    "entry changed": (
        by_sql(chain.update().where(chain.c.number == 3).values(content="0" * 64)),
        r"chain: entry 3 \(game .*\) does not follow from the entries before",
    ),
    "chain emptied": (
        by_sql(chain.delete()),
        r"chain: it has no entry, but 6 games are stored",
    ),
}


def test_an_unchanged_store_is_verified(played: Path) -> None:
    head = head_of(played)
    assert head.number == ENTRIES
    status, (line, shown, conclusion) = verified(played, "--head", head.digest)
    assert status == 0
    assert line == (
        f"head: {head.digest} is the last of {ENTRIES} entries: nothing was changed or added since (a remark)"
    )
    assert shown == f"head of {played}: {head.digest} (entry {ENTRIES})"
    assert conclusion == f"{GAMES} games verified, nothing wrong"
    assert verified(played, "--head", head.digest[:16].upper(), "--head-number", ENTRIES)[0] == 0


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_detected_and_named(copy: Path, name: str) -> None:
    """If the chain was computed anew, its head shows the change."""
    tamper, expected = TAMPERINGS[name]
    head = head_of(copy)
    with tampering(copy / "results.db") as connection:
        tamper(connection)
    status, lines = verified(copy)
    assert status == 1
    assert any(re.match(expected, line) for line in lines), lines
    if name == "game added" or name.startswith(("entry", "chain")):
        return
    with tampering(copy / "results.db") as connection:
        rechain(connection)
    status, lines = verified(copy, "--head", head.digest, "--head-number", head.number)
    assert status == 1
    (line,) = [line for line in lines if line.startswith("head: ")]
    assert line.startswith(
        f"head: no entry of the chain has the digest {head.digest}: the records were rewritten"
    )
    now = head_of(copy)
    there = f"it was entry {ENTRIES}, and there are {now.number} now" if now.number < ENTRIES else now.digest
    assert there in line
    assert not any(" stored as entry " in line for line in lines)


def test_records_of_another_bot_are_detected_without_a_head(copy: Path) -> None:
    """Names in records and columns were changed, and the chain computed anew: the bots' files differ."""
    with tampering(copy / "results.db") as connection:
        give_to_another_bot(connection)
        rechain(connection)
    _, lines = verified(copy)
    for bot in ("greedy", "first_legal"):
        assert any(line.startswith(f"{KEY}: tournament: digest of {bot}: recorded ") for line in lines)
    assert any(line.startswith(f"{KEY}: schedule: first: recorded 'greedy'") for line in lines)


def test_a_game_that_was_deleted_and_played_again_is_detected(copy: Path) -> None:
    head = head_of(copy)
    with tampering(copy / "results.db") as connection:
        delete_game(connection)
    assert invoke("tournament", "run", copy / "cup.toml", "--out", copy).exit_code == 0
    status, lines = verified(copy, "--head", head.digest)
    assert status == 1
    again = rf"{KEY}: this game was stored as entry \d of the chain and again as entry {ENTRIES + 1}:"
    assert any(re.match(again, line) for line in lines), lines
    assert f"head: {head.digest} is entry {ENTRIES} of {ENTRIES + 1}; added since: 1 game and 0 rulings" in (
        "\n".join(lines)
    )


def test_an_earlier_head_shows_the_items_that_were_added_since(copy: Path) -> None:
    head = head_of(copy)
    assert invoke("tournament", "void", copy, KEY, "--why", "x").exit_code == 0
    more = write_tournament(copy, "rounds = 2\n" + CUP)
    assert invoke("tournament", "run", more, "--out", copy).exit_code == 0
    status, lines = verified(copy, "--head", head.digest[:16])
    assert status == 0
    assert "added since: 6 games, 1 ruling, 1 configuration (a remark)" in lines[0]
    assert lines[-1] == "12 games verified, nothing wrong"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--head", "0123"], "is no head digest: give all its 64 hexadecimal digits, or the first 16"),
        (["--head", "x" * 64], "is no head digest"),
        (["--head-number", "3"], "give the digest, too"),
        ([".", "--head", "0" * 64], "--head is of one tournament"),
    ],
)
def test_bad_heads(played: Path, arguments: list[str], message: str) -> None:
    result = invoke("verify", played, *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_the_head_is_shown_by_run_verify_and_report(copy: Path) -> None:
    result = invoke("tournament", "run", copy / "cup.toml", "--out", copy)
    head = head_of(copy)
    assert f"head     {head.digest} (entry {head.number})" in result.output.splitlines()
    assert invoke("tournament", "report", copy).exit_code == 0
    assert head.digest in (copy / "report" / "index.html").read_text()
    value = one_object(invoke("verify", copy, "--json").output)
    assert value["heads"] == [{"path": str(copy), "head": head.digest, "head_number": head.number}]


@pytest.mark.slow
def test_a_game_with_the_opening_of_another_round_is_detected(tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = write_tournament(tmp_path, CUP + OPENINGS)
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    assert verified(out)[0] == 0
    with Store(out / "results.db") as store:
        one, other = store.record("r001-1v2"), store.record("r002-1v2")
    assert one.opening != other.opening
    with tampering(out / "results.db") as connection:
        rewrite(connection, lambda _: replace(other, key="r001-1v2"), "r001-1v2")
        rechain(connection)
    _, lines = verified(out)
    expected = f"r001-1v2: schedule: opening: recorded {other.opening!r}, but {one.opening!r} follows"
    assert expected in lines


# Chains by hand


def check_of(*items: Item, rulings: Sequence[Item] = (), tournament: Item | None = None) -> ChainCheck:
    """Return the check of a store without games, whose chain has the items."""
    subjects = {item.subject: item for item in rulings}
    return ChainCheck(ChainedStore(list(extend(None, items)), tournament, frozenset(), subjects))


CUP_ITEM = tournament_item("cup", "{}", "{}")
RULING_ITEM = ruling_item(1, "2026-01-02T03:04:05+00:00", "void", KEY, "why", 1, "{}")


@pytest.mark.parametrize(
    ("check", "subject", "words"),
    [
        (
            check_of(Item("word", "x", "0" * 64)),
            "chain",
            "entry 1 is of no kind that there is: 'word'",
        ),
        (
            check_of(adopted_item("then"), adopted_item("later")),
            "chain",
            "entry 2 adopts the store again: its chain was removed once",
        ),
        (
            check_of(adopted_item("then"), rulings=[RULING_ITEM]),
            f"ruling 1 (void {KEY})",
            "this ruling is in the journal, but not in the chain",
        ),
        (
            check_of(adopted_item("then"), tournament=CUP_ITEM),
            "tournament",
            "it is in the store, but not in the chain",
        ),
        (
            check_of(CUP_ITEM),
            "tournament",
            "it was stored as entry 1 of the chain and is not there any more",
        ),
    ],
)
def test_a_chain_that_no_store_writes_is_detected(check: ChainCheck, subject: str, words: str) -> None:
    assert [finding[:2] for finding in check.findings() if not finding.remark] == [(subject, words)]


def test_a_head_of_another_chain_is_named() -> None:
    check = check_of(CUP_ITEM, RULING_ITEM)
    first, second = check.store.links
    moved = check.against(ExpectedHead(second.digest, 1))
    assert moved.text == (
        f"{second.digest} is the digest of entry 2, not 1: entries before it were removed or added"
    )
    assert not check.against(ExpectedHead(second.digest, 2)).text.endswith("removed or added")
    assert check.against(ExpectedHead("0" * 64)).text.endswith("or another tournament")
    alike = [first._replace(digest="0" * 64), second._replace(digest="0" * 63 + "1")]
    ambiguous = ChainCheck(replace(check.store, links=alike))
    with pytest.raises(HeadError, match=f"2 entries begin with {'0' * 16}: give more digits"):
        ambiguous.against(ExpectedHead("0" * 16))


# In each database


def test_the_encoding_is_the_documented_one() -> None:
    """docs/verify.md has this example: chains of all versions depend on it."""
    example = "6bdb8ddf81f94966d62247d0f5cfd6276e78268e40a8be340208ab4f8f75d90f"
    assert digest_of("r001-1v2", 1, "r001-1+2", b"record") == example
    assert example in (REPOSITORY_ROOT / "docs" / "verify.md").read_text()


def problems(store: Store) -> list[str]:
    chained = store.chained()
    assert chained is not None
    return [finding.text for finding in ChainCheck(chained).findings() if not finding.remark]


AT = "2026-01-02T03:04:05+00:00"
COLUMNS = {"game": "round", "chain": "number", "journal": "why"}
"""Table that is never changed -> one of its columns."""


def fill(place: Location) -> None:
    with Store(place) as store:
        store.claim("cup", {"rounds": 1}, {"game": "kalah"})
        store.add_all([PackedGame.of(make_record(key), 1) for key in (KEY, OTHER)])
        store.note(Entry(Action.VOID, KEY, "why", 1, AT), Entry(Action.VOID, OTHER, "why", 1, AT))
        store.claim("cup", {"rounds": 2}, {"game": "kalah"})


def test_the_database_refuses_changes(place: Location) -> None:
    fill(place)
    statements = [f"DELETE FROM {table}" for table in COLUMNS]
    statements += [f"UPDATE {table} SET {column} = {column}" for table, column in COLUMNS.items()]
    if place.noun == "file":
        statements += [f"REPLACE INTO {table} SELECT * FROM {table}" for table in COLUMNS]
    else:
        statements += [f"TRUNCATE {table}" for table in COLUMNS]
    row = "(number, at, action, subject, why, round, data) VALUES (1, '', 'void', 'x', 'y', 1, '{}')"
    statements.append(f"INSERT INTO journal {row} ON CONFLICT (number) DO UPDATE SET why = 'z'")
    with Connections(place) as connections:
        for statement in statements:
            with (
                pytest.raises(StoreError, match=r"never changed|only added to|only ever added to"),
                connections.writing() as connection,
            ):
                connection.exec_driver_sql(statement)
    with Store(place) as store:
        assert problems(store) == []
        assert store.add(make_record("r001-1v3"), 1)
        store.note(Entry(Action.VOID, KEY, "why", 1, AT))


def test_changes_are_detected_in_each_database(place: Location) -> None:
    """Everything is chained in the order of storing."""
    fill(place)
    with Store(place, read_only=True) as store:
        chained = store.chained()
        assert chained is not None
        kinds = [link.kind for link in chained.links]
        assert kinds == ["tournament", "game", "game", "ruling", "ruling", "tournament"]
        assert [link.number for link in chained.links] == [1, 2, 3, 4, 5, 6]
        assert problems(store) == []
        assert store.head() == chained.head
    with tampering(place) as connection:
        connection.execute(game.delete().where(game.c.key == KEY))
        connection.execute(text("UPDATE journal SET why = 'z' WHERE number = 2"))
        connection.execute(text("UPDATE tournament SET config = 'x'"))
    with Store(place) as store:
        texts = problems(store)
    assert len(texts) == 3
    assert texts[0] == "this game was stored as entry 2 of the chain and is not there any more"
    assert texts[1] == "it was changed since it was stored as entry 5 of the chain"
    assert "was changed since it was stored as entry 6" in texts[2]


# Many games


MANY = 120
ENOUGH_FOR_TWO = f"tournaments.reporting.verification.GAMES_PER_PROCESS = {MANY // 2}"
"""Statement after which so many games are verified by two processes, as 400 games are otherwise."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("many")
    make_store(directory, MANY)
    with tampering(directory / "results.db") as connection:
        for key in ("r003-1v2", "r050-2v1", "r051-1v2"):
            rewrite(connection, lambda record: replace(record, host="another"), key)
    return directory


@pytest.mark.slow
def test_several_processes_find_the_same_in_the_same_order(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tournaments.reporting.verification.GAMES_PER_PROCESS", MANY // 2)
    seen: list[tuple[int, int]] = []
    verification = Verification(processes=2, progress=lambda done, total: seen.append((done, total)))
    found = [str(one) for one in verification.of_directory(many)]
    assert seen == [(number, MANY) for number in range(1, MANY + 1)]
    assert found == [str(one) for one in Verification().of_directory(many)]
    assert [line.partition(":")[0] for line in found] == ["r003-1v2", "r050-2v1", "r051-1v2"]


@pytest.mark.slow
def test_a_terminal_shows_progress(many: Path) -> None:
    status, shown = on_terminal(many.parent, "verify", str(many), columns=80, lines=24)
    assert status == 1
    assert re.search(rf"\rgame \d+ of {MANY}\x1b\[K", shown)
    assert shown.splitlines()[-1] == f"3 of {MANY} games do not follow from their records"


def is_running(pid: str) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_ctrl_c_ends_all_processes(many: Path) -> None:
    code = f"import tournaments.reporting.verification\n{ENOUGH_FOR_TWO}\n"
    code += "from tournaments.cli.main import entry\nentry()"
    command = [sys.executable, "-c", code, "verify", str(many), "--jobs", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + RUN_LIMIT_S
    while len(children.read_text().split()) < 2:  # the first of them may be a helper of Python's own
        assert time.monotonic() < deadline
        time.sleep(0.01)
    started = children.read_text().split()
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert (process.returncode, errors) == (130, ""), output
    while any(map(is_running, started)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
