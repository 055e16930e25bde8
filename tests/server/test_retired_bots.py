"""Built bots that do not play any more are removed while the server runs, and no bot that is needed is."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from referee.judge.results import Reason
from tests.server.harness import GAME, QUICK, FakeChecks, bot, open_service, until
from tests.support.courses import NOW, after
from tournaments.course.casual_games import CasualPlayer
from tournaments.course.challenges import Side
from tournaments.course.model import (
    BotChoice,
    ChallengeState,
    CompetitionKind,
    CompetitionState,
    Competitor,
    Version,
    VersionState,
)
from tournaments.files.durable import FileLock
from tournaments.results.store import Store
from tournaments.server import retired_bots
from tournaments.server.retired_bots import RetiredBots


def build(data: Path, *versions: Version) -> None:
    """Make directories of built bots, which the fake checks do not."""
    for version in versions:
        (data / "bots" / version.content / "bot").mkdir(parents=True, exist_ok=True)


def built(data: Path) -> set[str]:
    return {path.name for path in (data / "bots").iterdir()} - {"incoming"}


async def test_a_running_server_frees_the_storage_of_replaced_bots(
    tmp_path: Path, checks: FakeChecks
) -> None:
    async with open_service(tmp_path, replace(QUICK, retired_s=0.01)) as harness:
        harness.course.settings.change(team_storage_mb=3)
        first, second = [
            await harness.decided((await harness.submit("Team 1", bot(number))).id) for number in (1, 2)
        ]
        build(tmp_path, first, second)
        (tmp_path / "bots" / first.content / "bot" / "table.bin").write_bytes(bytes(3 << 20))
        await until(lambda: built(tmp_path) == {second.content})
        await harness.submit("Team 1", bot(3))  # was refused until the next start
        await until(lambda: not list((tmp_path / "bots" / "incoming").iterdir()))  # a thread deletes them


async def test_a_running_server_keeps_the_bots_that_are_needed(tmp_path: Path, checks: FakeChecks) -> None:
    """In a tournament, a challenge, a casual game, a check, a game of practice, or asked for just now."""
    async with open_service(tmp_path) as harness:
        course, service = harness.course, harness.service
        versions = [
            await harness.decided((await harness.submit("Team 1", bot(number))).id) for number in range(1, 9)
        ]
        *old, current = versions
        build(tmp_path, *versions)
        entered, challenged, challenging, casual, checked, practising, asked_for = old
        cup = course.competitions.add("cup", "Cup", CompetitionKind.TOURNAMENT, {}, None, NOW)
        course.competitions.enter(cup.id, "Team 1 v1", entered.id, None)
        store = course.competitions.add("c", "Challenges", CompetitionKind.CHALLENGE, {}, None, NOW)
        own, opponent = [
            Side(BotChoice(version_id=one.id), f"v{one.number}", one.team_id)
            for one in (challenging, challenged)
        ]
        other = course.teams.add("Team 2", NOW)
        rules = course.settings.change(challenges_with="teams")
        challenge = course.challenges.add(
            store.id, other.id, challenging.submitted_by, own, opponent, 1, "page", NOW, rules
        )
        people = (CasualPlayer("Ada", "account:1"), CasualPlayer("Team 1 v4", version_id=casual.id))
        course.casual_games.add(GAME, "", people, NOW)
        ladder = course.competitions.add("ladder", "Ladder", CompetitionKind.PRACTICE, {}, None, NOW)
        course.competitions.enter(ladder.id, "Team 1 v6", practising.id, None)
        in_practice, in_checks = {"Team 1 v6"}, {checked.content}
        provider = service._context.bots
        remover = RetiredBots(
            course, service._bots, provider, lambda: in_checks, lambda: in_practice, period_s=1.0
        )
        async with trio.open_nursery() as nursery, provider._making[(asked_for.content, GAME)]:
            nursery.start_soon(provider.player, Competitor(cup.id, "Team 1 v7", asked_for.id, None), GAME)
            await until(lambda: provider.is_in_use(asked_for.content, 0))
            assert await remover.remove() == 0
            nursery.cancel_scope.cancel()
        in_practice.add("Team 1 v9")  # which has joined just now: its version is not known yet
        assert await remover.remove() == 0
        in_practice.clear()
        for end, version in (
            (in_checks.clear, checked),
            (lambda: course.casual_games.abandon(after(days=9), NOW, ""), casual),
            (lambda: course.competitions.set_state(cup.id, CompetitionState.DELETED, "", NOW), entered),
        ):
            before = built(tmp_path)
            await remover.remove()
            assert version.content in built(tmp_path)
            end()
            await remover.remove()
            assert version.content in before - built(tmp_path)
        assert built(tmp_path) == {one.content for one in (challenged, challenging, current)}
        course.challenges.end(challenge.id, ChallengeState.CANCELLED, NOW)
        assert await remover.remove() == 2
        assert built(tmp_path) == {current.content}


async def test_no_bot_is_removed_while_another_process_adds_one(tmp_path: Path, checks: FakeChecks) -> None:
    async with open_service(tmp_path) as harness:
        old, current = [
            await harness.decided((await harness.submit("Team 1", bot(number))).id) for number in (1, 2)
        ]
        build(tmp_path, old, current)
        service = harness.service
        remover = RetiredBots(harness.course, service._bots, service._context.bots, set, set, period_s=1.0)
        with FileLock(tmp_path / "bots"):
            assert await remover.remove() == 0
        assert await remover.remove() == 1


@pytest.mark.slow
async def test_a_bot_that_was_removed_is_built_when_it_is_needed(tmp_path: Path) -> None:
    async with open_service(tmp_path, replace(QUICK, retired_s=0.01)) as harness:
        first = await harness.decided((await harness.submit("Team 1", bot(1))).id)
        await harness.decided((await harness.submit("Team 1", bot(2))).id)
        await until(lambda: first.content not in built(tmp_path))
        provider = harness.service._context.bots
        player = await provider.player(Competitor(1, "Team 1 v1", first.id, None), GAME)
        assert player.digest == first.digest
        assert first.content in built(tmp_path)


@pytest.mark.slow
async def test_practice_goes_on_while_bots_are_replaced_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bots are removed as early as possible: no game is lost by it, and no failure is reported."""
    monkeypatch.setattr(retired_bots, "SETTLE_S", 0.0)
    config = replace(QUICK, retired_s=0.001, leisure_s=0.001)
    async with open_service(tmp_path, config, practice_on=True, references=["random:1"]) as harness:
        for number in range(1, 3):
            versions = [
                await harness.submit(team, bot(10 * number + index))
                for index, team in enumerate(("Team 1", "Team 2"))
            ]
            decided = [await harness.decided(one.id) for one in versions]
            assert {one.state for one in decided} == {VersionState.QUALIFIED}
            names = {f"{team} v{number}" for team in ("Team 1", "Team 2")}

            def has_played(names: set[str] = names) -> bool:
                with Store(harness.database.competition("practice"), read_only=True) as store:
                    return names <= {name for game in store.games() for name in (game.first, game.second)}

            await until(has_played)
        await until(lambda: built(tmp_path) == {one.content for one in decided})
        with Store(harness.database.competition("practice"), read_only=True) as store:
            games = store.games()
        assert {game.reason for game in games} == {Reason.SCORE}
        assert harness.service.status().failures == ()
