"""Data classes and exceptions of a course, for the other modules (pure).

Moments are aware datetimes in UTC.  Numbers called ``id`` are assigned by the database and never reused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Permissions of an account.  A visitor, who is not signed in, has no role."""

    STUDENT = "student"
    LECTURER = "lecturer"
    ADMIN = "admin"
    """A lecturer who may also create accounts of lecturers and admins."""

    @property
    def teaches(self) -> bool:
        """True for lecturers and admins."""
        return self is not Role.STUDENT

    @property
    def one(self) -> str:
        """Name of the role with its article, for sentences."""
        return f"{'an' if self is Role.ADMIN else 'a'} {self.value}"


@dataclass(frozen=True, slots=True)
class Account:
    """An account of a person who can sign in."""

    id: int
    login: str
    """Unique login, compared in lower case."""
    name: str
    """Displayed name, visible to lecturers and to the own team alone."""
    role: Role
    team_id: int | None
    """Id of the account's team; only students have one."""
    has_password: bool
    """True if the invitation was accepted."""
    disabled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Team:
    """One or more students who share one bot."""

    id: int
    name: str
    """Unique name, also of the team's bot: as public as the course is."""
    created_at: datetime


class VersionState(StrEnum):
    """State of a submitted version."""

    QUEUED = "queued"
    CHECKING = "checking"
    QUALIFIED = "qualified"
    FAILED = "failed"
    """Failed its check by its own fault, which the report names."""
    STUCK = "stuck"
    """Could not be checked several times because of the host, not of the bot."""

    @property
    def is_decided(self) -> bool:
        """True if the check is over."""
        return self not in (VersionState.QUEUED, VersionState.CHECKING)


@dataclass(frozen=True, slots=True)
class Version:
    """One upload of a team's bot, of which only the state changes."""

    id: int
    team_id: int
    number: int
    """Number of the version, counted from 1 in each team."""
    content: str
    """Digest in the content store."""
    files: int
    size: int
    """Size of all files in bytes."""
    submitted_at: datetime
    submitted_by: int
    """Id of the account."""
    origin: str
    """Source of the upload: ``page`` or ``api``."""
    state: VersionState
    attempts: int
    """Number of checks that were begun."""
    decided_at: datetime | None
    digest: str | None
    """Digest of the bot that plays, after the build; None until the version has qualified."""
    failures: int
    """Number of items of the check that failed."""
    withdrawn: bool
    """True if the team or a lecturer has taken it out of use."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of a version's check."""

    report: Mapping[str, Any] | None
    """``tournaments.checking.report.Report.to_json()``; None if there was no check, as of a failed build."""
    log: str
    """Log of the check, with the build's output."""


@dataclass(frozen=True, slots=True)
class CheckedGame:
    """A game of a version's check."""

    key: str
    """Key of the game in the report."""
    player: int
    """Number of the checked bot in the record: 0 if it moved first, else 1."""
    packed: bytes
    """Record of the game, as ``tournaments.results.game_summary`` packs it."""


class CompetitionKind(StrEnum):
    """Kinds of competitions."""

    PRACTICE = "practice"
    """Endless games among current versions and reference players."""
    TOURNAMENT = "tournament"
    CHALLENGE = "challenge"
    """Games that teams asked for; they are in no standings."""


class CompetitionState(StrEnum):
    """State of a competition."""

    DRAFT = "draft"
    """Seen by lecturers alone, until it is published."""
    CREATED = "created"
    RUNNING = "running"
    """Being played; it is resumed after a restart."""
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    """Stopped by an error, which ``message`` names."""
    CANCELLED = "cancelled"
    """Ended before its last game; it can be resumed."""
    DELETED = "deleted"
    """Shown to nobody.  Its games stay in the database, and in backups."""


HIDDEN = "hidden"
"""Key of a competition's ``spec``: true if only lecturers see the competition."""


@dataclass(frozen=True, slots=True)
class Competition:
    """A practice ladder or a tournament; its games are in a store of its own."""

    id: int
    slug: str
    """Name in addresses, and of its directory and database schema: ``[a-z0-9-]{1,40}``."""
    title: str
    kind: CompetitionKind
    state: CompetitionState
    spec: Mapping[str, Any]
    """Specification of the games, see tournaments.server.competitions.tournament_spec."""
    message: str
    created_at: datetime
    created_by: int | None
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_hidden(self) -> bool:
        """True if a lecturer has hidden the competition."""
        return self.spec.get(HIDDEN) is True

    def is_visible(self, *, teaches: bool) -> bool:
        """Return whether a viewer may see that the competition exists; ``teaches`` is true for lecturers."""
        if self.state is CompetitionState.DELETED:
            return False
        return teaches or not (self.is_hidden or self.state is CompetitionState.DRAFT)


@dataclass(frozen=True, slots=True)
class Competitor:
    """A bot that plays in a competition under a name."""

    competition_id: int
    name: str
    """Name in the games, which is unique in the competition for ever."""
    version_id: int | None
    """Id of the version; None for a reference player."""
    reference: str | None
    """The text of a reference player, such as ``ladder:5``."""


