"""Tournaments of the server: real games in worker processes, stopped, killed and ruled on."""

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
import trio.lowlevel

from referee.play import Job
from tests.builders import RUN_LIMIT_S, write_tournament
from tests.contest_parts import LIMIT_S, World, open_world, running, spec, until
from tests.courses import NOW
from tests.databases import database_of
from tests.places import to_argument
from tests.test_resume import all_end, descendants, open_pidfds
from tournaments.config.load import load_tournament
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, CourseError
from tournaments.database.location import Database
from tournaments.engines.base import Engine, EngineError, OnSnapshot, OnStart, WorkerLostError
from tournaments.reporting.ruling_requests import PairingRequest
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import PackedGame
from tournaments.results.journal import Action
from tournaments.results.rulings import RulingError
from tournaments.results.store import Store
from tournaments.running.runner import MAX_ATTEMPTS, MAX_LOSSES, open_run
from tournaments.server.competitions.tournament_manager import TournamentManager, free_slug
from tournaments.server.competitions.tournament_spec import TournamentSpecError

DONE = (CompetitionState.FINISHED, CompetitionState.FAILED, CompetitionState.PAUSED)
REFERENCES = ["first_legal", "greedy", "random:1"]
KEY = "r001-1v2"


async def made(contests: TournamentManager, **values: object) -> Competition:
    return await contests.create_tournament(spec(**{"references": REFERENCES, **values}), None)


async def finished(world: World, competition: Competition) -> Competition:
    found = await world.until_state(competition.id, *DONE)
    assert (found.state, found.message) == (CompetitionState.FINISHED, "")
    return found


def kept(world: World, competition: Competition) -> TournamentResults:
    with world.store(competition.slug) as store:
        return TournamentResults.load(store)


# From the first to the last


