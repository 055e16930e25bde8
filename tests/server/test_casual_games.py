"""Casual games with real bots in real worker processes, and their table in the database."""

import errno
import multiprocessing.util
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from referee.games.catalog import parse_game
from referee.games.opening import OpeningError
from tests.server.harness import ServiceHarness, open_service, starter, until, upload
from tests.support.courses import FAST_PASSWORDS, NOW
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.course.casual_games import CasualPlayer, with_move
from tournaments.course.course import Course
from tournaments.course.model import CourseError, VersionState
from tournaments.database.base import Location, StoreError
from tournaments.engines.base import EngineError
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.casual import games, session_pool
from tournaments.server.casual.games import CasualGames
from tournaments.server.casual.positions import Continuation, continuation, opening_at, states_of
from tournaments.server.casual.table import NotYourTurnError, Table
from tournaments.server.metrics import PlayEnd
from tournaments.server.slots import Kind

GAME = "manchester(4,3)"
SHORT = "kalah(2,2)"
"""A game of few turns, for a bot that is started anew for each of its turns."""
ME = "account 1"
PERSON = CasualPlayer("Ada", ME)
TURN_LIMIT_S = 120
"""Far more than a bot's turn takes, its start on a busy machine included."""


def bot(text: str = "ladder:2") -> CasualPlayer:
    return CasualPlayer(text, reference=text)


NO_OPENINGS = SubmittedFile("bot.toml", b"command = ['python3', 'bot.py']\n")
"""Manifest of a bot that declares no capabilities."""


async def qualified(harness: ServiceHarness) -> CasualPlayer:
    """Return a version of the starter that takes no openings, when it has qualified.

    With the fixture ``checks`` it is built at its first game, as after a restored backup.
    """
    script = next(file for file in starter() if file.path == "bot.py")
    version = await harness.decided((await harness.submit("Team 1", upload(NO_OPENINGS, script))).id)
    assert version.state is VersionState.QUALIFIED
    return CasualPlayer("version 1", version_id=version.id)


@asynccontextmanager
async def playing(data: Path, **settings: Any) -> AsyncIterator[tuple[ServiceHarness, CasualGames]]:
    async with open_service(data, **{"sandbox_mode": "required", **settings}) as harness:
        yield harness, harness.service.casual


async def begin(casual: CasualGames, first: CasualPlayer, second: CasualPlayer, game: str = GAME) -> Table:
    started = await casual.start(game, (first, second))
    table = await casual.table(started.address)
    assert table is not None
    return table


async def turn(table: Table, side: int = 0) -> bool:
    """Wait for a player's turn; return False at the end of the game."""
    while table.to_move not in (side, None):
        assert not table.trouble, table.trouble
        with trio.fail_after(TURN_LIMIT_S):
            await table.changed.wait()
    return table.to_move is not None


def first_legal(table: Table) -> str:
    return table.rules.format_move(table.state, table.rules.legal_moves(table.state)[-1])


async def play_on(casual: CasualGames, table: Table, side: int = 0) -> None:
    while await turn(table, side):
        await casual.move(table, ME, len(table.game.moves), first_legal(table))


@pytest.mark.slow
@pytest.mark.parametrize(("game", "side"), [(GAME, 0), (GAME, 1), ("kalamala+cap=30", 0)])
async def test_a_whole_game_is_in_the_database(tmp_path: Path, game: str, side: int) -> None:
    async with playing(tmp_path / "data") as (harness, casual):
        players = (PERSON, bot()) if side == 0 else (bot(), PERSON)
        table = await begin(casual, *players, game)
        await play_on(casual, table, side)
        stored = harness.course.casual_games.by_address(table.game.address)
        assert stored == table.game
        assert stored.ended_at == NOW
        rules = parse_game(game)
        outcome = rules.outcome(states_of(rules, "", stored.moves)[-1])
        assert outcome is not None
        assert (stored.winner is None) == (outcome.winner is None)
        await until(lambda: table.session is None)
        assert harness.service.slots.status()[Kind.PLAY].taken == 0


async def test_a_bot_that_cannot_begin_yet_begins_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, run = trio.Event(), CasualGames.run

    async def run_later(casual: CasualGames) -> None:
        await released.wait()
        await run(casual)

    monkeypatch.setattr(CasualGames, "run", run_later)
    monkeypatch.setattr(games, "MOST_TABLES", 1)  # a game that waits for its bot is not dropped for another
    async with playing(tmp_path / "data") as (_harness, casual):
        tables = [await begin(casual, bot(), PERSON) for _ in range(2)]
        fresh = await begin(casual, PERSON, bot())
        released.set()
        for table in tables:
            assert await turn(table, 1)
        await until(lambda: fresh.waits_for_person)


