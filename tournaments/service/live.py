"""What plays now, for those who watch.

The hub holds the newest state of each game and wakes whoever waits for a newer one.  Nothing waits for
watchers: one that is slow finds that several things have happened at once.  The store knows nothing of all
this, and a hub that was told nothing shows nothing; no result comes from here.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import trio

from referee.feed import Snapshot
from referee.play import Job
from referee.results import GameRecord

ENDED_STAYS_S = 60.0
"""For so long after its end a game can still be looked up: pages that were just opened lead to it."""
MOST_ENDED = 500
"""Games that have ended and are kept; a hundred end in a second where bots answer at once."""
MOST_WATCHERS = 1_500
"""In all; each is a page that somebody has open."""
MOST_OF_GAME = 500
"""Watchers of one game."""
LIST_INTERVAL_S = 2.0
"""The list is told no more often."""
GAME_INTERVAL_S = 0.2
"""Nor is one game: moves that come faster are shown together."""


class TooManyWatchersError(Exception):
    """There is no place for one more."""


@dataclass(frozen=True, slots=True)
class LiveGame:
    """A game as far as it is known."""

    competition: str
    """The slug of the competition that it belongs to; its key is unique there."""
    key: str
    game: str
    """Spec text."""
    first: str
    second: str
    """Who play."""
    opening: str
    """The opening's text."""
    control: str
    """The time control in words."""
    started_at: datetime
    moves: tuple[str, ...] = ()
    charged_us: tuple[int, ...] = ()
    """Of each move, in microseconds."""
    clocks_ms: tuple[int, int] | None = None
    """What the players' clocks showed when the present turn began; None before the first turn."""
    on_turn: int | None = None
    """The player whose clock runs."""
    turn_at: datetime | None = None
    """When that was told."""
    over: str | None = None
    """The sentence on how it ended; None while it goes on."""
    host: str = ""
    """The cluster's that plays it, for lecturers; empty if this machine does."""
    kept: bool | None = None
    """Whether it has a record; None until that is known, a little after its verdict."""


@dataclass(frozen=True, slots=True)
class NowPlaying:
    """What the site's first page shows."""

    games: tuple[LiveGame, ...]
    """That go on, the oldest first."""
    standings: int
    """Another number than before: the practice ladder's standings have changed."""


class Channel:
    """One game that was started.  A channel that another one has replaced in the hub is no longer heard."""

    def __init__(self, hub: "Hub", game: LiveGame) -> None:
        self._hub = hub
        self.game = game
        self.changed = trio.Event()
        """Set with the next news, and replaced by then."""
        self.watchers = 0
        self.ended_at: datetime | None = None

    def snapshot(self, snapshot: Snapshot) -> None:
        """The game went on; see ``Engine.play``."""
        game = self.game
        if game.kept is not None or snapshot.told != len(game.moves):
            return  # a program of the same user may write to the feed's socket, too
        self._now_is(
            replace(
                game,
                moves=(*game.moves, *(move.text for move in snapshot.moves)),
                charged_us=(*game.charged_us, *(move.charged_us for move in snapshot.moves)),
                clocks_ms=snapshot.clocks_ms,
                on_turn=snapshot.on_turn,
                turn_at=self._hub.now(),
                over=snapshot.over,
            )
        )

    def ended(self, record: GameRecord) -> None:
        """The game has its result."""
        self._end(
            replace(
                self.game,
                moves=tuple(move.move for move in record.moves),
                charged_us=tuple(move.charged_us for move in record.moves),
                on_turn=None,
                over=record.result.detail,
                kept=True,
            )
        )

    def failed(self, sentence: str) -> None:
        """The game was given up, and has no result."""
        self._end(replace(self.game, on_turn=None, over=sentence, kept=False))

    def _end(self, game: LiveGame) -> None:
        if self.game.kept is None:
            self.ended_at = self._hub.now()
            self._now_is(game)
            self._hub.list_changes()

    def _now_is(self, game: LiveGame) -> None:
        self.game = game
        self.changed.set()
        self.changed = trio.Event()


