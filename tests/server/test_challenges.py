"""Challenges in a service: they are played once, in turn, in the lowest class, and survive a restart."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from sqlalchemy import update

from referee.errors import RefereeError
from referee.judge.clock import Clock, TimeControl
from referee.judge.results import Player
from tests.server.harness import LIMIT_S, Harness, first_games, open_harness, until
from tests.support.courses import NOW
from tests.support.tiers import slow
from tournaments.course.model import (
    BotChoice,
    Challenge,
    ChallengeState,
    CompetitionKind,
    Competitor,
    CourseError,
)
from tournaments.course.schema import challenge
from tournaments.database.base import Connections, StoreError
from tournaments.database.location import Database
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.store import Store
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.challenges import challenge_runner
from tournaments.server.challenges.challenge_games import ChallengeGame, Score, game_of
from tournaments.server.challenges.challenge_runner import MOST_TRIES, Challenges
from tournaments.server.config import ServiceConfig
from tournaments.server.remote import remote_bots
from tournaments.server.remote.remote_bots import (
    LOST,
    RemoteBot,
    RemoteBotError,
    RemoteBots,
    line_for_home,
    remote_control,
)
from tournaments.server.slots import Kind

GAME = "kalah(3,2)"
RANDOM = BotChoice(reference="random:1")


@asynccontextmanager
async def challenging(harness: Harness, **settings: Any) -> AsyncIterator[Challenges]:
    """Run challenges until the end of the block."""
    harness.course.settings.change(**{"game": GAME, "references": ["random:1"]} | settings)
    challenges = Challenges(harness.context, harness.context.engine, harness.context.data)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(challenges.run)
            await trio.testing.wait_all_tasks_blocked()
            yield challenges
            nursery.cancel_scope.cancel()
    finally:
        challenges.close()


@dataclass
class AtHome:
    """The side of a remote bot that is at home."""

    received: list[dict[str, Any]] = field(default_factory=list)

    def send_nowait(self, message: str) -> None:
        self.received.append(json.loads(message))

    @property
    def games(self) -> list[str]:
        """Keys of the games that have begun."""
        return [message["key"] for message in self.received if message["type"] == "game"]


@contextmanager
def connected(harness: Harness, challenges: Challenges, name: str, team: str = "Team 1") -> Iterator[AtHome]:
    """Connect a remote bot of a team during the block."""
    found, home = harness.course.teams.by_name(team), AtHome()
    assert found is not None
    with challenges.remotes.connected(RemoteBot(found.id, name, ("openings",), home)):
        yield home


async def ask(
    harness: Harness,
    challenges: Challenges,
    opponent: BotChoice = RANDOM,
    pairs: int = 1,
    team: str = "Team 1",
    remote: str = "",
) -> Challenge:
    """Ask for games of a team's current version, or of a remote bot."""
    found = harness.course.teams.by_name(team)
    assert found is not None
    (account, *_) = harness.course.accounts.of_team(found.id)
    if remote:
        own = BotChoice(remote=remote)
    else:
        own = BotChoice(version_id=harness.course.versions.current()[found.id].id)
    return await challenges.ask(found.id, account, own, opponent, pairs, "page")


def now_of(harness: Harness, challenge: Challenge) -> Challenge:
    found = harness.course.challenges.get(challenge.id)
    assert found is not None
    return found


async def ended(harness: Harness, challenge: Challenge) -> Challenge:
    await until(lambda: now_of(harness, challenge).state.is_over)
    return now_of(harness, challenge)


def games(harness: Harness) -> list[GameSummary]:
    with harness.store("challenges") as store:
        return store.games()