async def test_a_move_that_was_taken_back_is_played_again(tmp_path: Path) -> None:
    async with playing(tmp_path / "data") as (_harness, casual):
        table = await begin(casual, PERSON, bot())
        with pytest.raises(CourseError, match="no move of yours"):
            await casual.take_back(table, ME)
        await casual.move(table, ME, 0, "2")
        await turn(table)
        await casual.take_back(table, ME)
        assert (table.game.moves, table.game.revision, table.to_move) == ((), 1, 0)
        await casual.move(table, ME, 0, "3")
        await turn(table)
        assert table.game.moves[0] == "3"
        assert len(table.game.moves) > 1
        await casual.resign(table, ME)
        assert table.game.sentence == "Ada resigned."


@pytest.mark.slow
async def test_a_game_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    async with playing(tmp_path / "data") as (_harness, casual):
        table = await begin(casual, bot(), PERSON)
        await turn(table, 1)
        await casual.move(table, ME, len(table.game.moves), "SWAP")
        before = table.game.moves
    async with playing(tmp_path / "data") as (_harness, casual):
        found = await casual.table(table.game.address)
        assert found is not None
        assert found.game.moves[: len(before)] == before
        with casual.watch(found):  # as the page does
            await turn(found, 1)
            await play_on(casual, found, 1)
        assert found.game.ended_at is not None


async def test_a_session_ends_while_the_person_thinks_and_another_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "IDLE_S", 0.01)
    async with playing(tmp_path / "data") as (harness, casual):
        table = await begin(casual, PERSON, bot())
        await until(lambda: table.session is None)
        assert harness.service.slots.status()[Kind.PLAY].taken == 0
        await play_on(casual, table)
        assert table.game.ended_at is not None


async def test_thinking_people_hold_no_slot_and_give_way_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(games, "SESSIONS_OF_SLOT", 1)
    async with playing(tmp_path / "data") as (harness, casual):
        tables = []
        for _ in range(4):  # with room for two
            table = await begin(casual, PERSON, bot())
            await casual.move(table, ME, 0, "2")
            tables.append(table)
        for table in tables:
            await turn(table)
        await until(lambda: harness.service.slots.status()[Kind.PLAY].taken == 0)
        assert sum(table.session is not None for table in tables) <= 2


@pytest.mark.slow
async def test_a_bot_answers_a_move_that_is_made_just_when_another_session_needs_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(games, "SESSIONS_OF_SLOT", 1)
    async with playing(tmp_path / "data") as (_harness, casual):
        tables = [await begin(casual, PERSON, bot()) for _ in range(2)]  # as many as there is room for
        await until(lambda: all(table.waits_for_person for table in tables))
        longest = min(tables, key=lambda table: table.since)
        await casual.move(longest, ME, 0, "2")
        # Another session begins before the task of this one runs: Trio's order within a tick is random.
        casual._sessions._make_room(casual._sessions._room)
        assert longest.session is not None
        assert await turn(longest)