async def test_a_tournament_of_the_teams(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        world.version("Team 1", "first_legal")
        world.version("Team 2", "random:3")
        world.version("Team 2", "greedy")
        made_one = await contests.create_tournament(spec(title="Final", references=["random:1"]), None)
        assert (made_one.slug, made_one.state) == ("final", CompetitionState.CREATED)
        names = ["Team 1 v1", "Team 2 v2", "random:1"]
        assert [one.name for one in world.course.competitions.competitors(made_one.id)] == names
        assert (await contests.summary(made_one.id)).about.endswith("0 of 6 games")
        world.version("Team 1", "greedy")  # too late: who plays is fixed
        await contests.start(made_one.id)
        await finished(world, made_one)
        summary = await contests.summary(made_one.id, wait=True)
        assert (summary.bots, summary.done, summary.total) == (names, 6, 6)
        record = await contests.record(made_one.id, KEY)
        assert record.players[0].name == "Team 1 v1"
        folder = tmp_path / "competitions" / "final"
        assert {path.name for path in (folder / "games").iterdir()} == {game.key for game in summary.kept}
        assert world.parts.hub.playing() == []
        with pytest.raises(CourseError, match="is not being played: it is finished"):
            await contests.pause(made_one.id)


async def test_it_runs_on_every_database(tmp_path: Path, database: Database) -> None:
    async with open_world(tmp_path / "data", database=database) as world, running(world) as contests:
        competition = await made(contests)
        await contests.start(competition.id)
        await finished(world, competition)
        said = await contests.rule(competition.id, Action.REPLAY, KEY, "an appeal")
        assert said == [f"noted: replay {KEY}: an appeal"]
        await finished(world, competition)
        assert f"{KEY}~2" in {game.key for game in kept(world, competition).games}


async def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        world.version("Team 1")
        world.bots.without_openings = {"Team 1 v1"}
        with pytest.raises(TournamentSpecError, match="Team 1 v1 cannot take openings"):
            await made(contests, openings={"plies": 1, "seed": 1})
        assert world.course.competitions.all() == []
        with pytest.raises(CourseError, match="no competition 77"):
            await contests.start(77)


async def test_two_at_the_same_time_share_the_places(tmp_path: Path) -> None:
    async with open_world(tmp_path, places=1) as world, running(world) as contests:
        one, other = [await made(contests, rounds=2) for _ in range(2)]
        assert [one.slug, other.slug] == ["cup", "cup-2"]
        await contests.start(one.id)
        await contests.start(other.id)
        await finished(world, one)
        # The first one was ahead by what it had begun before; then they took turns.
        assert kept(world, other).done >= 12 - 6
        await finished(world, other)


async def test_no_more_games_at_a_time_than_the_lecturer_allowed(tmp_path: Path) -> None:
    most = 0
    async with open_world(tmp_path, places=3) as world, running(world) as contests:
        competition = await made(contests, concurrency=1, rounds=2)
        await contests.start(competition.id)

        def is_over() -> bool:
            nonlocal most
            most = max(most, len(world.parts.hub.playing()))
            return world.competition(competition.id).state is not CompetitionState.RUNNING

        await until(is_over)
        await finished(world, competition)
    assert most == 1


# Pausing, going on


async def test_pause_and_resume(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests, rounds=5)
        with pytest.raises(CourseError, match="is not being played: it is created"):
            await contests.pause(competition.id)
        await contests.start(competition.id)
        with pytest.raises(CourseError, match="is being played"):
            await contests.start(competition.id)
        await world.until_played("cup", 5)
        await contests.pause(competition.id)
        assert world.competition(competition.id).state is CompetitionState.PAUSED
        paused = kept(world, competition)
        assert 5 <= paused.done < 30
        assert world.parts.hub.playing() == []
        assert all(use.taken == use.waiting == 0 for use in world.parts.slots.status().values())
        await contests.resume(competition.id)
        await finished(world, competition)
        whole = kept(world, competition)
        assert whole.done == 30
        assert set(paused.kept) <= set(whole.kept)  # finished games were not played again


async def test_a_game_that_does_not_end_is_given_up_in_the_end(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world, patience_s=0.05) as contests:
        world.version("Team 1", silent(tmp_path))
        competition = await made(contests, references=["greedy"])
        await contests.start(competition.id)
        await until_playing(world)
        with trio.fail_after(LIMIT_S):
            await contests.pause(competition.id)
        assert world.competition(competition.id).state is CompetitionState.PAUSED
        assert kept(world, competition).done == 0


def silent(folder: Path) -> str:
    """A bot that never moves, in the folder of the server."""
    (folder / "silent.py").write_text("import time\ntime.sleep(1000)\n")
    return "silent.py"


async def until_playing(world: World) -> None:
    await until(lambda: bool(world.parts.hub.playing()))


async def test_a_server_that_stops_at_once_goes_on_later(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        async with running(world) as contests:
            competition = await made(contests, rounds=5)
            await contests.start(competition.id)
            await world.until_played("cup", 3)
        assert world.competition(competition.id).state is CompetitionState.RUNNING
        with pytest.raises(CourseError, match="try again in a moment"):
            await contests.pause(competition.id)
        async with running(world):
            await finished(world, competition)
        assert kept(world, competition).done == 30


async def test_practice_is_no_tournament(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        kind = CompetitionKind.PRACTICE
        ladder = world.course.competitions.add("practice", "Ladder", kind, {"game": "kalah(3,2)"}, None, NOW)
        for act in (contests.start, contests.pause):
            with pytest.raises(CourseError, match="'Ladder' is no tournament"):
                await act(ladder.id)
        with pytest.raises(CourseError, match="'Ladder' is no tournament"):
            await contests.rule(ladder.id, Action.VOID, KEY, "x")
        assert world.competition(ladder.id).state is CompetitionState.CREATED
        assert (await contests.summary(ladder.id)).about.startswith("practice, kalah(3,2), ")


# Trouble


async def test_a_bot_that_is_another_one_now(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        world.version("Team 1")
        competition = await made(contests)
        world.bots.changed = {"Team 1 v1"}
        await contests.start(competition.id)
        found = await world.until_state(competition.id, *DONE)
        assert found.state is CompetitionState.FAILED
        assert found.message.startswith("Team 1 v1 is not made of the same files any more")
        assert kept(world, competition).done == 0
        world.bots.changed = set()
        await contests.resume(competition.id)
        await finished(world, competition)


class Lame:
    """An engine that loses the game KEY so many times."""

    def __init__(self, engine: Engine, losses: int, error: type[EngineError] = EngineError) -> None:
        self.engine, self.losses, self.error = engine, losses, error
        self.concurrency = engine.concurrency

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        if self.losses and job.key == KEY:
            self.losses -= 1
            raise self.error("the machine burns")
        return await self.engine.play(job, on_start, on_snapshot)


async def test_a_game_may_lose_many_machines_that_come_and_go(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        lame = replace(world.parts, engine=Lame(world.parts.engine, MAX_LOSSES - 1, WorkerLostError))
        async with running(World(lame, world.bots)) as contests:
            competition = await made(contests)
            await contests.start(competition.id)
            await finished(world, competition)


@pytest.mark.parametrize(("losses", "error"), [(MAX_ATTEMPTS, EngineError), (MAX_LOSSES, WorkerLostError)])
async def test_games_that_could_not_be_played_are_nobodys_loss(
    tmp_path: Path, losses: int, error: type[EngineError]
) -> None:
    async with open_world(tmp_path) as world:
        lame = replace(world.parts, engine=Lame(world.parts.engine, losses, error))
        async with running(World(lame, world.bots)) as contests:
            competition = await made(contests)
            await contests.start(competition.id)
            found = await world.until_state(competition.id, *DONE)
            assert found.state is CompetitionState.PAUSED
            assert found.message == (
                "1 game could not be played, for a reason that is the server's, and nobody lost by it: the "
                "machine burns. Go on, and they are tried again."
            )
            assert kept(world, competition).done == 5
            await contests.resume(competition.id)
            await finished(world, competition)


async def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests)
        games = tmp_path / "competitions" / "cup" / "games"
        games.parent.mkdir(parents=True, exist_ok=True)
        games.write_text("a file where a folder should be")
        await contests.start(competition.id)
        found = await world.until_state(competition.id, *DONE)
        assert (found.state, found.message) == (
            CompetitionState.FAILED,
            f"{games} cannot be read: Not a directory",
        )
        games.unlink()
        await contests.resume(competition.id)
        await finished(world, competition)


async def test_a_failure_that_nobody_thought_of_ends_one_tournament_alone(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        broken = replace(world.parts, hub=cast("Any", None))
        async with running(World(broken, world.bots)) as contests:
            competition = await made(contests)
            await contests.start(competition.id)
            found = await world.until_state(competition.id, *DONE)
            assert found.state is CompetitionState.FAILED
            assert found.message.startswith("the server failed (AttributeError(")
            (failure,) = world.parts.failures.newest()
            assert failure.where == "tournament Cup"
            assert "Traceback" in failure.trace
            assert (await contests.summary(competition.id)).done == 0


async def test_the_command_line_is_kept_out(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests)
        with TournamentDirectory(tmp_path / "competitions" / "cup").locked():
            await contests.start(competition.id)
            found = await world.until_state(competition.id, *DONE)
        assert found.state is CompetitionState.FAILED
        assert "another run is at work" in found.message


# Rulings


async def test_rulings_while_it_is_played(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests, rounds=5)
        await contests.start(competition.id)
        await world.until_played("cup", 6)
        games = kept(world, competition).games
        void, again = games[0].key, games[1].key
        with pytest.raises(RulingError, match="say why"):
            await contests.rule(competition.id, Action.VOID, void, " ")
        assert await contests.rule(competition.id, Action.VOID, void, "a power cut") == [
            f"noted: void {void}: a power cut"
        ]
        await contests.rule(competition.id, Action.REPLAY, again, "an appeal")
        said = await contests.rule(competition.id, Action.WITHDRAW, "greedy", "copied")
        assert said == ["noted: withdraw greedy (its games count for nobody): copied"]
        await contests.rule(competition.id, Action.RESTORE, "greedy", "it was not")
        assert world.competition(competition.id).state is CompetitionState.RUNNING
        await finished(world, competition)
        summary = kept(world, competition)
        assert (summary.done, summary.total) == (30, 30)
        counted = {game.key for game in summary.games}
        assert void not in counted
        assert again not in counted
        assert f"{again}~2" in counted
        assert not summary.rulings.withdrawn
        assert [entry.number for entry in summary.journal] == [1, 2, 3, 4]


async def test_rulings_on_a_finished_tournament(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests, format="swiss", rounds=2)
        await contests.start(competition.id)
        await finished(world, competition)
        first = kept(world, competition).games[0].key
        said = await contests.rule(competition.id, Action.VOID, first, "x")
        assert len(said) == 2
        assert said[1].startswith("round 1 is followed by rounds that are paired")
        assert world.competition(competition.id).state is CompetitionState.FINISHED  # nothing became due
        await contests.rule(competition.id, Action.RESTORE, first, "x")
        await contests.rule(competition.id, Action.REPLAY, first, "x")
        await finished(world, competition)
        assert f"{first}~2" in {game.key for game in kept(world, competition).games}
        with pytest.raises(RulingError, match="no bot joins"):
            await contests.rule(competition.id, Action.ADD, "greedy", "x")


async def test_rulings_on_a_paused_tournament_start_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests, rounds=5)
        assert await contests.rule(competition.id, Action.WITHDRAW, "greedy", "ill", annul=False) == [
            "noted: withdraw greedy (its games still count): ill"
        ]
        assert world.competition(competition.id).state is CompetitionState.CREATED
        await contests.start(competition.id)
        await world.until_played("cup", 1)
        await contests.pause(competition.id)
        await contests.rule(competition.id, Action.REPLAY, kept(world, competition).games[0].key, "x")
        assert world.competition(competition.id).state is CompetitionState.PAUSED
        await contests.resume(competition.id)
        await finished(world, competition)
        assert {game.first for game in kept(world, competition).games} == {"first_legal", "random:1"}


async def test_a_lecturer_who_leaves_leaves_nothing_half_done(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests, rounds=5)
        await contests.start(competition.id)
        await world.until_played("cup", 2)
        key = kept(world, competition).games[0].key
        with trio.CancelScope() as scope:
            scope.cancel()
            await contests.rule(competition.id, Action.VOID, key, "x")
        assert scope.cancelled_caught
        await finished(world, competition)
        assert [str(entry) for entry in kept(world, competition).journal] == [f"void {key}: x"]


# Killed


SERVER = """
import sys, trio
from pathlib import Path
from tests.contest_parts import open_world, running
from tests.places import from_argument

async def main():
    async with open_world(Path(sys.argv[1]), database=from_argument(sys.argv[2])) as world, running(world):
        await trio.sleep_forever()

trio.run(main)
"""


def games_of(data: Path) -> Sequence[tuple[object, ...]]:
    """What was played, without what takes time."""
    with Store(database_of(data).competition("cup"), read_only=True) as store:
        return [(one.key, one.winner, one.score, one.moves, one.fingerprint) for one in store.games()]


async def calm(data: Path) -> int:
    async with open_world(data) as world, running(world) as contests:
        competition = await made(contests, rounds=10, format="swiss")
        await contests.start(competition.id)
        await finished(world, competition)
        return competition.id


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)")
async def test_kill_and_resume_give_the_same_games_as_no_disturbance(tmp_path: Path) -> None:
    await calm(tmp_path / "calm")
    data = tmp_path / "killed"
    command = [sys.executable, "-c", SERVER, str(data), to_argument(database_of(data))]
    async with open_world(data) as world:
        async with running(world) as contests:
            competition = await made(contests, rounds=10, format="swiss")
            await contests.start(competition.id)
        for games in (2, 6, 10):
            server = subprocess.Popen(command)  # noqa: ASYNC220 - it is to be killed
            await world.until_played("cup", games)
            left_behind = open_pidfds(descendants(server.pid))
            server.send_signal(signal.SIGKILL)
            server.wait(RUN_LIMIT_S)
            assert all_end(left_behind, 5.0)
            assert world.competition(competition.id).state is CompetitionState.RUNNING
        async with running(world):
            await finished(world, competition)
        folders = {path.name for path in (data / "competitions" / "cup" / "games").iterdir()}
    assert games_of(data) == games_of(tmp_path / "calm")
    assert folders == {str(game[0]) for game in games_of(data)}


# Names in addresses


@pytest.mark.parametrize(
    ("title", "taken", "slug"),
    [
        ("The Final, 2026!", set(), "the-final-2026"),
        ("Größe", set(), "gr-e"),
        ("決勝", set(), "tournament"),
        ("Practice", set(), "tournament-practice"),
        ("cup", {"cup", "cup-2"}, "cup-3"),
        ("x" * 60, {"x" * 40}, "x" * 38 + "-2"),
    ],
)
def test_names_in_addresses(title: str, taken: set[str], slug: str) -> None:
    assert free_slug(title, taken) == slug


def test_a_gauntlet_that_was_begun_earlier_keeps_its_ranking(tmp_path: Path) -> None:
    """Earlier versions ranked it by points where nothing else was chosen."""
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


async def test_pairings_are_fixed_while_it_is_played(tmp_path: Path) -> None:
    """Of a round that has not begun; the tournament goes on with them by itself."""
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests, format={"kind": "swiss"}, rounds=6)
        names = kept(world, competition).bots
        request = PairingRequest([(names[0], names[1])], round_number=6)
        with pytest.raises(RulingError, match="cannot meet itself"):
            await contests.pair(competition.id, PairingRequest([(names[0], names[0])]), "x")
        await contests.start(competition.id)
        await world.until_played("cup", 1)
        said = await contests.pair(competition.id, request, "the jury asks for it")
        assert said == [f"noted: pair {names[0]} (meets {names[1]} in round 6): the jury asks for it"]
        await finished(world, competition)
        met = {(game.first, game.second) for game in kept(world, competition).games if game.round == 6}
        assert (names[0], names[1]) in met
        with pytest.raises(RulingError, match="round 6 has begun"):
            await contests.pair(competition.id, replace(request, undo=True), "too late")


async def test_other_formats_take_no_manual_pairings(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await made(contests)
        with pytest.raises(RulingError, match="of format 'round-robin' takes no manual pairings"):
            await contests.pair(competition.id, PairingRequest(byes=["greedy"]), "x")
