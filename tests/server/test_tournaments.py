"""Tournaments of the server: they are played, paused, ruled on, killed and resumed."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from tests.server.harness import (
    FakeEngine,
    Harness,
    first_games,
    open_harness,
    running,
    spec,
    until,
)
from tests.support.builders import RUN_LIMIT_S, write_tournament
from tests.support.courses import NOW
from tests.support.databases import database_of
from tests.support.processes import all_end, descendants, open_pidfds
from tests.support.store_locations import to_argument
from tournaments.config.load import load_tournament
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, CourseError
from tournaments.database.location import Database
from tournaments.engines.base import EngineError, WorkerLostError
from tournaments.reporting.ruling_requests import PairingRequest
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import RulingError
from tournaments.results.store import Store, StoreError
from tournaments.running.runner import MAX_ATTEMPTS, MAX_LOSSES, Run, open_run
from tournaments.server.competitions import tournament_manager
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.competitions.tournament_spec import TournamentSpecError, free_slug

CREATED, RUNNING, PAUSED = CompetitionState.CREATED, CompetitionState.RUNNING, CompetitionState.PAUSED
FINISHED, FAILED = CompetitionState.FINISHED, CompetitionState.FAILED
REFERENCES = ["first_legal", "greedy", "random:1"]
"""Entrants of most tournaments here: a round has 6 games."""
KEY = "r001-1v2"


async def create(tournaments: TournamentManager, **values: object) -> Competition:
    return await tournaments.create_tournament(spec(**{"references": REFERENCES, **values}), None)


async def ended(harness: Harness, competition: Competition) -> Competition:
    return await harness.until_state(competition.id, FINISHED, FAILED, PAUSED)


async def finished(harness: Harness, competition: Competition) -> TournamentResults:
    found = await ended(harness, competition)
    assert (found.state, found.message) == (FINISHED, "")
    return results(harness, competition)


def results(harness: Harness, competition: Competition) -> TournamentResults:
    with harness.store(competition.slug) as store:
        return TournamentResults.load(store)


async def start_and_hold(
    harness: Harness, tournaments: TournamentManager, games: int, **values: object
) -> Competition:
    """Start a tournament of several rounds whose games wait, except the first ones."""
    harness.engine.allow(first_games(games))
    competition = await create(tournaments, **{"rounds": 5, **values})
    await tournaments.start(competition.id)
    await harness.until_played("cup", games)
    await until(lambda: harness.engine.waiting)
    return competition


# From the beginning to the end


async def test_a_tournament_of_the_teams(tmp_path: Path) -> None:
    async with open_harness(tmp_path, real_games=True) as harness, running(harness) as tournaments:
        harness.version("Team 1", "first_legal")
        harness.version("Team 2", "random:3")
        harness.version("Team 2", "greedy")
        final = await create(tournaments, title="Final", references=["random:1"])
        assert (final.slug, final.state) == ("final", CREATED)
        names = ["Team 1 v1", "Team 2 v2", "random:1"]
        assert [one.name for one in harness.course.competitions.competitors(final.id)] == names
        assert (await tournaments.summary(final.id)).about.endswith("0 of 6 games")
        harness.version("Team 1", "greedy")  # too late: the entrants are fixed
        await tournaments.start(final.id)
        await finished(harness, final)
        summary = await tournaments.summary(final.id, wait=True)
        assert (summary.bots, summary.done, summary.total) == (names, 6, 6)
        record = await tournaments.record(final.id, KEY)
        assert record.players[0].name == "Team 1 v1"
        folder = tmp_path / "competitions" / "final" / "games"
        assert {path.name for path in folder.iterdir()} == {game.key for game in summary.kept}
        assert harness.context.hub.playing() == []
        with pytest.raises(CourseError, match="is not being played: it is finished"):
            await tournaments.pause(final.id)


async def test_a_team_in_the_title_is_not_in_the_address(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        harness.version("Team 1")
        cup = await create(tournaments, title="Cup of Team 1 with greedy")
        assert (cup.title, cup.slug) == ("Cup of Team 1 with greedy", "cup-of-with-greedy")


async def test_a_tournament_on_each_kind_of_database(tmp_path: Path, database: Database) -> None:
    async with open_harness(tmp_path / "data", database=database) as harness, running(harness) as tournaments:
        competition = await create(tournaments)
        await tournaments.start(competition.id)
        await finished(harness, competition)
        sentences = await tournaments.rule(competition.id, Action.REPLAY, KEY, "an appeal")
        assert sentences == [f"noted: replay {KEY}: an appeal"]
        summary = await finished(harness, competition)
        assert f"{KEY}~2" in {game.key for game in summary.games}


async def test_problems_are_reported_before_a_tournament_is_created(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        harness.version("Team 1")
        harness.bots.without_openings = {"Team 1 v1"}
        with pytest.raises(TournamentSpecError, match="Team 1 v1 cannot take openings"):
            await create(tournaments, openings={"plies": 1, "seed": 1})
        assert harness.course.competitions.all() == []
        with pytest.raises(CourseError, match="no competition 77"):
            await tournaments.start(77)


async def test_pages_show_a_tournament_that_is_not_in_its_store_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[TournamentResults] = []

    def read_and_open(*arguments: Any) -> Run:
        (made,) = harness.course.competitions.all()
        found.append(trio.from_thread.run(tournaments.summary, made.id))
        return open_run(*arguments)

    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        with monkeypatch.context() as patched:
            patched.setattr(tournament_manager, "open_run", read_and_open)
            made = await create(tournaments, format={"kind": "swiss"}, rounds=2)
        after = await tournaments.summary(made.id, wait=True)
    (before,) = found
    assert before.head is None
    assert replace(before, head=after.head) == after
    assert before.about == after.about
    assert after.head is not None


async def test_a_tournament_that_cannot_be_stored_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> Run:
        raise StoreError("the disk is full", is_ours=True)

    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        with monkeypatch.context() as patched:
            patched.setattr(tournament_manager, "open_run", fail)
            with pytest.raises(StoreError, match="the disk is full"):
                await create(tournaments)
        (lost,) = harness.course.competitions.all()
        assert lost.state is CompetitionState.DELETED
        actions = [entry.action for entry in harness.course.journal.entries(2)]
        assert actions == ["tournament.delete", "tournament.create"]
        made = await create(tournaments)
        assert (made.slug, made.state) == ("cup-2", CREATED)
        assert (await tournaments.summary(made.id)).total == 6


async def test_a_tournament_that_is_being_created_is_not_completed_by_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    looked = trio.Event()

    def wait_and_open(*arguments: Any) -> Run:
        opened.append(arguments)
        if len(opened) == 1:
            trio.from_thread.run_sync(nursery.start_soon, tournaments.run)
            trio.from_thread.run(looked.wait)
        return open_run(*arguments)

    def is_claimed(competition: Competition) -> bool:
        found = real(competition)
        trio.from_thread.run_sync(looked.set)
        return found

    async with open_harness(tmp_path) as harness:
        tournaments = TournamentManager(harness.context, 0.0)
        real = tournaments._is_claimed
        monkeypatch.setattr(tournaments, "_is_claimed", is_claimed)
        monkeypatch.setattr(tournament_manager, "open_run", wait_and_open)
        async with trio.open_nursery() as nursery:
            made = await tournaments.create_tournament(spec(references=REFERENCES), None, draft=True)
            await tournaments.publish(made.id)  # waits until the tournament was taken up
            nursery.cancel_scope.cancel()
        tournaments.close()
        assert harness.competition(made.id).state is CREATED
        assert len(opened) == 1
        assert not harness.context.failures.newest()


async def test_simultaneous_tournaments_share_the_slots(tmp_path: Path) -> None:
    async with open_harness(tmp_path, slots=1) as harness, running(harness) as tournaments:
        one, other = [await create(tournaments, rounds=2) for _ in range(2)]
        assert [one.slug, other.slug] == ["cup", "cup-2"]
        await tournaments.start(one.id)
        await tournaments.start(other.id)
        await finished(harness, one)
        await finished(harness, other)
        begun = harness.engine.begun
        assert sorted(begun) == sorted(2 * list(dict.fromkeys(begun)))
        # The first one is ahead by the games that it began alone; then they take turns.
        assert len(set(begun[-12:])) >= 6


async def test_a_tournament_plays_no_more_games_at_a_time_than_its_limit(tmp_path: Path) -> None:
    async with open_harness(tmp_path, slots=3) as harness, running(harness, 0.0) as tournaments:
        await start_and_hold(harness, tournaments, 2, concurrency=1)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(harness.context.hub.playing()) == len(harness.engine.waiting) == 1


# Pauses


async def test_a_pause_waits_for_games_that_end(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competition = await start_and_hold(harness, tournaments, 5)
        with pytest.raises(CourseError, match="is being played"):
            await tournaments.start(competition.id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tournaments.pause, competition.id)
            # The pause first reads the state in a thread, which counts as blocked.
            await until(lambda: tournaments._runs[competition.id].stopped)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert harness.competition(competition.id).state is RUNNING
            harness.engine.allow()
        assert harness.competition(competition.id).state is PAUSED
        paused = results(harness, competition)
        assert paused.done == 7
        assert harness.context.hub.playing() == []
        assert all(use.taken == use.waiting == 0 for use in harness.context.slots.status().values())
        await tournaments.resume(competition.id)
        whole = await finished(harness, competition)
        assert whole.done == 30
        assert set(paused.kept) <= set(whole.kept)  # no game was played again


async def test_a_pause_cancels_games_that_do_not_end(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness, pause_limit_s=0.05) as tournaments:
        competition = await create(tournaments)
        with pytest.raises(CourseError, match="is not being played: it is created"):
            await tournaments.pause(competition.id)
        harness.engine.allow(lambda job: job.key != KEY)
        await tournaments.start(competition.id)
        await harness.until_played("cup", 5)
        await tournaments.pause(competition.id)
        assert harness.competition(competition.id).state is PAUSED
        assert results(harness, competition).done == 5


async def test_a_server_that_was_stopped_resumes_its_tournaments(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        async with running(harness) as tournaments:
            competition = await start_and_hold(harness, tournaments, 3)
        assert harness.competition(competition.id).state is RUNNING
        with pytest.raises(CourseError, match="try again in a moment"):
            await tournaments.pause(competition.id)
        harness.engine.allow()
        async with running(harness):
            assert (await finished(harness, competition)).done == 30


async def test_a_lecturer_is_told_which_state_forbids_an_action(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tournament_manager, "RULING_LIMIT_S", 0.0)
    async with open_harness(tmp_path) as harness, running(harness, 0.0) as tournaments:
        competition = await start_and_hold(harness, tournaments, 1)
        with pytest.raises(CourseError, match="is no draft: it is running"):
            await tournaments.publish(competition.id)
        with pytest.raises(CourseError, match="is being played: pause or cancel it first"):
            await tournaments.delete(competition.id)
        await tournaments.cancel(competition.id)
        with pytest.raises(CourseError, match="is cancelled already"):
            await tournaments.cancel(competition.id)
        assert harness.competition(competition.id).state is CompetitionState.CANCELLED


async def test_all_bots_that_cannot_play_are_named(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        for team in ("Team 1", "Team 2"):
            harness.version(team)
        competition = await create(tournaments)
        harness.bots.broken = {"Team 1 v1", "Team 2 v1"}
        await tournaments.start(competition.id)
        found = await ended(harness, competition)
        assert found.state is FAILED
        for team in ("Team 1", "Team 2"):
            assert f"{team} v1: it is broken" in found.message


async def test_a_practice_ladder_is_no_tournament(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competitions, kind = harness.course.competitions, CompetitionKind.PRACTICE
        ladder = competitions.add("practice", "Ladder", kind, {"game": "kalah(3,2)"}, None, NOW)
        for act in (tournaments.start, tournaments.pause):
            with pytest.raises(CourseError, match="'Ladder' is no tournament"):
                await act(ladder.id)
        with pytest.raises(CourseError, match="'Ladder' is no tournament"):
            await tournaments.rule(ladder.id, Action.VOID, KEY, "x")
        assert harness.competition(ladder.id).state is CREATED
        assert (await tournaments.summary(ladder.id)).about.startswith("practice, kalah(3,2), ")


# Failures


async def test_a_bot_that_was_changed_stops_the_tournament(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        harness.version("Team 1")
        competition = await create(tournaments)
        harness.bots.changed = {"Team 1 v1"}
        await tournaments.start(competition.id)
        found = await ended(harness, competition)
        assert found.state is FAILED
        assert found.message.startswith("Team 1 v1 is not made of the same files any more")
        assert results(harness, competition).done == 0
        harness.bots.changed = set()
        await tournaments.resume(competition.id)
        await finished(harness, competition)


@pytest.mark.parametrize(
    ("failures", "error", "state"),
    [
        (MAX_LOSSES - 1, WorkerLostError, FINISHED),
        (MAX_LOSSES, WorkerLostError, PAUSED),
        (MAX_ATTEMPTS, EngineError, PAUSED),
    ],
)
async def test_a_game_that_could_not_be_played_is_no_loss(
    tmp_path: Path, failures: int, error: type[EngineError], state: CompetitionState
) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        engine: FakeEngine = harness.engine
        engine.error = error("the machine burns")
        engine.allow(lambda job: job.key != KEY or engine.begun.count(KEY) > failures)
        competition = await create(tournaments)
        await tournaments.start(competition.id)
        found = await ended(harness, competition)
        assert found.state is state
        if state is PAUSED:
            assert found.message == (
                "1 game could not be played, for a reason that is the server's, and nobody lost by it: the "
                "machine burns. Go on, and they are tried again."
            )
            assert results(harness, competition).done == 5
            await tournaments.resume(competition.id)
            await finished(harness, competition)


async def test_files_that_cannot_be_written_stop_the_tournament(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competition = await create(tournaments)
        games = tmp_path / "competitions" / "cup" / "games"
        games.parent.mkdir(parents=True, exist_ok=True)
        games.write_text("a file where a folder should be")
        await tournaments.start(competition.id)
        found = await ended(harness, competition)
        assert (found.state, found.message) == (FAILED, f"{games} cannot be read: Not a directory")
        games.unlink()
        with TournamentDirectory(games.parent).locked():  # by the command line
            await tournaments.resume(competition.id)
            found = await ended(harness, competition)
        assert found.state is FAILED
        assert "another run is at work" in found.message
        await tournaments.resume(competition.id)
        await finished(harness, competition)


async def test_an_unexpected_failure_ends_one_tournament_alone(tmp_path: Path) -> None:
    async with (
        open_harness(tmp_path) as harness,
        running(harness.with_context(hub=cast("Any", None))) as tournaments,
    ):
        competition = await create(tournaments)
        await tournaments.start(competition.id)
        found = await ended(harness, competition)
        assert found.state is FAILED
        assert found.message.startswith("the server failed (AttributeError(")
        (failure,) = harness.context.failures.newest()
        assert failure.where == "tournament Cup"
        assert "Traceback" in failure.trace
        assert (await tournaments.summary(competition.id)).done == 0


# Rulings


async def test_rulings_while_the_tournament_is_played(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competition = await start_and_hold(harness, tournaments, 6)
        harness.engine.allow(first_games(8))
        void, again = (game.key for game in results(harness, competition).games[:2])
        with pytest.raises(RulingError, match="say why"):
            await tournaments.rule(competition.id, Action.VOID, void, " ")
        harness.engine.allow()
        sentences = await tournaments.rule(competition.id, Action.VOID, void, "a power cut")
        assert sentences == [f"noted: void {void}: a power cut"]
        await tournaments.rule(competition.id, Action.REPLAY, again, "an appeal")
        sentences = await tournaments.rule(competition.id, Action.WITHDRAW, "greedy", "copied")
        assert sentences == ["noted: withdraw greedy (its games count for nobody): copied"]
        await tournaments.rule(competition.id, Action.RESTORE, "greedy", "it was not")
        await harness.until_state(competition.id, FINISHED)
        summary = results(harness, competition)
        assert (summary.done, summary.total) == (30, 30)
        counted = {game.key for game in summary.games}
        assert not {void, again} & counted
        assert f"{again}~2" in counted
        assert not summary.rulings.withdrawn
        assert [entry.number for entry in summary.journal] == [1, 2, 3, 4]


async def test_rulings_on_a_finished_tournament(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competition = await create(tournaments, format="swiss", rounds=2)
        await tournaments.start(competition.id)
        first = (await finished(harness, competition)).games[0].key
        sentences = await tournaments.rule(competition.id, Action.VOID, first, "x")
        assert len(sentences) == 2
        assert sentences[1].startswith("round 1 is followed by rounds that are paired")
        assert harness.competition(competition.id).state is FINISHED  # nothing became due
        await tournaments.rule(competition.id, Action.RESTORE, first, "x")
        await tournaments.rule(competition.id, Action.REPLAY, first, "x")
        summary = await finished(harness, competition)
        assert f"{first}~2" in {game.key for game in summary.games}
        with pytest.raises(RulingError, match="choose the version or the reference player"):
            await tournaments.rule(competition.id, Action.ADD, "greedy", "x")


async def test_rulings_on_a_paused_tournament_start_no_game(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness, 0.0) as tournaments:
        competition = await create(tournaments, rounds=2)
        sentences = await tournaments.rule(competition.id, Action.WITHDRAW, "greedy", "ill", annul=False)
        assert sentences == ["noted: withdraw greedy (its games still count): ill"]
        assert harness.competition(competition.id).state is CREATED
        harness.engine.allow(first_games(1))
        await tournaments.start(competition.id)
        await harness.until_played("cup", 1)
        await tournaments.pause(competition.id)
        key = results(harness, competition).games[0].key
        await tournaments.rule(competition.id, Action.REPLAY, key, "x")
        assert harness.competition(competition.id).state is PAUSED
        harness.engine.allow()
        await tournaments.resume(competition.id)
        summary = await finished(harness, competition)
        assert {game.first for game in summary.games} == {"first_legal", "random:1"}


async def test_a_ruling_is_completed_when_its_lecturer_leaves(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competition = await start_and_hold(harness, tournaments, 2)
        key = results(harness, competition).games[0].key
        harness.engine.allow()
        with trio.CancelScope() as scope:
            scope.cancel()
            await tournaments.rule(competition.id, Action.VOID, key, "x")
        assert scope.cancelled_caught
        await until(lambda: results(harness, competition).journal)
        summary = await finished(harness, competition)
        assert [str(entry) for entry in summary.journal] == [f"void {key}: x"]


async def test_a_ruling_that_a_restart_interrupts_may_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another tournament's result cannot be stored, which ends the tasks of all tournaments."""
    note = Store.note

    def note_and_cancel(store: Store, *entries: Entry) -> None:
        note(store, *entries)
        trio.from_thread.run_sync(nursery.cancel_scope.cancel)

    async with open_harness(tmp_path) as harness:
        tournaments = TournamentManager(harness.context)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tournaments.run)
            await trio.testing.wait_all_tasks_blocked()
            competition = await create(tournaments)
            monkeypatch.setattr(Store, "note", note_and_cancel)
            with trio.CancelScope(shield=True), pytest.raises(CourseError, match="could confirm this action"):
                await tournaments.rule(competition.id, Action.WITHDRAW, "greedy", "copied")
        tournaments.close()
        assert [entry.subject for entry in results(harness, competition).journal] == ["greedy"]