@pytest.mark.parametrize("real_games", [False, *slow(True)])
async def test_a_challenge_is_played_in_pairs_and_counted(
    tmp_path: Path, database: Database, real_games: bool
) -> None:
    async with open_harness(tmp_path / "data", database=database, real_games=real_games) as harness:
        harness.version("Team 1")
        other = harness.version("Team 2", "greedy")
        async with challenging(harness) as challenges:
            made = await ask(harness, challenges, BotChoice(version_id=other.id), pairs=2)
            over = await ended(harness, made)
            stored = (await challenges.games([over]))[over.id]
        assert (over.state, over.played, over.message) == (ChallengeState.FINISHED, 4, "")
        assert [(game.key, game.first, game.second) for game in stored] == [
            ("c0000001-01-1", "Team 1 v1", "Team 2 v1"),
            ("c0000001-01-2", "Team 2 v1", "Team 1 v1"),
            ("c0000001-02-1", "Team 1 v1", "Team 2 v1"),
            ("c0000001-02-2", "Team 2 v1", "Team 1 v1"),
        ]
        assert stored[0].opening == stored[1].opening == "", "the first pair begins at the start position"
        assert stored[2].opening == stored[3].opening != ""
        assert Score(over.wins, over.draws, over.losses) == Score.of(stored)
        (competition,) = harness.course.competitions.all()
        assert (competition.slug, competition.kind) == ("challenges", CompetitionKind.CHALLENGE)
        assert [event.action for event in harness.course.journal.entries(9)] == ["challenge.ask"]
        assert harness.context.failures.newest() == ()


