"""Simulated games that take no time, for measurements of everything around a game."""

import pickle
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import trio

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, MatchResult, Player, Reason
from referee.playing import Job
from tournaments.config.tournament import Tournament
from tournaments.engines.base import OnSnapshot, OnStart
from tournaments.results.game_summary import PackedGame

DRAWS = 0.1
CONTROL = TimeControl(move_s=10.0)


class InstantEngine:
    """Engine whose games are waits.  The same job has the same result every time."""

    def __init__(self, workers: int, record: GameRecord, length_s: float = 0.0) -> None:
        """Create an engine whose games have the moves and the conversation of ``record``.

        ``length_s`` is the duration of each game.
        """
        self.concurrency = workers
        self._slots = trio.CapacityLimiter(workers)
        self._length_s = length_s
        self._record = record
        self._replies: dict[str, bytes] = {}

    def prepare(self, jobs: Iterable[Job]) -> None:
        """Pack the games of jobs in advance, outside of the measurement: in a tournament, workers do this."""
        self._replies |= {job.key: reply_to(job, self._record) for job in jobs}

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Wait, and read the game as one that came from another process."""
        async with self._slots:
            if on_start is not None:
                on_start("")
            await trio.sleep(self._length_s)
        game: PackedGame = pickle.loads(self._replies.pop(job.key, b"") or reply_to(job, self._record))
        return game


def reply_to(job: Job, record: GameRecord) -> bytes:
    """Return the reply of a process that played this game: the record with the job's names."""
    game = replace(record, key=job.key, players=job.players, result=made_up_result(job))
    return pickle.dumps(PackedGame.of(game))


def made_up_result(job: Job) -> MatchResult:
    """Return a random result, which depends on the game's key."""
    dice = random.Random(job.key)
    if dice.random() < DRAWS:
        return MatchResult(None, Reason.SCORE, "a draw", (36, 36))
    winner = dice.randrange(2)
    score = (40, 32) if winner == 0 else (32, 40)
    return MatchResult(winner, Reason.SCORE, f"{job.players[winner].name} won: 40 to 32", score)


def tournament_of(bots: int, rounds: int, game: str) -> Tournament:
    """Return a round robin of bots that are never started."""
    here = str(Path.cwd())
    players = [Player(f"bot {number:03d}", ("/bin/true",), here, f"{number}") for number in range(bots)]
    return Tournament(
        name="Scale", game=game, rounds=rounds, ranking="points", control=CONTROL, bots=tuple(players)
    )