class Hub:
    """All games that go on, and those that have just ended."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self._channels: dict[tuple[str, str], Channel] = {}
        self._going: list[Channel] = []
        """Those whose games go on, the oldest first."""
        self._list_changed = trio.Event()
        self._standings = 0
        self._watchers = 0

    # What is told.

    def started(self, competition: str, job: Job, host: str = "") -> Channel:
        """A game begins; what becomes of it is told to the channel.  Replaces one of the same key."""
        first, second = job.players
        channel = Channel(
            self,
            LiveGame(
                competition=competition,
                key=job.key,
                game=job.game,
                first=first.name,
                second=second.name,
                opening=job.opening,
                control=str(job.control),
                started_at=self.now(),
                host=host,
            ),
        )
        replaced = self._channels.pop((competition, job.key), None)
        self._channels[competition, job.key] = channel
        if replaced is not None:
            replaced.failed("The game was started again.")
        self.list_changes()
        return channel

    def standings_changed(self) -> None:
        """The practice ladder's standings are other ones than before."""
        self._standings += 1
        self.list_changes()

    def list_changes(self) -> None:
        """Wake those who watch the list."""
        self._forget_old()
        self._going = [channel for channel in self._channels.values() if channel.ended_at is None]
        self._list_changed.set()
        self._list_changed = trio.Event()

    # What is asked.

    def playing(self) -> list[LiveGame]:
        """The games that go on, the oldest first."""
        return [channel.game for channel in self._going]

    def games(self) -> list[LiveGame]:
        """These, and those that have just ended."""
        self._forget_old()
        return [channel.game for channel in self._channels.values()]

    def game(self, competition: str, key: str) -> LiveGame | None:
        """One game, also for a little while after its end."""
        self._forget_old()
        channel = self._channels.get((competition, key))
        return None if channel is None else channel.game

    @contextmanager
    def watch_list(self) -> Iterator[AsyncIterator[NowPlaying]]:
        """Gives what plays now, and then again whenever that changes; never ends.

        Raises TooManyWatchersError.
        """
        with self._one_more():
            yield _ListWatcher(self)

    @contextmanager
    def watch_game(self, competition: str, key: str) -> Iterator[AsyncIterator[LiveGame]]:
        """Gives the game as it is, and then again whenever something happened; ends with its end.

        Raises KeyError if there is no such game, TooManyWatchersError.
        """
        channel = self._channels[competition, key]
        if channel.watchers >= MOST_OF_GAME:
            raise TooManyWatchersError
        with self._one_more():
            channel.watchers += 1
            try:
                yield _GameWatcher(channel)
            finally:
                channel.watchers -= 1

    def has_place(self, game: LiveGame) -> bool:
        """Whether one more may watch this game."""
        channel = self._channels.get((game.competition, game.key))
        return self._watchers < MOST_WATCHERS and (channel is None or channel.watchers < MOST_OF_GAME)

    @property
    def watchers(self) -> int:
        """How many watch."""
        return self._watchers

    def now_playing(self) -> NowPlaying:
        """What ``watch_list`` tells."""
        return NowPlaying(tuple(self.playing()), self._standings)

    async def list_news(self) -> None:
        """Wait for a change of what ``watch_list`` tells."""
        await self._list_changed.wait()

    @contextmanager
    def _one_more(self) -> Iterator[None]:
        if self._watchers >= MOST_WATCHERS:
            raise TooManyWatchersError
        self._watchers += 1
        try:
            yield
        finally:
            self._watchers -= 1

    def _forget_old(self) -> None:
        ended = [(at, where) for where, one in self._channels.items() if (at := one.ended_at) is not None]
        limit = self.now() - timedelta(seconds=ENDED_STAYS_S)
        surplus = len(ended) - MOST_ENDED
        for place, (at, where) in enumerate(sorted(ended)):
            if at > limit and place >= surplus:
                break
            del self._channels[where]


class _ListWatcher:
    """Gives the newest list, at most so often."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._told: NowPlaying | None = None
        self._due = 0.0

    def __aiter__(self) -> AsyncIterator[NowPlaying]:
        return self

    async def __anext__(self) -> NowPlaying:
        await trio.sleep_until(self._due)
        while self._is_told(news := self._hub.now_playing()):
            await self._hub.list_news()
        self._told = news
        self._due = trio.current_time() + LIST_INTERVAL_S
        return news

    def _is_told(self, news: NowPlaying) -> bool:
        """Whether the same games play, and the standings are as they were; moves are no news here."""
        told = self._told
        return (
            told is not None
            and told.standings == news.standings
            and [(game.competition, game.key, game.started_at) for game in told.games]
            == [(game.competition, game.key, game.started_at) for game in news.games]
        )


class _GameWatcher:
    """Gives the newest state of one game, at most so often."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told: LiveGame | None = None
        self._due = 0.0

    def __aiter__(self) -> AsyncIterator[LiveGame]:
        return self

    async def __anext__(self) -> LiveGame:
        if self._told is not None and self._told.kept is not None:
            raise StopAsyncIteration
        await trio.sleep_until(self._due)
        while self._channel.game is self._told:
            await self._channel.changed.wait()
        self._told = self._channel.game
        self._due = trio.current_time() + GAME_INTERVAL_S
        return self._told
