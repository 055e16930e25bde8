"""Challenges: the games that teams ask for, their quota, and the consent of the challenged teams."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, insert, select, update

from referee.judge.verdict_text import counted
from tournaments.course.model import BotChoice, Challenge, ChallengeState, CourseError
from tournaments.course.schema import challenge, challenge_consent
from tournaments.course.settings import Settings, day_of, moment_text
from tournaments.course.transactions import Transactions
from tournaments.database.base import storable

MOST_PAIRS = 10
"""Maximum number of pairs of games in one challenge: more is a tournament's work."""
MOST_OPEN = 10
"""Maximum number of a team's challenges that are not over; a daily limit alone may be absent."""
UNFINISHED = (ChallengeState.WAITING, ChallengeState.PLAYING)


@dataclass(frozen=True)
class Usage:
    """A team's use of its quota."""

    pairs_today: int
    """Pairs of games in the challenges of this day; of one that failed, those with a game that was played."""
    open: int
    """Number of challenges that are not over."""


@dataclass(frozen=True)
class Side:
    """A bot that takes part in a new challenge."""

    choice: BotChoice
    name: str
    """Name of the bot in the games."""
    team_id: int | None
    """Id of the bot's team; None for a reference player."""


def pairs_left(settings: Settings, used: Usage) -> int | None:
    """Return the number of pairs that a team may still ask for on this day; None without a limit."""
    daily = settings.challenge_pairs_per_day
    return None if daily is None else max(0, daily - used.pairs_today)


def may_challenge(settings: Settings, now: datetime, used: Usage, pairs: int = 1) -> str | None:
    """Return the reason why a team may not ask for so many pairs now, as a sentence; None if it may."""
    if settings.challenges_with == "nobody":
        return "There are no challenges in this course."
    if not 1 <= pairs <= MOST_PAIRS:
        return f"A challenge has from 1 to {MOST_PAIRS} pairs of games, not {pairs}."
    if used.open >= MOST_OPEN:
        return f"{MOST_OPEN} challenges of your team are not over yet: wait for them, or cancel some."
    left = pairs_left(settings, used)
    if left is None or pairs <= left:
        return None
    daily, tomorrow = settings.challenge_pairs_per_day, moment_text(settings, day_of(settings, now)[1])
    used_up = "and yours are used up" if left == 0 else f"and {left} of yours are left"
    pairs_a_day = counted(daily or 0, "pair")
    return f"A team has {pairs_a_day} of games a day, {used_up}: the next day begins {tomorrow}."


def may_be_opponent(
    settings: Settings, team_id: int, opponent: BotChoice, opponent_team_id: int | None, accepts: bool
) -> str | None:
    """Return the reason why a team may not challenge this bot, as a sentence; None if it may.

    ``accepts`` is the consent of the opponent's team.
    """
    if opponent.reference is not None:
        if opponent.reference in settings.references:
            return None
        return f"{opponent.reference} is no reference player of this course."
    if opponent_team_id == team_id:
        return None if opponent.remote is not None else "That is your own bot: choose another one."
    if opponent.remote is not None:
        return "A remote bot plays with its own team alone."
    if settings.challenges_with != "teams":
        return "In this course only reference players can be challenged."
    return None if accepts else "This team does not accept challenges."


