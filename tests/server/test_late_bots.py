"""Bots that join tournaments of the server; and tournaments that are cancelled, resumed and deleted."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.server.harness import Harness, first_games, open_harness, running, spec, until
from tests.server.test_acts import recorded, until_recorded
from tests.support.builders import make_player
from tests.support.courses import NOW, add_account
from tests.support.statement_faults import InjectedError, fault_before
from tournaments.course.backup import backup
from tournaments.course.backup.backup import back_up
from tournaments.course.backup.restore import restore
from tournaments.course.backup.snapshots import copy_database
from tournaments.course.course import Course
from tournaments.course.model import BotChoice, Competition, CompetitionState, CourseError, Role
from tournaments.database.location import Database
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import RulingError
from tournaments.results.store import Store, StoreError
from tournaments.schedule.plan import Plan
from tournaments.server.competitions import tournament_manager
from tournaments.server.competitions.entrants import Candidate
from tournaments.server.competitions.late_entrants import joining
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.competitions.tournament_spec import TournamentSpecError
from tournaments.server.config import ServiceConfig

CREATED, RUNNING, PAUSED = CompetitionState.CREATED, CompetitionState.RUNNING, CompetitionState.PAUSED
FINISHED, FAILED, CANCELLED = CompetitionState.FINISHED, CompetitionState.FAILED, CompetitionState.CANCELLED
REFERENCES = ["first_legal", "greedy", "random:1"]
LATE = BotChoice(reference="random:2")
KNOCKOUT = {"format": {"kind": "knockout"}, "references": [*REFERENCES, "random:3"]}
SWISS = {"format": {"kind": "swiss", "pairs": 1}, "rounds": 2}


async def create(tournaments: TournamentManager, **values: Any) -> Competition:
    return await tournaments.create_tournament(spec(**{"references": REFERENCES, **values}), None)


def results(harness: Harness, competition: Competition) -> TournamentResults:
    with harness.store(competition.slug) as store:
        return TournamentResults.load(store)


async def finished(harness: Harness, competition: Competition) -> TournamentResults:
    found = await harness.until_state(competition.id, FINISHED, FAILED, PAUSED)
    assert (found.state, found.message) == (FINISHED, "")
    return results(harness, competition)


def database_is_away(*_: object) -> None:
    raise StoreError("the database is away", is_ours=True)


def competitors(harness: Harness, competition: Competition) -> set[str]:
    return {one.name for one in harness.course.competitions.competitors(competition.id)}


async def test_a_version_joins_a_tournament_that_is_played(tmp_path: Path, database: Database) -> None:
    """It plays all of its games, also after the server was started again."""
    async with open_harness(tmp_path / "data", database=database) as harness:
        harness.engine.allow(first_games(4))
        async with running(harness, 0.0) as tournaments:
            cup = await create(tournaments, rounds=2)
            await tournaments.start(cup.id)
            await harness.until_played("cup", 4)
            version = harness.version("Team 1", "greedy")
            choice = BotChoice(version_id=version.id)
            harness.engine.allow(lambda job: all(player.name != "Team 1 v1" for player in job.players))
            sentences = await tournaments.add_bot(cup.id, choice, "was ill")
            assert sentences == ["noted: add Team 1 v1: was ill"]
            assert harness.competition(cup.id).state is RUNNING
            await until(lambda: harness.engine.waiting)
        assert competitors(harness, cup) == {*REFERENCES, "Team 1 v1"}
        harness.engine.allow()
        async with running(harness):
            summary = await finished(harness, cup)
        assert summary.bots == [*REFERENCES, "Team 1 v1"]
        games = Counter(name for game in summary.games for name in (game.first, game.second))
        assert games == dict.fromkeys(summary.bots, 2 * 2 * 3)
        assert summary.journal[0].data["digest"] == version.digest


async def test_a_bot_takes_the_place_of_another(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        cup = await create(tournaments)
        sentences = await tournaments.add_bot(cup.id, LATE, "a new version", "greedy")
        assert sentences == [
            "noted: withdraw greedy (its games count for nobody): a new version",
            "noted: add random:2 (in the place of greedy): a new version",
        ]
        assert harness.competition(cup.id).state is CREATED
        await tournaments.start(cup.id)
        summary = await finished(harness, cup)
        assert {game.first for game in summary.games} == {"first_legal", "random:1", "random:2"}


async def test_a_bot_joins_though_the_courses_database_fails(tmp_path: Path, database: Database) -> None:
    """The ruling is in the tournament's store: its rows in the course need no other ruling and no start."""
    async with open_harness(tmp_path / "data", database=database) as harness:
        harness = harness.with_context(config=ServiceConfig(slots=2, retry_s=0.01))
        by = add_account(harness.course, Role.LECTURER, "lecturer")
        async with running(harness) as tournaments:
            cup = await create(tournaments)
            faults_after_ruling = 0
            for number in count(1):
                choice = BotChoice(reference=f"random:{number + 1}")
                with fault_before(number) as fault, suppress(InjectedError):
                    await tournaments.add_bot(cup.id, choice, "was ill", None, by)
                ruled = {ruling.subject for ruling in results(harness, cup).journal}
                faults_after_ruling += fault.happened and choice.reference in ruled
                await until_recorded(harness, cup, len(ruled))
                assert competitors(harness, cup) == {*REFERENCES, *ruled}
                if not fault.happened:
                    break
        assert faults_after_ruling >= 3  # the competitor, the entry and their commit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "games"),
    [
        (lambda tournaments, number: tournaments.add_bot(number, LATE, "was ill"), 12),
        (lambda tournaments, number: tournaments.pause(number), 6),
        (lambda tournaments, number: tournaments.cancel(number), 6),
    ],
    ids=["ruling", "pause", "cancel"],
)
async def test_a_tournament_is_played_on_if_the_courses_database_fails(
    act: Callable[[TournamentManager, int], Awaitable[object]],
    games: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tournament_manager, "RULING_LIMIT_S", 0.0)
    async with open_harness(tmp_path) as harness, running(harness, 0.0) as tournaments:
        harness.engine.allow(lambda _job: False)
        cup = await create(tournaments)
        await tournaments.start(cup.id)
        await until(lambda: harness.engine.waiting)
        with monkeypatch.context() as patch:
            patch.setattr(harness.course.competitions, "set_state", database_is_away)
            with pytest.raises(StoreError, match="the database is away"):
                await act(tournaments, cup.id)
        assert harness.competition(cup.id).state is RUNNING
        await until(lambda: harness.engine.waiting)
        harness.engine.allow()
        assert (await finished(harness, cup)).done == games


