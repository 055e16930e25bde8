"""Challenges of teams: their requests, and the tasks that play the games.

A request is a row in the course's database, which is on the disk before it is acknowledged.  Its games are in
the store of a competition of their own, which has no standings.  What is to be played follows from both: a
server that was killed goes on with the games that are not stored.  Games have the lowest class of slots;
those with a remote bot have slots and an engine of their own.

Teams take turns: of each team one challenge is played at a time, one game after the other.  The
versions are those of the moment of the request; time control and limits are the course's when the game
begins.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ParamSpec

import trio

from referee.errors import RefereeError
from referee.games.spec import SpecError
from referee.judge.results import Player
from referee.playing import Job
from referee.sandbox.detection import SandboxError
from tournaments.course.challenges import Side
from tournaments.course.model import (
    Account,
    BotChoice,
    Challenge,
    ChallengeState,
    Competition,
    CompetitionKind,
    CompetitionState,
    Competitor,
    CourseError,
    VersionState,
)
from tournaments.database.base import StoreError
from tournaments.engines.base import Engine, EngineError
from tournaments.engines.local import open_local_engine
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.casual.games import HIGHEST_NICE, NICER_BY
from tournaments.server.challenges.challenge_games import ChallengeGame, Score, games_of
from tournaments.server.checks.qualifying import limits_of
from tournaments.server.failures import wait_s
from tournaments.server.metrics import CASUAL
from tournaments.server.practice.practice_games import opening_of
from tournaments.server.remote.remote_bots import RemoteBot, RemoteBotLostError, RemoteBots
from tournaments.server.service_context import ServiceContext, Stores
from tournaments.server.slots import Kind

P = ParamSpec("P")

SLUG, TITLE = "challenges", "Challenges"
SCRATCH = "remote"
"""Subdirectory of the scratch directory, for the pipes and sockets of games with remote bots."""
MOST_TRIES = 6
"""Number of failures of the server in a row, without a stored game in between, that end a challenge."""
RECONNECT_S = 60.0
"""Seconds for which a challenge waits for a remote bot that has lost its connection."""
OUR_FAILURES = (RefereeError, EngineError, SandboxError, SpecError, StoreError)
THE_SERVERS_FAULT = "The server could not play these games, and nobody lost by it. Ask again later."


class Challenges:
    """Runner of challenges, for the tasks of one event loop; see ``open_challenges``."""

    def __init__(self, context: ServiceContext, remote_engine: Engine, scratch: Path) -> None:
        """``remote_engine`` plays the games with remote bots; ``scratch`` is the directory of its pipes."""
        self.remotes = RemoteBots()
        self._context = context
        self._remote_engine = remote_engine
        self._scratch = scratch
        self._stores = Stores(context.database, context.metrics)
        self._scopes: dict[int, trio.CancelScope] = {}
        """Challenges that are being played, by id."""
        self._woken = trio.Event()

    async def run(self) -> None:
        """Play challenges until cancelled.  After a failure, it can be run again.  Raises StoreError."""
        self._scopes.clear()
        async with trio.open_nursery() as nursery:
            while True:
                woken = self._woken
                for challenge in await self._next():
                    scope = self._scopes[challenge.id] = trio.CancelScope()
                    nursery.start_soon(self._play, challenge, scope)
                await woken.wait()

    def close(self) -> None:
        """Close all database connections.  Blocks."""
        self._stores.close()

    # Requests

    async def ask(
        self, team_id: int, by: Account, bot: BotChoice, opponent: BotChoice, pairs: int, origin: str
    ) -> Challenge:
        """Add a challenge of a team; it is on the disk when this method returns.

        A version of the opponent must be its team's current one.  Raises CourseError if the challenge is not
        permitted now, StoreError.
        """
        challenge = await trio.to_thread.run_sync(self._ask, team_id, by, bot, opponent, pairs, origin)
        self._wake()
        return challenge

    async def cancel(self, challenge_id: int, by: Account) -> Challenge:
        """Cancel a challenge; a game that is being played is not recorded.

        Raises CourseError if it is over, StoreError.
        """
        course, now = self._context.course, self._context.now()

        def cancel() -> Challenge:
            with course.act(now, by.id, "challenge.cancel", f"challenge {challenge_id}"):
                return course.challenges.end(challenge_id, ChallengeState.CANCELLED, now)

        cancelled = await trio.to_thread.run_sync(cancel)
        scope = self._scopes.get(challenge_id)
        if scope is not None:
            scope.cancel()
        return cancelled

    async def games(self, challenges: Sequence[Challenge]) -> dict[int, list[GameSummary]]:
        """Return the stored games of some challenges, by the challenge's id, in their order.

        Raises StoreError.
        """
        return await trio.to_thread.run_sync(self._games, challenges)

    def _games(self, challenges: Sequence[Challenge]) -> dict[int, list[GameSummary]]:
        known = {one.id: one for one in self._context.course.competitions.all()}
        found: dict[int, list[GameSummary]] = {}
        for challenge in challenges:
            keys = [game.key for game in games_of(challenge)]
            with self._stores.using(known[challenge.competition_id].slug) as store:
                found[challenge.id] = store.games(keys)
        return found

    def _ask(
        self, team_id: int, by: Account, bot: BotChoice, opponent: BotChoice, pairs: int, origin: str
    ) -> Challenge:
        course, now = self._context.course, self._context.now()
        with course.act(now, by.id, "challenge.ask", pairs=pairs) as act:
            settings = course.settings.load()
            competition = self._competition(settings.game)
            # A version keeps its first name here, also if its team is renamed.
            entered = {one.version_id: one.name for one in course.competitions.competitors(competition.id)}
            own, other = self._side(bot, team_id, entered), self._side(opponent, team_id, entered)
            if own.team_id != team_id or bot.reference is not None:
                raise CourseError("Challenges are for a bot of your own team.")
            if own.name == other.name:
                raise CourseError("That is your own bot: choose another one.")
            if bot.remote is not None and opponent.remote is not None:
                raise CourseError("Two remote bots cannot play each other: choose another opponent.")
            challenge = course.challenges.add(
                competition.id, team_id, by.id, own, other, pairs, origin, now, settings
            )
            for side in (own, other):
                choice = side.choice
                if choice.remote is not None:
                    course.competitions.enter_remote(competition.id, side.name, choice.remote)
                else:
                    course.competitions.enter(competition.id, side.name, choice.version_id, choice.reference)
            act.subject = f"challenge {challenge.id}"
            act.detail |= {"bot": own.name, "opponent": other.name}
            return challenge

    def _competition(self, game: str) -> Competition:
        """Return the competition whose store has the challenges of a game, creating it if needed."""
        competitions, now = self._context.course.competitions, self._context.now()
        known = competitions.all()
        for one in known:
            if one.kind is CompetitionKind.CHALLENGE and one.spec.get("game") == game:
                return one
        taken = {one.slug for one in known}
        free = (f"{SLUG}-{number}" for number in range(2, len(taken) + 3))
        slug = SLUG if SLUG not in taken else next(name for name in free if name not in taken)
        made = competitions.add(slug, TITLE, CompetitionKind.CHALLENGE, {"game": game}, None, now)
        return competitions.set_state(made.id, CompetitionState.RUNNING, "", now)

    def _side(self, choice: BotChoice, team_id: int, entered: Mapping[int | None, str]) -> Side:
        """Return a bot with its name and team.  Raises CourseError if it does not play.

        ``entered`` maps the ids of versions to the names under which they were entered before.
        """
        course = self._context.course
        if choice.reference is not None:
            return Side(choice, choice.reference, None)
        if choice.remote is not None:
            if self.remotes.get(team_id, choice.remote) is None:
                raise CourseError(f"Your team has no remote bot {choice.remote!r} that is connected.")
            return Side(choice, f"{choice.remote} (remote)", team_id)
        version = None if choice.version_id is None else course.versions.get(choice.version_id)
        if version is None or course.versions.current().get(version.team_id) != version:
            raise CourseError("This bot does not play any more: choose its team's current version.")
        team = course.teams.get(version.team_id)
        if team is None:
            raise CourseError("This team is no more.")
        return Side(choice, entered.get(version.id) or f"{team.name} v{version.number}", team.id)

    # Games

    def _wake(self) -> None:
        self._woken.set()
        self._woken = trio.Event()

    async def _next(self) -> list[Challenge]:
        """Return the challenges that begin now: the oldest one of each team that has none under way."""
        unfinished = await trio.to_thread.run_sync(self._context.course.challenges.unfinished)
        busy = {one.team_id for one in unfinished if one.id in self._scopes}
        found = []
        for challenge in unfinished:
            if challenge.team_id not in busy:
                busy.add(challenge.team_id)
                found.append(challenge)
        return found

    async def _play(self, challenge: Challenge, scope: trio.CancelScope) -> None:
        """Play a challenge, and store how it ended."""
        try:
            with scope:
                await self._play_with_retries(challenge)
        except CourseError:
            pass  # it was cancelled meanwhile
        finally:
            del self._scopes[challenge.id]
            self._wake()

    async def _play_with_retries(self, challenge: Challenge) -> None:
        failures = 0
        unstored: dict[str, PackedGame] = {}

        def on_stored() -> None:
            nonlocal failures
            failures = 0

        while failures < MOST_TRIES:
            if failures:
                await trio.sleep(wait_s(failures, self._context.config.retry_s))
            try:
                await self._play_games(challenge, unstored, on_stored)
            except CannotPlayError as error:
                if not error.is_ours:
                    await self._end(challenge, ChallengeState.FAILED, f"{error}.")
                    return
                self._context.failures.note("challenges", str(error))
            except OUR_FAILURES as error:
                self._context.failures.note("challenges", f"challenge {challenge.id}: {error}")
            except CourseError:
                raise
            except Exception as error:  # a mistake of ours ends this challenge, and none of the others
                self._context.failures.note("challenges", error)
                break
            else:
                return
            failures += 1
        await self._end(challenge, ChallengeState.FAILED, THE_SERVERS_FAULT)

    async def _end(self, challenge: Challenge, state: ChallengeState, message: str = "") -> None:
        now, course = self._context.now(), self._context.course
        await trio.to_thread.run_sync(course.challenges.end, challenge.id, state, now, message)

    async def _play_games(
        self, challenge: Challenge, unstored: dict[str, PackedGame], on_stored: Callable[[], None]
    ) -> None:
        """Play the games of a challenge that are not stored yet; ``on_stored`` is called after each of them.

        ``unstored`` has the games that were played and could not be stored, by key.  They are stored by the
        next try, and not played again: a remote bot was sent their results.

        Raises CannotPlayError, CourseError, StoreError, and others of OUR_FAILURES.
        """
        course = self._context.course
        await trio.to_thread.run_sync(course.challenges.begin, challenge.id)
        competition = await trio.to_thread.run_sync(course.competitions.get, challenge.competition_id)
        if competition is None:
            raise CourseError("The competition of this challenge does not exist any more.")
        played = await trio.to_thread.run_sync(self._count, challenge)
        for game in games_of(challenge):
            if game.key not in played:
                if game.key not in unstored:
                    unstored[game.key] = await self._play_game(challenge, competition, game)
                await self._store(competition, game, unstored[game.key])
                del unstored[game.key]
                on_stored()
                await trio.to_thread.run_sync(self._count, challenge)
        await self._end(challenge, ChallengeState.FINISHED)

    def _count(self, challenge: Challenge) -> set[str]:
        """Store the results so far, and return the keys of the games that are over."""
        games = self._games([challenge])[challenge.id]
        score = Score.of(games)
        self._context.course.challenges.count(challenge.id, score.wins, score.draws, score.losses)
        return {game.key for game in games}

    async def _play_game(
        self, challenge: Challenge, competition: Competition, game: ChallengeGame
    ) -> PackedGame:
        """Play a game.  Raises CannotPlayError, StoreError, and others of OUR_FAILURES."""
        spec = str(competition.spec["game"])
        sides = [(challenge.bot, challenge.bot_name), (challenge.opponent, challenge.opponent_name)]
        seated = sides if game.leg == 1 else sides[::-1]
        packed: PackedGame | None = None
        while packed is None:
            players = {
                index: await self._player(
                    Competitor(competition.id, name, choice.version_id, choice.reference), spec
                )
                for index, (choice, name) in enumerate(seated)
                if choice.remote is None
            }
            remote = next((index for index in (0, 1) if index not in players), None)
            if remote is None:
                job = await self._job(game, spec, (players[0], players[1]))
                async with self._context.slots.taken(Kind.CASUAL):
                    packed = await self._counted(self._context.engine.play, job)
            else:
                packed = await self._play_remote(challenge, game, spec, remote, seated[remote], players)
        return packed

    async def _store(self, competition: Competition, game: ChallengeGame, packed: PackedGame) -> None:
        """Store a game that has been played.  Raises StoreError."""

        def store() -> None:
            with self._stores.using(competition.slug) as opened:
                opened.add_all([packed.in_round(game.pair, game.pair_name)])

        with trio.CancelScope(shield=True):  # a game that has ended is kept
            await trio.to_thread.run_sync(store)

    async def _play_remote(
        self,
        challenge: Challenge,
        game: ChallengeGame,
        spec: str,
        index: int,
        side: tuple[BotChoice, str],
        players: Mapping[int, Player],
    ) -> PackedGame | None:
        """Play a game with a remote bot, which is the player of this index; ``players`` has the other one.

        Returns None if the bot lost its connection before the game began: nobody loses by that.  Raises
        CannotPlayError if the bot does not come back, and others of OUR_FAILURES.
        """
        choice, name = side
        await self._connected(challenge.team_id, choice, name)
        async with self._context.slots.taken(Kind.REMOTE):
            # The wait for a slot may have been long: the bot may be gone, or be connected anew.
            bot = self._remote(challenge.team_id, choice)
            if bot is None:
                return None
            both = {**players, index: bot.player(name)}
            job = await self._job(game, spec, (both[0], both[1]))
            try:
                return await self._counted(bot.play, self._remote_engine, job, index, self._scratch)
            except RemoteBotLostError:
                return None

    async def _job(self, game: ChallengeGame, spec: str, players: tuple[Player, Player]) -> Job:
        """Return the job for a game.  Raises SandboxError, SpecError, StoreError."""
        opening = ""
        if game.pair > 1 and all("openings" in player.capabilities for player in players):
            opening = await trio.to_thread.run_sync(opening_of, spec, game.challenge_id * 100 + game.pair)
        settings = await trio.to_thread.run_sync(self._context.course.settings.load)
        sandbox = await self._context.bots.sandbox(settings.sandbox_mode)
        return Job(game.key, spec, players, settings.control(), limits_of(settings), opening, sandbox)

    async def _counted(
        self, play: Callable[P, Awaitable[PackedGame]], *args: P.args, **kwargs: P.kwargs
    ) -> PackedGame:
        """Play a game, and count it in the metrics.  Raises RefereeError, EngineError."""
        counted = self._context.count_games(CASUAL)
        try:
            packed = await play(*args, **kwargs)
        except (RefereeError, EngineError):
            counted(None)
            raise
        counted(packed)
        return packed

    def _remote(self, team_id: int, choice: BotChoice) -> RemoteBot | None:
        """Return a remote bot; None if it is not connected now."""
        found = self.remotes.get(team_id, choice.remote or "")
        return None if found is None or found.lost.is_set() else found

    async def _connected(self, team_id: int, choice: BotChoice, name: str) -> None:
        """Wait for a remote bot that has just lost its connection.

        Raises CannotPlayError if it does not come back.
        """
        with trio.move_on_after(RECONNECT_S):
            while True:
                changed = self.remotes.changed
                if self._remote(team_id, choice) is not None:
                    return
                await changed.wait()
        raise CannotPlayError(name, "this remote bot is not connected any more", is_ours=False)

    async def _player(self, competitor: Competitor, game: str) -> Player:
        """Return the player for a bot.  Raises CannotPlayError, StoreError."""
        if competitor.version_id is not None:
            version = await trio.to_thread.run_sync(self._context.course.versions.get, competitor.version_id)
            if version is None or version.withdrawn or version.state is not VersionState.QUALIFIED:
                raise CannotPlayError(competitor.name, "this version does not play any more", is_ours=False)
        try:
            return await self._context.bots.player(competitor, game)
        except CannotPlayError as error:
            if error.is_ours:
                raise
            # The reason may have lines of the bot's build, and the message is shown to both teams.
            self._context.failures.note("challenges", str(error))
            why = (
                "this bot could not be built or started on this server; lecturers see the reason on the "
                "dashboard"
            )
            raise CannotPlayError(competitor.name, why, is_ours=False) from error


@asynccontextmanager
async def open_challenges(context: ServiceContext, scratch: Path) -> AsyncIterator[Challenges]:
    """Open the challenges of a service, which are played as long as ``run`` runs; the caller closes them."""
    folder = scratch / SCRATCH
    await trio.to_thread.run_sync(lambda: folder.mkdir(mode=0o700, parents=True, exist_ok=True))
    nice = min(HIGHEST_NICE, context.config.nice + NICER_BY)
    async with open_local_engine(folder, context.slots.own[Kind.REMOTE], nice=nice) as engine:
        yield Challenges(context, engine, folder)