class Challenges:
    """Tables of challenges and of the teams' consent.  No challenge is ever deleted."""

    def __init__(
        self, transactions: Transactions, on_end: Callable[[Challenge], None] = lambda _: None
    ) -> None:
        """``on_end`` is called with each challenge that is over, within the transaction."""
        self._transactions = transactions
        self._on_end = on_end

    def add(
        self,
        competition_id: int,
        team_id: int,
        asked_by: int,
        bot: Side,
        opponent: Side,
        pairs: int,
        origin: str,
        now: datetime,
        rules: Settings,
    ) -> Challenge:
        """Add a challenge, which waits for its games.

        Raises CourseError if the rules, the quota or the opponent's team do not permit it.  Requests
        are counted in the same transaction, so that two simultaneous requests cannot both be the last one.
        """
        with self._transactions.writing() as connection:
            why_not = may_challenge(rules, now, self.usage(team_id, rules, now), pairs) or may_be_opponent(
                rules,
                team_id,
                opponent.choice,
                opponent.team_id,
                opponent.team_id is None or self.accepts(opponent.team_id),
            )
            if why_not is not None:
                raise CourseError(why_not)
            statement = insert(challenge).values(
                competition_id=competition_id,
                team_id=team_id,
                asked_by=asked_by,
                asked_at=now,
                origin=origin,
                version_id=bot.choice.version_id,
                remote=bot.choice.remote,
                bot_name=bot.name,
                opponent_version_id=opponent.choice.version_id,
                opponent_reference=opponent.choice.reference,
                opponent_remote=opponent.choice.remote,
                opponent_name=opponent.name,
                opponent_team_id=opponent.team_id,
                pairs=pairs,
                state=ChallengeState.WAITING.value,
                message="",
                wins=0,
                draws=0,
                losses=0,
            )
            return _challenge_of(connection.execute(statement.returning(challenge)).one())

    def get(self, challenge_id: int) -> Challenge | None:
        """Return the challenge with an ``id``."""
        found = self._listed(select(challenge).where(challenge.c.id == challenge_id))
        return found[0] if found else None

    def of_team(self, team_id: int, limit: int, before: int | None = None) -> list[Challenge]:
        """Return a team's challenges, newest first: at most ``limit``, with ids below ``before``."""
        query = select(challenge).where(challenge.c.team_id == team_id)
        if before is not None:
            query = query.where(challenge.c.id < before)
        return self._listed(query.order_by(challenge.c.id.desc()).limit(limit))

    def against(self, team_id: int, limit: int) -> list[Challenge]:
        """Return the newest challenges of other teams to a team's bot, newest first."""
        is_other = (challenge.c.opponent_team_id == team_id) & (challenge.c.team_id != team_id)
        return self._listed(select(challenge).where(is_other).order_by(challenge.c.id.desc()).limit(limit))

    def unfinished(self) -> list[Challenge]:
        """Return the challenges that wait or are being played, oldest first."""
        return self._listed(select(challenge).where(_is_unfinished()).order_by(challenge.c.id))

    def usage(self, team_id: int, settings: Settings, now: datetime) -> Usage:
        """Return a team's use of its quota."""
        own = challenge.c.team_id == team_id
        today = challenge.c.asked_at >= day_of(settings, now)[0]
        games = challenge.c.wins + challenge.c.draws + challenge.c.losses
        has_failed = challenge.c.state == ChallengeState.FAILED.value
        # Whoever makes a challenge fail before its last game would otherwise play without a limit.
        counted = case((has_failed, (games + 1) // 2), else_=challenge.c.pairs)
        pairs = select(func.coalesce(func.sum(counted), 0)).where(own, today)
        unfinished = select(func.count()).select_from(challenge).where(own, _is_unfinished())
        with self._transactions.reading() as connection:
            return Usage(
                int(connection.execute(pairs).scalar_one()), connection.execute(unfinished).scalar_one()
            )

    def begin(self, challenge_id: int) -> Challenge:
        """Record that the games of a challenge begin, or go on.  Raises CourseError if it is over."""
        return self._change(challenge_id, state=ChallengeState.PLAYING.value)

    def count(self, challenge_id: int, wins: int, draws: int, losses: int) -> Challenge:
        """Store the results so far.  Raises CourseError if the challenge is over."""
        return self._change(challenge_id, wins=wins, draws=draws, losses=losses)

    def end(self, challenge_id: int, state: ChallengeState, now: datetime, message: str = "") -> Challenge:
        """End a challenge.  Raises CourseError if it is over."""
        if not state.is_over:
            raise ValueError(f"{state} is no end of a challenge")
        with self._transactions.writing():
            ended = self._change(challenge_id, state=state.value, message=storable(message), ended_at=now)
            self._on_end(ended)
            return ended

    def accepts(self, team_id: int) -> bool:
        """Return whether other teams may challenge a team's bot."""
        return self.consents().get(team_id, True)

    def consents(self) -> Mapping[int, bool]:
        """Return team id -> consent, of the teams that have decided; the others accept."""
        with self._transactions.reading() as connection:
            rows = connection.execute(select(challenge_consent))
            return {row.team_id: row.accepts for row in rows}

    def set_consent(self, team_id: int, accepts: bool) -> bool:
        """Store whether other teams may challenge a team's bot; return whether that is a change."""
        with self._transactions.writing() as connection:
            if self.accepts(team_id) is accepts:
                return False
            where = challenge_consent.c.team_id == team_id
            if connection.execute(select(challenge_consent.c.team_id).where(where)).first() is None:
                connection.execute(insert(challenge_consent).values(team_id=team_id, accepts=accepts))
            else:
                connection.execute(update(challenge_consent).where(where).values(accepts=accepts))
            return True

    def _change(self, challenge_id: int, **values: Any) -> Challenge:
        with self._transactions.writing() as connection:
            return _change(connection, challenge_id, **values)

    def _listed(self, query: Select[Any]) -> list[Challenge]:
        with self._transactions.reading() as connection:
            return [_challenge_of(row) for row in connection.execute(query)]


def _is_unfinished() -> ColumnElement[bool]:
    return challenge.c.state.in_([state.value for state in UNFINISHED])


def _change(connection: Connection, challenge_id: int, **values: Any) -> Challenge:
    statement = update(challenge).where(challenge.c.id == challenge_id, _is_unfinished()).values(**values)
    row = connection.execute(statement.returning(challenge)).one_or_none()
    if row is None:
        raise CourseError("This challenge is over already.")
    return _challenge_of(row)


def _challenge_of(row: Any) -> Challenge:
    values = dict(row._mapping)
    bot = BotChoice(values.pop("version_id"), None, values.pop("remote"))
    opponent = BotChoice(
        values.pop("opponent_version_id"), values.pop("opponent_reference"), values.pop("opponent_remote")
    )
    values["state"] = ChallengeState(values["state"])
    return Challenge(bot=bot, opponent=opponent, **values)