@pytest.mark.slow
@pytest.mark.usefixtures("checks")
async def test_teams_bots_have_room_for_few_sessions_beside_reference_players(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may hold as much memory as a bot may use."""
    monkeypatch.setattr(games, "VERSIONS_OF_SLOT", 1)
    async with playing(tmp_path / "data") as (harness, casual):
        version = await harness.decided((await harness.submit("Team 1", upload(*starter()))).id)
        own = CasualPlayer("version 1", version_id=version.id)
        tables = [await begin(casual, PERSON, player, "kalah(4,3)") for player in (bot(), own, own, own)]
        for table in tables:
            await casual.move(table, ME, 0, "1")
            await turn(table)
        await until(lambda: harness.service.slots.status()[Kind.PLAY].taken == 0)
        assert tables[0].session is not None
        assert 1 <= sum(table.session is not None for table in tables[1:]) <= 2


CRASHES = """
import sys
for line in sys.stdin:
    if line.rstrip().endswith(";YOU") or line.startswith("START;South"):
        print("MOVE;99", flush=True)
    elif line == "END\\n":
        break
"""


@pytest.mark.slow
async def test_an_own_version_that_takes_no_openings_and_one_that_errs(tmp_path: Path) -> None:
    async with playing(tmp_path / "data") as (harness, casual):
        own = await qualified(harness)
        table = await begin(casual, PERSON, own, "kalah(4,3)")
        await casual.move(table, ME, 0, "1")
        await turn(table)
        with pytest.raises(CourseError, match="start a new game"):
            await casual.take_back(table, ME)
        await play_on(casual, table)
        assert table.game.ended_at is not None

        wrong = await harness.submit("Team 2", upload(NO_OPENINGS, SubmittedFile("bot.py", CRASHES.encode())))
        await harness.decided(wrong.id)
        table = await begin(casual, PERSON, CasualPlayer("version 1", version_id=wrong.id), "kalah(4,3)")
        await casual.move(table, ME, 0, "1")
        assert not await turn(table)
        assert table.game.winner == 0
        assert "it sent 'MOVE;99'" in table.game.sentence
        ends = (PlayEnd.RULES, PlayEnd.FAULT)
        for line in (f'kalarena_play_games_total{{end="{end.value}"}} 1.0' for end in ends):
            assert line in harness.service.metrics.page().decode()


@pytest.mark.slow
@pytest.mark.usefixtures("checks")
async def test_a_move_while_a_bot_without_openings_waits_for_room_is_answered(tmp_path: Path) -> None:
    async with playing(tmp_path / "data") as (harness, casual):
        own = await qualified(harness)
        casual._sessions._room_of_versions.total_tokens = 1
        other = await begin(casual, PERSON, own, "kalah(4,3)")
        await until(lambda: other in casual._sessions._sessions)
        table = await begin(casual, PERSON, own, "kalah(4,3)")
        await casual.move(table, ME, 0, "1")
        await casual.resign(other, ME)
        await play_on(casual, table)
        assert table.game.ended_at is not None


LEAVES = """
import os, sys
for line in sys.stdin:
    if line.rstrip().endswith(";YOU"):
        os.write(1, b"MOVE;4\\n")
        os._exit(3)
    if line == "END\\n":
        break
"""


@pytest.mark.slow
@pytest.mark.usefixtures("checks")
async def test_a_bot_that_ends_in_the_persons_turn_loses_and_others_play_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be suspended before it ends: then it ends after the next move."""
    monkeypatch.setattr(session_pool, "IDLE_S", 0.01)
    monkeypatch.setattr(session_pool, "MOST_IDLE_TIMES", 10**9)
    async with playing(tmp_path / "data") as (harness, casual):
        version = await harness.submit(
            "Team 1", upload(NO_OPENINGS, SubmittedFile("bot.py", LEAVES.encode()))
        )
        await harness.decided(version.id)
        other = await begin(casual, bot(), PERSON, SHORT)
        table = await begin(casual, PERSON, CasualPlayer("version 1", version_id=version.id))
        with casual.watch(table):
            await casual.move(table, ME, 0, "1")
            while await turn(table) and table.session is not None:
                with suppress(NotYourTurnError, CourseError):
                    await casual.move(table, ME, len(table.game.moves), first_legal(table))
        assert table.game.winner == 0
        assert "ended" in table.game.sentence or "exit" in table.game.sentence
        await play_on(casual, other, 1)
        assert other.game.ended_at is not None
        assert casual._context.failures.newest() == ()


@pytest.mark.slow
@pytest.mark.usefixtures("checks")
async def test_a_bot_without_openings_keeps_its_room_while_the_page_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pool, "IDLE_S", 0.05)
    monkeypatch.setattr(session_pool, "MOST_IDLE_TIMES", 3)
    async with playing(tmp_path / "data", game="kalah(4,3)") as (harness, casual):
        own = await qualified(harness)
        table = await begin(casual, PERSON, own, "kalah(4,3)")
        await casual.move(table, ME, 0, "1")
        await turn(table)
        await until(lambda: table.session is None)
        await casual.move(table, ME, len(table.game.moves), first_legal(table))
        await until(lambda: table.trouble)
        assert "cannot begin in the middle of a game" in table.trouble


@pytest.mark.slow
async def test_bots_play_on_after_their_task_was_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(games, "SWEEP_S", 0.01)
    async with playing(tmp_path / "data") as (_harness, casual):
        table = await begin(casual, PERSON, bot())
        await until(lambda: table.session is not None)
        sweeps = [StoreError("the database is away"), ValueError("a bug")]

        async def sweep() -> None:
            if sweeps:
                raise sweeps.pop(0)

        monkeypatch.setattr(casual, "_sweep", sweep)
        with casual.watch(table):
            await until(lambda: not sweeps and table.session is not None)
            await play_on(casual, table)
        assert table.game.ended_at is not None