async def test_a_restart_plays_what_is_missing_and_nothing_twice(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        async with challenging(harness) as challenges:
            harness.engine.allow(first_games(1))
            made = await ask(harness, challenges, pairs=2)
            await until(lambda: harness.engine.waiting == ["c0000001-01-2"])
        assert (now_of(harness, made).state, now_of(harness, made).played) == (ChallengeState.PLAYING, 1)
        async with challenging(harness):
            harness.engine.allow()
            over = await ended(harness, made)
        assert (over.state, over.played) == (ChallengeState.FINISHED, 4)
        begun = harness.engine.begun
        assert begun.count("c0000001-01-1") == 1
        assert begun.count("c0000001-01-2") == 2, "the game that was not over begins anew"
        assert len(games(harness)) == 4


async def test_a_game_that_was_stored_just_before_a_crash_counts(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        async with challenging(harness) as challenges:
            over = await ended(harness, await ask(harness, challenges))
        # As if the server had ended between the store and the course's database.
        location = harness.context.database.course()
        with Connections(location) as connections, connections.writing() as connection:
            connection.execute(update(challenge).values(state="playing", wins=0, draws=0, losses=0))
        begun = len(harness.engine.begun)
        async with challenging(harness):
            again = await ended(harness, over)
        assert (again.wins, again.draws, again.losses) == (over.wins, over.draws, over.losses)
        assert len(harness.engine.begun) == begun


async def test_teams_take_turns(tmp_path: Path) -> None:
    async with open_harness(tmp_path, slots=1) as harness:
        harness.version("Team 1")
        harness.version("Team 2")
        async with challenging(harness) as challenges:
            harness.engine.allow(lambda _job: False)
            long = await ask(harness, challenges, pairs=3)
            second = await ask(harness, challenges)
            await until(lambda: bool(harness.engine.waiting))
            short = await ask(harness, challenges, team="Team 2")
            await until(lambda: harness.context.slots.status()[Kind.CASUAL].waiting == 1)
            harness.engine.allow()
            await ended(harness, short)
            await ended(harness, long)
            await ended(harness, second)
        begun = harness.engine.begun
        assert begun[:2] == ["c0000001-01-1", "c0000003-01-1"]
        assert begun.index("c0000002-01-1") > begun.index("c0000001-03-2"), "one of a team at a time"


async def test_cancelling_keeps_the_games_that_are_over(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        async with challenging(harness) as challenges:
            harness.engine.allow(first_games(1))
            playing, waiting = [await ask(harness, challenges) for _ in range(2)]
            await until(lambda: bool(harness.engine.waiting))
            (account, *_) = harness.course.accounts.of_team(playing.team_id)
            for one in (waiting, playing):
                cancelled = await challenges.cancel(one.id, account)
                assert cancelled.state is ChallengeState.CANCELLED
            await until(lambda: not harness.engine.waiting)
            with pytest.raises(CourseError, match="over already"):
                await challenges.cancel(playing.id, account)
            await trio.testing.wait_all_tasks_blocked()
            third = await ask(harness, challenges)
            harness.engine.allow()
            await ended(harness, third)
        assert (now_of(harness, playing).played, now_of(harness, waiting).played) == (1, 0)
        actions = [event.action for event in harness.course.journal.entries(9)]
        assert sorted(actions) == ["challenge.ask"] * 3 + ["challenge.cancel"] * 2


async def test_a_withdrawn_version_ends_the_challenge_with_a_sentence(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        version = harness.version("Team 1")
        async with challenging(harness) as challenges:
            harness.engine.allow(first_games(1))
            made = await ask(harness, challenges)
            await until(lambda: bool(harness.engine.waiting))
            harness.course.versions.withdraw(version.id, True)
            harness.engine.allow()
            over = await ended(harness, made)
        # The return game had begun: it is over, and nothing else is due.
        assert over.state is ChallengeState.FINISHED
        async with challenging(harness) as challenges:
            harness.course.versions.withdraw(version.id, False)
            harness.engine.allow(first_games(0))
            first, second = await ask(harness, challenges), await ask(harness, challenges)
            await until(lambda: bool(harness.engine.waiting))
            harness.course.versions.withdraw(version.id, True)
            harness.engine.allow()
            over = await ended(harness, second)
        assert over.state is ChallengeState.FAILED
        assert over.message == "Team 1 v1: this version does not play any more."
        assert (now_of(harness, first).state, now_of(harness, first).played) == (ChallengeState.FAILED, 1)


async def test_the_servers_own_failures_are_retried_and_then_reported(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as plain:
        harness = plain.with_context(config=ServiceConfig(slots=2, retry_s=0.001))
        harness.version("Team 1")
        harness.engine.error = RefereeError("no memory")
        async with challenging(harness) as challenges:
            harness.engine.allow(lambda _job: False)
            over = await ended(harness, await ask(harness, challenges))
            assert (over.state, over.played) == (ChallengeState.FAILED, 0)
            assert over.message.startswith("The server could not play these games, and nobody lost by it")
            assert harness.engine.begun == ["c0000001-01-1"] * MOST_TRIES
            harness.engine.allow()
            assert (await ended(harness, await ask(harness, challenges))).state is ChallengeState.FINISHED
        assert "no memory" in harness.context.failures.newest()[0].why


async def test_failures_between_games_that_are_stored_are_not_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as plain:
        harness = plain.with_context(config=ServiceConfig(slots=2, retry_s=0.001))
        harness.version("Team 1")
        begun, waits = harness.engine.begun, list[int]()
        # Both games together fail often enough to end a challenge.
        harness.engine.error = RefereeError("no memory")
        harness.engine.allow(lambda job: begun.count(job.key) > MOST_TRIES // 2)

        def wait_s(failures: int, first_s: float) -> float:
            waits.append(failures)
            return first_s

        monkeypatch.setattr(challenge_runner, "wait_s", wait_s)
        async with challenging(harness) as challenges:
            over = await ended(harness, await ask(harness, challenges))
        assert (over.state, over.played) == (ChallengeState.FINISHED, 2)
        assert waits == [*range(1, MOST_TRIES // 2 + 1)] * 2


async def test_a_challenge_fails_at_its_last_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not after a wait that nothing follows."""
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        harness.engine.error = RefereeError("no memory")
        harness.engine.allow(lambda _job: False)
        waits: list[int] = []

        def wait_s(failures: int, _first_s: float) -> float:
            waits.append(failures)
            return 0.0

        monkeypatch.setattr(challenge_runner, "wait_s", wait_s)
        async with challenging(harness) as challenges:
            await ended(harness, await ask(harness, challenges))
        assert len(harness.engine.begun) == MOST_TRIES
        assert waits == [*range(1, MOST_TRIES)]


async def test_a_game_that_could_not_be_stored_is_stored_later_and_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote bot was sent its result already."""
    async with open_harness(tmp_path) as plain:
        harness = plain.with_context(config=ServiceConfig(slots=2, retry_s=0.001))
        harness.version("Team 1")
        add_all, tries = Store.add_all, list[str]()

        def add_all_at_the_third_try(store: Store, packed: Sequence[PackedGame]) -> set[str]:
            (key,) = (one.summary.key for one in packed)
            tries.append(key)
            if tries.count(key) < 3:
                raise StoreError("the database is away", is_ours=True)
            return add_all(store, packed)

        monkeypatch.setattr(Store, "add_all", add_all_at_the_third_try)
        async with challenging(harness) as challenges:
            with connected(harness, challenges, "home") as home:
                over = await ended(harness, await ask(harness, challenges, remote="home"))
        keys = ["c0000001-01-1", "c0000001-01-2"]
        assert (over.state, over.played) == (ChallengeState.FINISHED, 2)
        assert harness.engine.begun == home.games == keys
        assert [message["key"] for message in home.received if message["type"] == "over"] == keys
        assert [tries.count(key) for key in keys] == [3, 3]


async def test_an_unexpected_error_ends_one_challenge_alone(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        harness.version("Team 2")
        async with challenging(harness) as challenges:
            harness.engine.allow(lambda _job: False)
            going_on = await ask(harness, challenges, team="Team 2")
            await until(lambda: bool(harness.engine.waiting))
            harness.engine.error = ZeroDivisionError("no such case")
            over = await ended(harness, await ask(harness, challenges))
            assert (over.state, over.played) == (ChallengeState.FAILED, 0)
            assert over.message.startswith("The server could not play these games, and nobody lost by it")
            harness.engine.allow()
            assert (await ended(harness, going_on)).state is ChallengeState.FINISHED
        assert harness.engine.begun.count("c0000001-01-1") == 1
        (failure,) = harness.context.failures.newest()
        assert failure.why == "ZeroDivisionError: no such case"
        assert "Traceback" in failure.trace


async def test_a_remote_bot_that_reconnects_before_its_game_begins_plays_it(tmp_path: Path) -> None:
    async with open_harness(tmp_path, slots=1) as harness:
        harness.version("Team 1")
        slots = harness.context.slots
        async with challenging(harness) as challenges:
            async with slots.taken(Kind.REMOTE):
                with connected(harness, challenges, "home") as first:
                    made = await ask(harness, challenges, remote="home")
                    await until(lambda: slots.status()[Kind.REMOTE].waiting)
            await trio.testing.wait_all_tasks_blocked()
            assert slots.status()[Kind.REMOTE].taken == 0, "no slot is held for a bot that is not connected"
            assert harness.engine.begun == []
            with connected(harness, challenges, "home") as second:
                over = await ended(harness, made)
        assert (over.state, over.played) == (ChallengeState.FINISHED, 2)
        assert (first.games, second.games) == ([], ["c0000001-01-1", "c0000001-01-2"])


async def test_a_remote_bot_that_thinks_keeps_no_check_and_no_tournament_waiting(tmp_path: Path) -> None:
    async with open_harness(tmp_path, slots=1) as harness:
        harness.version("Team 1")
        async with challenging(harness) as challenges:
            harness.engine.allow(lambda _job: False)
            with connected(harness, challenges, "home"):
                made = await ask(harness, challenges, remote="home")
                await until(lambda: bool(harness.engine.waiting))
                for kind in (Kind.QUALIFICATION, Kind.TOURNAMENT, Kind.PRACTICE):
                    with trio.fail_after(LIMIT_S):
                        async with harness.context.slots.taken(kind):
                            assert now_of(harness, made).state is ChallengeState.PLAYING
                harness.engine.allow()
                assert (await ended(harness, made)).state is ChallengeState.FINISHED


async def test_remote_bots_of_several_teams_may_have_names_that_are_alike(
    tmp_path: Path, database: Database
) -> None:
    async with open_harness(tmp_path / "data", database=database) as harness:
        harness.version("Team 1")
        harness.version("Team 2")
        names = [("Team 1", "my-bot"), ("Team 2", "My_Bot"), ("Team 2", "my-bot"), ("Team 1", "my_bot")]
        async with challenging(harness) as challenges:
            for team, name in names:
                with connected(harness, challenges, name, team):
                    over = await ended(harness, await ask(harness, challenges, team=team, remote=name))
                assert (over.state, over.bot_name) == (ChallengeState.FINISHED, f"{name} (remote)")
        assert [one.name for one in harness.course.competitions.competitors(1)] == [
            "My_Bot (remote)",
            "my-bot (remote)",
            "my_bot (remote)",
            "random:1",
        ]


async def test_remote_bots_that_an_older_version_has_entered_go_on_playing(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        async with challenging(harness) as challenges:
            first = await ended(harness, await ask(harness, challenges))
            earlier = harness.course.competitions.enter(
                first.competition_id, "home (remote)", None, "remote:home"
            )
            with connected(harness, challenges, "home"), connected(harness, challenges, "HOME"):
                for name in ("home", "HOME"):
                    over = await ended(harness, await ask(harness, challenges, remote=name))
                    assert over.state is ChallengeState.FINISHED
        entered = harness.course.competitions.competitors(first.competition_id)
        assert entered.count(earlier) == 1
        assert len({one.name for one in entered}) == len(entered) == 4


@pytest.mark.parametrize("name", ["TEAM 1", "Team-1", "Another"])
async def test_a_version_plays_on_after_its_team_was_renamed(tmp_path: Path, name: str) -> None:
    async with open_harness(tmp_path) as harness:
        version = harness.version("Team 1")
        async with challenging(harness) as challenges:
            await ended(harness, await ask(harness, challenges))
            harness.course.teams.rename(version.team_id, name)
            again = await ended(harness, await ask(harness, challenges, team=name))
        assert (again.state, again.bot_name) == (ChallengeState.FINISHED, "Team 1 v1")


@pytest.mark.parametrize(
    ("opponent", "message"),
    [
        (BotChoice(reference="ladder:9"), "ladder:9 is no reference player of this course"),
        (BotChoice(version_id=1), "That is your own bot"),
        (BotChoice(version_id=2), "does not play any more"),
        (BotChoice(version_id=99), "does not play any more"),
        (BotChoice(), "does not play any more"),
    ],
)
async def test_a_challenge_that_is_not_permitted_changes_nothing(
    tmp_path: Path, opponent: BotChoice, message: str
) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        harness.version("Team 2")
        harness.version("Team 2", "greedy")
        async with challenging(harness) as challenges:
            with pytest.raises(CourseError, match=message):
                await ask(harness, challenges, opponent)
        assert harness.course.competitions.all() == []
        assert harness.course.journal.entries(9) == []


async def test_the_bots_of_a_challenge_are_of_two_kinds_of_teams(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        own, other = harness.version("Team 1"), harness.version("Team 2")
        (student, *_) = harness.course.accounts.of_team(own.team_id)
        home, away = BotChoice(remote="home"), BotChoice(remote="away")
        async with challenging(harness) as challenges:
            with connected(harness, challenges, "home"), connected(harness, challenges, "away"):
                for bot, opponent, words in (
                    (BotChoice(version_id=other.id), RANDOM, "are for a bot of your own team"),
                    (RANDOM, BotChoice(version_id=other.id), "are for a bot of your own team"),
                    (home, away, "Two remote bots cannot play each other"),
                ):
                    with pytest.raises(CourseError, match=words):
                        await challenges.ask(own.team_id, student, bot, opponent, 1, "page")
        assert harness.course.challenges.unfinished() == []


async def test_the_other_team_does_not_see_why_a_bot_was_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")

        async def player(competitor: Competitor, _game: str) -> Player:
            raise CannotPlayError(competitor.name, "$ make\nsecret_plan.c:3: error", is_ours=False)

        monkeypatch.setattr(harness.bots, "player", player)
        async with challenging(harness) as challenges:
            over = await ended(harness, await ask(harness, challenges))
        assert over.state is ChallengeState.FAILED
        assert over.message == (
            "Team 1 v1: this bot could not be built or started on this server; lecturers see the reason on "
            "the dashboard."
        )
        (failure,) = harness.context.failures.newest()  # for lecturers
        assert failure.why == "Team 1 v1: $ make\nsecret_plan.c:3: error"


async def test_a_remote_bot_that_does_not_come_back_ends_its_challenge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(challenge_runner, "RECONNECT_S", 0.0)
    async with open_harness(tmp_path, slots=1) as harness:
        harness.version("Team 1")
        slots = harness.context.slots
        async with challenging(harness) as challenges:
            async with slots.taken(Kind.REMOTE):
                with connected(harness, challenges, "home"):
                    made = await ask(harness, challenges, remote="home")
                    await until(lambda: slots.status()[Kind.REMOTE].waiting)
            over = await ended(harness, made)
        assert (over.state, over.played) == (ChallengeState.FAILED, 0)
        assert "this remote bot is not connected any more" in over.message


async def test_a_host_that_cannot_start_a_bot_plays_the_challenge_later(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        harness.bots.broken = {"Team 1 v1"}
        async with challenging(harness) as challenges:
            made = await ask(harness, challenges)
            await until(lambda: harness.context.failures.newest())
            assert not now_of(harness, made).state.is_over
            (failure,) = harness.context.failures.newest()
            assert (failure.where, "it is broken" in failure.why) == ("challenges", True)


@pytest.mark.parametrize(
    ("control", "sent"),
    [
        (TimeControl(move_s=1.0), "TIME;1000;1000"),
        (TimeControl(game_s=60.0), "TIME;60000;900"),
        (TimeControl(move_s=5.0, game_s=60.0), "TIME;60000;900"),
    ],
)
def test_a_remote_bot_is_sent_the_courses_own_limits(control: TimeControl, sent: str) -> None:
    shown_ms = Clock.fresh(remote_control(control)).shown_ms
    assert line_for_home(f"TIME;{shown_ms};{sent.split(';')[2]}", control) == sent
    assert line_for_home("CHANGE;1;7,7;YOU", control) == "CHANGE;1;7,7;YOU"


@pytest.mark.parametrize("error", [trio.WouldBlock(), trio.BrokenResourceError(), trio.ClosedResourceError()])
async def test_a_remote_bot_that_reads_nothing_has_lost_its_connection(error: Exception) -> None:
    class Full:
        def send_nowait(self, _message: str) -> None:
            raise error

    bot = RemoteBot(1, "home", (), Full())
    bot.send("welcome")
    assert (bot.lost.is_set(), bot.why_lost) == (True, LOST)


def test_a_server_has_a_greatest_number_of_remote_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_bots, "MOST_REMOTE", 1)
    remotes = RemoteBots()
    with remotes.connected(RemoteBot(1, "home", (), AtHome())):
        remotes.check(1, "home")  # which would take the place of the connected one
        with pytest.raises(RemoteBotError, match="Too many remote bots are connected now"):
            remotes.check(2, "home")
    remotes.check(2, "home")


async def test_another_game_of_the_course_has_challenges_of_its_own(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.version("Team 1")
        harness.course.competitions.add("challenges", "Cup", CompetitionKind.TOURNAMENT, {}, None, NOW)
        async with challenging(harness) as challenges:
            first = await ended(harness, await ask(harness, challenges))
            harness.course.settings.change(game="kalah(4,3)")
            second = await ended(harness, await ask(harness, challenges))
            played = await challenges.games([first, second])
        assert [len(played[one.id]) for one in (first, second)] == [2, 2]
        slugs = [one.slug for one in harness.course.competitions.all()]
        assert slugs == ["challenges-3", "challenges-2", "challenges"]


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("c0000012-03-2", ChallengeGame(12, 3, 2)),
        ("c12345678-10-1", ChallengeGame(12345678, 10, 1)),
        ("p0000001-1", None),
        ("c0000012-03-3", None),
        ("c12-03-1", None),
        ("", None),
    ],
)
def test_keys(key: str, found: ChallengeGame | None) -> None:
    assert game_of(key) == found
    assert found is None or found.key == key