async def test_a_round_robin_that_is_over_goes_on(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        cup = await create(tournaments)
        await tournaments.start(cup.id)
        assert (await finished(harness, cup)).done == 6
        await tournaments.add_bot(cup.id, LATE, "an extension")
        assert (await finished(harness, cup)).done == 12


@pytest.mark.parametrize(
    ("values", "choice", "replaces", "words"),
    [
        (KNOCKOUT, LATE, None, "format 'knockout' takes no bot after it was created: make another"),
        ({}, BotChoice(reference="greedy"), None, "'greedy' is entered already"),
        ({}, BotChoice(reference="random:9"), None, "has withdrawn: rule that it plays on"),
        ({}, BotChoice(version_id=1), None, "Team 1 v1 has not qualified: it is queued"),
        ({}, BotChoice(version_id=2), None, "Team 1 v2 was taken out of use"),
        ({}, BotChoice(version_id=999), None, "there is no version 999"),
        ({}, BotChoice(reference="gredy"), None, "there is no reference player 'gredy'; did you mean"),
        ({}, BotChoice(), None, "choose the version or the reference player"),
        ({}, LATE, "nobody", "there is no bot 'nobody' here"),
        (
            {"openings": {"plies": 2, "seed": 1}},
            BotChoice(version_id=3),
            None,
            "Team 2 v1 cannot take openings",
        ),
    ],
)
async def test_a_bot_that_cannot_join_changes_nothing(
    tmp_path: Path, values: dict[str, Any], choice: BotChoice, replaces: str | None, words: str
) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        for number, team in enumerate(("Team 1", "Team 1", "Team 2"), 1):
            assert harness.version(team, f"random:{number}").id == number
        harness.course.versions.requeue(1)
        harness.course.versions.withdraw(2, True)
        harness.bots.without_openings = {"Team 2 v1"}
        cup = await create(tournaments, **{"bots": [], "references": [*REFERENCES, "random:9"], **values})
        if not values:
            await tournaments.rule(cup.id, Action.WITHDRAW, "random:9", "x")
        before = results(harness, cup).journal, competitors(harness, cup)
        with pytest.raises((RulingError, TournamentSpecError), match=words):
            await tournaments.add_bot(cup.id, choice, "x", replaces)
        assert (results(harness, cup).journal, competitors(harness, cup)) == before


async def test_a_version_does_not_join_again_under_the_new_name_of_its_team(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        first, late = harness.version("Team 1", "greedy"), harness.version("Team 2", "random:5")
        cup = await create(tournaments, bots=[first.id])
        await tournaments.add_bot(cup.id, BotChoice(version_id=late.id), "was ill")
        for team_id in (first.team_id, late.team_id):
            harness.course.teams.rename(team_id, f"Renamed {team_id}")
        before = results(harness, cup).journal, competitors(harness, cup)
        for version, name in ((first, "Team 1 v1"), (late, "Team 2 v1")):
            with pytest.raises(RulingError, match=f"'{name}' is entered already"):
                await tournaments.add_bot(cup.id, BotChoice(version_id=version.id), "x")
        assert (results(harness, cup).journal, competitors(harness, cup)) == before


async def test_nobody_joins_after_the_last_round_is_paired(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        cup = await create(tournaments, **SWISS)
        with pytest.raises(RulingError, match="say why"):
            await tournaments.add_bot(cup.id, LATE, " ")
        await tournaments.add_bot(cup.id, LATE, "x")  # from the second round on
        await tournaments.start(cup.id)
        summary = await finished(harness, cup)
        assert {game.round for game in summary.games if "random:2" in (game.first, game.second)} == {2}
        with pytest.raises(RulingError, match="the last round of this tournament, 2, is paired"):
            await tournaments.add_bot(cup.id, BotChoice(reference="random:3"), "x")
        await tournaments.delete(cup.id)
        with pytest.raises(CourseError, match="is deleted"):
            await tournaments.add_bot(cup.id, LATE, "x")


async def test_a_late_bot_that_was_changed_stops_the_tournament(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        cup = await create(tournaments)
        version = harness.version("Team 1")
        await tournaments.add_bot(cup.id, BotChoice(version_id=version.id), "x")
        harness.bots.changed = {"Team 1 v1"}
        await tournaments.start(cup.id)
        found = await harness.until_state(cup.id, FAILED)
        assert found.message.startswith("Team 1 v1 is not made of the same files any more")
        harness.bots.changed = set()
        await tournaments.resume(cup.id)
        await finished(harness, cup)


async def test_a_bot_that_joined_by_the_command_line_is_named(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        cup = await create(tournaments)
        data = {"bot": "random:7", "base": "/", "digest": "d", "replaces": None}
        entry = Entry(Action.ADD, "random:7", "late", 1, "2026-01-01T00:00:00+00:00", data)
        with Store(harness.context.database.competition(cup.slug)) as store:
            store.note(entry)
        await tournaments.start(cup.id)
        found = await harness.until_state(cup.id, FAILED)
        assert "entry 1 of the journal names no bot of this server: add random:7: late" in found.message


# Cancelled and deleted tournaments


@pytest.mark.slow
async def test_a_cancelled_tournament_is_resumed_with_real_games(tmp_path: Path) -> None:
    async with open_harness(tmp_path, real_games=True) as harness, running(harness, 0.0) as tournaments:
        cup = await create(tournaments, rounds=2)
        await tournaments.start(cup.id)
        await harness.until_played("cup", 3)
        await tournaments.cancel(cup.id)
        assert harness.competition(cup.id).state is CANCELLED
        assert harness.context.hub.playing() == []
        cancelled = results(harness, cup).kept
        assert 3 <= len(cancelled) < 12
        await tournaments.add_bot(cup.id, LATE, "joined meanwhile")
        assert harness.competition(cup.id).state is CANCELLED
        await tournaments.resume(cup.id)
        summary = await finished(harness, cup)
        assert set(cancelled) <= set(summary.kept)
        pairs = Counter((game.round, game.first, game.second) for game in summary.kept)
        assert (len(pairs), set(pairs.values())) == (2 * 4 * 3, {1})
        progress = await tournaments.rejudge(cup.id)
        await until(lambda: progress.over)
        assert (progress.failure, progress.differences) == ("", [])


@pytest.mark.any_database
async def test_the_games_of_a_deleted_tournament_stay_in_the_backup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_harness(data, database=Database(data)) as harness, running(harness) as tournaments:
        cup = await create(tournaments)
        await tournaments.start(cup.id)
        kept = (await finished(harness, cup)).kept
        with harness.store(cup.slug) as store:
            records = [store.record(game.key) for game in kept]
        await tournaments.delete(cup.id)
        back_up(data, tmp_path / "course.tar", databases_inside=True, version="1.0", now=NOW)
    restore(tmp_path / "course.tar", tmp_path / "restored")
    restored = Database(tmp_path / "restored")
    with Course(restored.course()) as course:
        (competition,) = course.competitions.all()
        assert competition.state is CompetitionState.DELETED
    with Store(restored.competition(competition.slug)) as store:
        assert store.games() == kept
        assert [store.record(game.key) for game in kept] == records
        assert len(records) == 6


async def back_up_during(
    data: Path, target: Path, act: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make a backup, and do something between the copies of the tournaments and of the course."""

    async def do() -> None:
        await act()

    def copy(source: Path, to: Path) -> None:
        if source.name == backup.COURSE_FILE:
            trio.from_thread.run(do)
        copy_database(source, to)

    make = partial(back_up, data, target, databases_inside=True, version="1.0", now=NOW)
    with monkeypatch.context() as patch:
        patch.setattr(backup, "copy_database", copy)
        await trio.to_thread.run_sync(make)


@pytest.mark.slow
@pytest.mark.any_database
async def test_a_tournament_that_ended_during_the_backup_is_completed_after_the_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, target, restored = tmp_path / "data", tmp_path / "course.tar", tmp_path / "restored"
    async with open_harness(data, database=Database(data)) as harness, running(harness) as tournaments:
        harness.engine.allow(first_games(4))
        cup = await create(tournaments)
        await tournaments.start(cup.id)
        await harness.until_played("cup", 4)
        await until(lambda: harness.engine.waiting)

        async def end() -> None:
            harness.engine.allow()
            await finished(harness, cup)

        await back_up_during(data, target, end, monkeypatch)
    restore(target, restored)
    async with open_harness(restored, database=Database(restored)) as harness:
        assert harness.competition(cup.id).state is FINISHED
        assert results(harness, cup).done == 4
        with monkeypatch.context() as patch:  # a start that fails leaves it to the next one
            patch.setattr(harness.course.competitions, "set_state", database_is_away)
            async with running(harness) as tournaments:
                await until(lambda: harness.context.failures.newest())
                await until(lambda: cup.id not in tournaments._runs)
        async with running(harness):
            await until(lambda: results(harness, cup).done == 6)
            await finished(harness, cup)


@pytest.mark.any_database
async def test_a_ruling_after_the_restore_is_recorded_whatever_was_ruled_during_the_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, target, restored = tmp_path / "data", tmp_path / "course.tar", tmp_path / "restored"
    async with open_harness(data, database=Database(data)) as harness, running(harness) as tournaments:
        by = add_account(harness.course, Role.LECTURER, "lecturer")
        cup = await create(tournaments)
        lost = partial(tournaments.rule, cup.id, Action.WITHDRAW, "greedy", "copied", None, by)
        await back_up_during(data, target, lost, monkeypatch)
    restore(target, restored)
    async with open_harness(restored, database=Database(restored)) as harness:
        harness = harness.with_context(now=lambda: NOW + timedelta(days=1))
        async with running(harness) as tournaments:
            assert results(harness, cup).journal == []
            await tournaments.rule(cup.id, Action.WITHDRAW, "random:1", "ill", None, by)
            await until_recorded(harness, cup, 2)
        assert [entry.detail["ruled_on"] for entry in recorded(harness, cup)] == ["greedy", "random:1"]


async def test_a_version_that_was_built_anew_does_not_join_unchecked(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        late = harness.version("Team 1", "random:5")
        cup = await create(tournaments, bots=[])
        harness.bots.changed = {"Team 1 v1"}
        before = results(harness, cup).journal, competitors(harness, cup)
        with pytest.raises(RulingError, match="Team 1 v1 is not what was checked: have this version checked"):
            await tournaments.add_bot(cup.id, BotChoice(version_id=late.id), "was ill")
        assert (results(harness, cup).journal, competitors(harness, cup)) == before


def test_a_bot_whose_files_would_be_those_of_another_does_not_join() -> None:
    bots = ("Team 1 v1", "greedy")
    summary = TournamentResults(
        "Cup", "manchester", "1 s per move", bots, "points", Plan({"kind": "round-robin"})
    )
    with pytest.raises(RulingError, match="the names 'Team 1 v1' and 'Team_1 v1' are too like one another"):
        joining(summary, Candidate("Team_1 v1"), make_player("Team_1 v1"))