async def test_a_bot_that_cannot_be_started_is_explained_and_tried_again(tmp_path: Path) -> None:
    async with playing(tmp_path / "data") as (_harness, casual):
        table = await begin(casual, PERSON, CasualPlayer("version 9", version_id=9))
        await until(lambda: table.trouble)
        assert table.trouble == session_pool.CANNOT_RUN
        with pytest.raises(CourseError, match=f"^{re.escape(session_pool.CANNOT_RUN)}$"):
            await casual.take_back(table, ME)
        casual.retry(table)
        assert table.session is not None
        await until(lambda: table.trouble)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (StoreError("postgresql://kalarena@db/course: no connection", is_ours=True), session_pool.CANNOT_RUN),
        (EngineError("no worker in /srv/kalarena/scratch"), session_pool.CANNOT_RUN),
        (CannotPlayError("v1", "/srv/kalarena/bots is full", is_ours=True), session_pool.CANNOT_RUN),
        (CannotPlayError("v1", "no command", is_ours=False), "The bot cannot play: v1: no command"),
    ],
    ids=["database", "engine", "host", "bot"],
)
async def test_only_the_operator_sees_why_the_server_cannot_run_a_bot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, shown: str
) -> None:
    async def fail(*_: object) -> None:
        raise error

    async with playing(tmp_path / "data") as (_harness, casual):
        monkeypatch.setattr(casual._context.bots, "player", fail)
        table = await begin(casual, PERSON, bot())
        await until(lambda: table.trouble)
        assert table.trouble == shown
        assert [one.why for one in casual._context.failures.newest()] == [str(error)]


@pytest.mark.slow
@pytest.mark.usefixtures("started_workers")
async def test_a_worker_that_cannot_be_started_ahead_ends_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async with playing(tmp_path / "data") as (_harness, casual):
        table = await begin(casual, bot(), PERSON)
        await until(lambda: table.waits_for_person)
        session = table.session
        monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", fail)
        casual.prepare()
        await until(casual._context.failures.newest)
        assert table.session is session is not None
        (failure,) = casual._context.failures.newest()
        assert (failure.where, "Too many open files" in failure.why) == ("casual games", True)


async def test_a_game_goes_on_after_a_move_whose_commit_was_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection to the database is lost after the commit, and with ``is_away`` cannot be made again."""
    async with playing(tmp_path / "data") as (harness, casual):
        store = harness.course.casual_games
        for is_away in (False, True):
            table = await begin(casual, PERSON, CasualPlayer("Bob", "account 2"))
            with monkeypatch.context() as lost:

                def save(*games: Any, save: Any = store.save) -> None:
                    save(*games)
                    raise StoreError("the connection is lost", is_ours=True)

                def fail(_address: str) -> None:
                    raise StoreError("the database is away", is_ours=True)

                lost.setattr(store, "save", save)
                if is_away:
                    lost.setattr(store, "by_address", fail)
                with pytest.raises(StoreError, match="is lost"):
                    await casual.move(table, ME, 0, "2")
            if is_away:
                with pytest.raises(CourseError, match="load its page again"):
                    await casual.move(table, ME, 0, "2")
            assert table.game.moves == ("2",)
            assert table.to_move == 1
            await casual.move(table, "account 2", 1, first_legal(table))
            assert store.by_address(table.game.address) == table.game


@pytest.mark.slow
async def test_a_bot_answers_a_move_whose_commit_was_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its session had ended because the person thought for long."""
    async with playing(tmp_path / "data") as (harness, casual):
        store = harness.course.casual_games
        table = await begin(casual, PERSON, bot())
        await until(lambda: table.waits_for_person)
        casual._sessions.end(table)
        await until(lambda: table.session is None)
        with monkeypatch.context() as lost:

            def save(*games: Any, save: Any = store.save) -> None:
                save(*games)
                raise StoreError("the connection is lost", is_ours=True)

            lost.setattr(store, "save", save)
            with pytest.raises(StoreError, match="is lost"):
                await casual.move(table, ME, 0, "2")
        assert await turn(table)