class ChallengeState(StrEnum):
    """State of a challenge."""

    WAITING = "waiting"
    PLAYING = "playing"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    """Cancelled by its team; games that were over by then are kept."""
    FAILED = "failed"
    """Not played, or not to the end; ``message`` gives the reason."""

    @property
    def is_over(self) -> bool:
        """True for a final state."""
        return self not in (ChallengeState.WAITING, ChallengeState.PLAYING)


@dataclass(frozen=True, slots=True)
class BotChoice:
    """A bot of a challenge: exactly one of the fields has a value."""

    version_id: int | None = None
    reference: str | None = None
    """The text of a reference player, such as ``ladder:5``."""
    remote: str | None = None
    """Name of a remote bot of the team that challenges."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """Games that a team asked for, of its bot against a chosen one."""

    id: int
    competition_id: int
    """Id of the competition whose store has the games."""
    team_id: int
    asked_by: int
    """Id of the account."""
    asked_at: datetime
    origin: str
    """Source of the request: ``page`` or ``api``."""
    bot: BotChoice
    """The team's own bot."""
    bot_name: str
    """Name of that bot in the games."""
    opponent: BotChoice
    opponent_name: str
    opponent_team_id: int | None
    """Id of the opponent's team; None for a reference player."""
    pairs: int
    """Number of pairs of games, in which the bots exchange their seats."""
    state: ChallengeState
    message: str
    """Reason for the state FAILED; else empty."""
    wins: int
    """Number of games that the team's own bot has won so far."""
    draws: int
    losses: int
    ended_at: datetime | None

    @property
    def games(self) -> int:
        """Number of games in all."""
        return 2 * self.pairs

    @property
    def played(self) -> int:
        """Number of games that are over."""
        return self.wins + self.draws + self.losses


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in."""

    account_id: int
    csrf: str
    """CSRF token of the session's forms."""
    created_at: datetime
    expires_at: datetime


class LinkPurpose(StrEnum):
    """Purpose of a one-time link; in both cases it sets a password."""

    INVITATION = "invitation"
    RESET = "reset"


class MailKind(StrEnum):
    """Kinds of mails."""

    CHECKS = "checks"
    """Results of checks of the own team."""
    CHALLENGES = "challenges"
    """Ends of challenges that the own team asked for."""
    TOURNAMENTS = "tournaments"
    """Ends of tournaments in which the own team played; lecturers get those of all."""
    LINK = "link"
    """A one-time link for a password."""
    ADDRESS = "address"
    """A link that confirms the address to which it goes."""


CHOSEN_KINDS = (MailKind.CHECKS, MailKind.CHALLENGES, MailKind.TOURNAMENTS)
"""Kinds of mails that a person can switch off; the others are sent because somebody waits for them."""


class MailState(StrEnum):
    """State of a mail in the outbox."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    """Refused for good, or too often; it is not tried again unless the operator asks for it."""


@dataclass(frozen=True, slots=True)
class MailAddress:
    """E-mail address of an account, and the mails that its person wants."""

    address: str | None = None
    """Address to which mails go; None: no mail is sent."""
    pending: str | None = None
    """Address that waits for its confirmation."""
    is_own: bool = False
    """True if the person has set or removed the address: a roster does not change it any more."""
    kinds: frozenset[MailKind] = frozenset(CHOSEN_KINDS)
    """Kinds that are wanted, of CHOSEN_KINDS."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail in the outbox."""

    id: int
    kind: MailKind
    address: str
    subject: str
    body: str
    path: str
    """Path of the page on the site; it may contain the secret of a link."""
    created_at: datetime
    attempts: int
    """Number of attempts so far."""


@dataclass(frozen=True, slots=True)
class FailedMail:
    """A mail that could not be delivered."""

    login: str
    kind: MailKind
    address: str
    tried_at: datetime
    answer: str
    """Answer of the mail server."""


@dataclass(frozen=True, slots=True)
class OutboxStatus:
    """Numbers of mails that are not sent."""

    waiting: int = 0
    held: int = 0
    """Mails of another data directory, as after a restore: they wait for the operator's decision."""
    failed: int = 0
    oldest: datetime | None = None
    """Moment of the oldest mail that waits; None without any."""
    failures: Sequence[FailedMail] = ()
    """The mails that failed last, newest first."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token that permits a program to submit for an account."""

    id: int
    account_id: int
    name: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the course's journal."""

    number: int
    at: datetime
    account_id: int | None
    """Id of the acting account; None for the server itself, or its command line."""
    action: str
    """Kind of the action, such as ``roster.import``."""
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


FINISH = "tournament.finish"
"""Action of the journal's entry on the end of a tournament, with the roster of that moment."""


class CourseError(Exception):
    """An invalid request; the message gives the reason in a clear sentence, and nothing was changed.

    Errors of the database are ``StoreError`` instead.
    """