async def test_pairings_of_a_coming_round_are_fixed_while_the_tournament_is_played(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        competition = await start_and_hold(harness, tournaments, 1, format={"kind": "swiss"}, rounds=6)
        names = results(harness, competition).bots
        request = PairingRequest([(names[0], names[1])], round_number=6)
        with pytest.raises(RulingError, match="cannot meet itself"):
            await tournaments.pair(competition.id, PairingRequest([(names[0], names[0])]), "x")
        harness.engine.allow(lambda job: not job.key.startswith("r006"))
        sentences = await tournaments.pair(competition.id, request, "the jury asks for it")
        assert sentences == [f"noted: pair {names[0]} (meets {names[1]} in round 6): the jury asks for it"]
        harness.engine.allow()
        summary = await finished(harness, competition)
        met = {(game.first, game.second) for game in summary.games if game.round == 6}
        assert (names[0], names[1]) in met
        with pytest.raises(RulingError, match="round 6 has begun"):
            await tournaments.pair(competition.id, replace(request, undo=True), "too late")
        other = await create(tournaments)
        with pytest.raises(RulingError, match="of format 'round-robin' takes no manual pairings"):
            await tournaments.pair(other.id, PairingRequest(byes=["greedy"]), "x")


# Kills

SERVER = """
import sys, trio
from pathlib import Path
from tests.server.harness import open_harness, running
from tests.support.store_locations import from_argument

async def main():
    data, database = Path(sys.argv[1]), from_argument(sys.argv[2])
    async with open_harness(data, database=database, real_games=True) as harness, running(harness):
        await trio.sleep_forever()

trio.run(main)
"""


def games_of(data: Path) -> Sequence[tuple[object, ...]]:
    """Return the games of a tournament without their times."""
    with Store(database_of(data).competition("cup"), read_only=True) as store:
        return [(one.key, one.winner, one.score, one.moves, one.fingerprint) for one in store.games()]


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)")
async def test_a_killed_tournament_has_the_same_games_as_an_undisturbed_one(tmp_path: Path) -> None:
    data, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    for folder in (data, undisturbed):
        async with open_harness(folder, real_games=True) as harness, running(harness) as tournaments:
            competition = await create(tournaments, rounds=10, format="swiss")
            await tournaments.start(competition.id)
            if folder is undisturbed:
                await finished(harness, competition)
    command = [sys.executable, "-c", SERVER, str(data), to_argument(database_of(data))]
    async with open_harness(data, real_games=True) as harness:
        for games in (2, 6, 10):
            server = subprocess.Popen(command)  # noqa: ASYNC220 - it is to be killed
            await harness.until_played("cup", games)
            left_behind = open_pidfds(descendants(server.pid))
            server.send_signal(signal.SIGKILL)
            server.wait(RUN_LIMIT_S)
            assert all_end(left_behind)
            assert harness.competition(competition.id).state is RUNNING
        async with running(harness):
            await finished(harness, competition)
    assert games_of(data) == games_of(undisturbed)
    folders = {path.name for path in (data / "competitions" / "cup" / "games").iterdir()}
    assert folders == {str(game[0]) for game in games_of(data)}