async def test_games_that_nobody_plays_end_and_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the database is away just after it stored their end."""
    monkeypatch.setattr(games, "SWEEP_S", 0.01)
    async with playing(tmp_path / "data") as (harness, casual):
        store = harness.course.casual_games
        table = await begin(casual, PERSON, CasualPlayer("Open seat"))
        with monkeypatch.context() as lost:

            def fail(_address: str) -> None:
                raise StoreError("the database is away", is_ours=True)

            lost.setattr(store, "by_address", fail)
            monkeypatch.setitem(casual._context.__dict__, "now", lambda: NOW + timedelta(hours=3))
            await until(lambda: table.game.ended_at is not None)
        assert table.game.sentence == games.ABANDONED
        assert store.by_address(table.game.address) == table.game
        monkeypatch.setitem(casual._context.__dict__, "now", lambda: NOW + timedelta(days=40))
        await until(lambda: store.by_address(table.game.address) is None)


@pytest.mark.parametrize(
    ("game", "opening", "words"),
    [
        ("draughts", "", "no game 'draughts'"),
        (GAME, "9", "no game can begin in this position: "),
    ],
)
async def test_a_game_that_cannot_begin_is_refused(
    tmp_path: Path, game: str, opening: str, words: str
) -> None:
    async with playing(tmp_path / "data") as (_harness, casual):
        with pytest.raises(CourseError, match=words):
            await casual.start(game, (PERSON, CasualPlayer("Open seat")), Continuation(opening, False))
        assert casual.unfinished(ME) == []


async def test_a_seat_is_taken_once_and_before_the_end(tmp_path: Path) -> None:
    async with playing(tmp_path / "data") as (_harness, casual):
        table = await begin(casual, PERSON, CasualPlayer("Open seat"))
        await casual.join(table, ME, "Ada again")  # has a seat already
        assert (table.is_open, [one.name for one in table.game.players]) == (True, ["Ada", "Open seat"])
        await casual.join(table, "account 2", "Bob")
        await casual.resign(table, ME)
        with pytest.raises(CourseError, match="this game is over"):
            await casual.join(table, "account 3", "Cy")
        assert [one.name for one in table.game.players] == ["Ada", "Bob"]


# The table.


def test_a_stored_game_and_what_changes_it(place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as course:
        table = course.casual_games
        added = table.add(GAME, "3", (PERSON, bot()), NOW)
        assert table.by_address(added.address) == added
        moved = with_move(added, "2", NOW)
        table.save(added, moved)
        with pytest.raises(CourseError, match="has changed meanwhile"):
            table.save(added, with_move(added, "4", NOW))
        assert table.by_address(added.address) == moved
        ended = replace(moved, ended_at=NOW, winner=1, sentence="Over.")
        table.save(moved, ended)
        with pytest.raises(CourseError, match="has changed meanwhile"):
            table.save(ended, with_move(ended, "4", NOW))


def test_old_and_surplus_games_are_deleted(place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as course:
        table = course.casual_games
        added = [table.add(GAME, "", (PERSON, bot()), NOW + timedelta(hours=hour)) for hour in range(4)]
        assert table.abandon(NOW, NOW, "x") == []
        late = NOW + timedelta(hours=3)
        assert sorted(table.abandon(late, late, "Abandoned.")) == sorted(one.address for one in added[:3])
        table.remove(NOW + timedelta(hours=1), 1)
        left = [one for one in added if table.by_address(one.address) is not None]
        assert left == [added[2], added[3]]


# Positions.


@pytest.mark.parametrize(
    ("game", "words", "opening", "is_exchanged"),
    [
        (GAME, "", "", False),
        (GAME, "3 2", "3 2", False),
        (GAME, "3 SWAP", "3,3,3,3,0,3,3,0,4,1;North", True),
        (GAME, "4,3,3,3,0,3,3,0,4,1;North", "4,3,3,3,0,3,3,0,4,1;North", False),
        (GAME, "4,3,3,3,0,3,3,0,4,1;North 2", "4,0,4,4,1,3,3,0,4,1;North", False),
        ("kalamala", "a1 h8", "a1 h8", False),
    ],
)
def test_a_position_becomes_an_opening(game: str, words: str, opening: str, is_exchanged: bool) -> None:
    rules = parse_game(game)
    found = opening_at(rules, words.split())
    assert found.is_exchanged == is_exchanged
    if "SWAP" in words:
        old = states_of(rules, "", words.split())[-1]
        new = states_of(rules, found.opening, ())[-1]
        assert (rules.board_text(old), rules.legal_moves(old)) == (
            rules.board_text(new),
            rules.legal_moves(new),
        )
        assert rules.seats(old) == rules.seats(new)[::-1]
    else:
        assert found.opening == opening
    assert continuation(rules, found.opening, ()).opening == found.opening


def test_a_finished_game_and_nonsense_are_no_openings() -> None:
    rules = parse_game("kalah(1,1)")
    with pytest.raises(OpeningError):
        opening_at(rules, ["1", "1", "1", "1"])
    with pytest.raises(OpeningError):
        opening_at(parse_game(GAME), ["nonsense"])