# Earlier versions, and names in addresses


def test_a_gauntlet_of_an_earlier_version_keeps_its_ranking(tmp_path: Path) -> None:
    """Earlier versions ranked it by points unless another ranking was chosen."""
    path = write_tournament(
        tmp_path,
        'format = {kind = "gauntlet", challengers = ["random"]}\n'
        'bots = ["first_legal", "greedy", "random"]\n',
    )
    tournament = load_tournament(path)
    with Store(tmp_path / "results.db") as store:
        open_run(tournament, store)
        config = store.config()
        assert config["ranking"] == "score"
        store.claim(config.pop("name"), {**config, "ranking": "points"}, tournament.identity())
        open_run(tournament, store)
        assert store.config()["ranking"] == "points"


@pytest.mark.parametrize(
    ("title", "taken", "slug"),
    [
        ("The Final, 2026!", set(), "the-final-2026"),
        ("Größe", set(), "gr-e"),
        ("決勝", set(), "tournament"),
        ("Practice", set(), "tournament-practice"),
        ("NEW!", set(), "tournament-new"),
        ("cup", {"cup", "cup-2"}, "cup-3"),
        ("x" * 60, {"x" * 40}, "x" * 38 + "-2"),
    ],
)
def test_names_in_addresses(title: str, taken: set[str], slug: str) -> None:
    assert free_slug(title, taken) == slug


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Cup of Team 2", "cup-of"),
        ("TEAM 1 v3 against team 2", "against"),
        ("Team 1 against Team 2, greedy", "against-greedy"),
        ("Team 12", "tournament"),
        ("A and B", "and-b"),
    ],
)
def test_names_of_teams_are_not_in_addresses(title: str, slug: str) -> None:
    assert free_slug(title, set(), ["Team 1", "Team 2", "Team 12", "Team 1 v3", "a"]) == slug
