"""What a course consists of, as the other modules see it.  Pure.

Moments are aware datetimes in UTC.  Numbers called ``id`` are given by the database and never used again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What somebody may do.  A visitor, who is not signed in, has none."""

    STUDENT = "student"
    LECTURER = "lecturer"
    ADMIN = "admin"
    """A lecturer who may also make accounts of lecturers and admins."""

    @property
    def teaches(self) -> bool:
        """Whether this is a lecturer, or more."""
        return self is not Role.STUDENT

    @property
    def one(self) -> str:
        """Somebody of this role, in a sentence."""
        return f"{'an' if self is Role.ADMIN else 'a'} {self.value}"


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who may sign in."""

    id: int
    login: str
    """Unique, compared in lower case."""
    name: str
    """For people.  Shown to lecturers and to the own team alone."""
    role: Role
    team_id: int | None
    """The team whose bot it is; only students have one."""
    has_password: bool
    """Whether an invitation was accepted."""
    disabled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Team:
    """One or more students with one bot between them."""

    id: int
    name: str
    """Unique, and its bot's name: public as far as the course is."""
    created_at: datetime


class VersionState(StrEnum):
    """What became of a submitted version."""

    QUEUED = "queued"
    CHECKING = "checking"
    QUALIFIED = "qualified"
    FAILED = "failed"
    """By its own fault: the report says which."""
    STUCK = "stuck"
    """Our host could not check it, several times: nobody's fault but ours."""


@dataclass(frozen=True, slots=True)
class Version:
    """One upload of a team's bot.  Never changed but for its state."""

    id: int
    team_id: int
    number: int
    """Counted from 1 in each team."""
    content: str
    """Digest in the content store."""
    files: int
    size: int
    """Bytes of all files."""
    submitted_at: datetime
    submitted_by: int
    """An account's id."""
    origin: str
    """How it came: ``page`` or ``api``."""
    state: VersionState
    attempts: int
    """How often a check was begun."""
    decided_at: datetime | None
    digest: str | None
    """Of the bot that plays, after the build; None until it qualified."""
    failures: int
    """Items of the check that failed."""
    withdrawn: bool
    """Taken out of use by its team or a lecturer."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of a version brought."""

    report: Mapping[str, Any] | None
    """``tournaments.checking.report.Report.to_json()``; None if there was no check, as of a failed build."""
    log: str
    """What was told while it went on, the build's output too."""


class CompetitionKind(StrEnum):
    """How games are chosen."""

    PRACTICE = "practice"
    """Without an end, among current versions and reference players."""
    TOURNAMENT = "tournament"


class CompetitionState(StrEnum):
    """Where a competition is."""

    CREATED = "created"
    RUNNING = "running"
    """Is to be played, and is taken up again after a restart."""
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    """Cannot go on; ``message`` says why."""


@dataclass(frozen=True, slots=True)
class Competition:
    """A practice ladder or a tournament; its games are in a store of its own."""

    id: int
    slug: str
    """Its name in addresses, and of its directory and database schema: ``[a-z0-9-]{1,40}``."""
    title: str
    kind: CompetitionKind
    state: CompetitionState
    spec: Mapping[str, Any]
    """What is to be played; service/tournament_spec.py reads it."""
    message: str
    created_at: datetime
    created_by: int | None
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Competitor:
    """Who plays in a competition under a name."""

    competition_id: int
    name: str
    """As it is in the games; never given to anybody else in the same competition."""
    version_id: int | None
    """None for a reference player."""
    reference: str | None
    """The text of a reference player, such as ``ladder:5``."""


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in."""

    account_id: int
    csrf: str
    """What forms of this session carry."""
    created_at: datetime
    expires_at: datetime


class LinkPurpose(StrEnum):
    """What a one-time link is for: either way a password is chosen with it."""

    INVITATION = "invitation"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Token:
    """Lets a program submit for an account."""

    id: int
    account_id: int
    name: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the course's journal: who did what."""

    number: int
    at: datetime
    account_id: int | None
    """None: the server itself, or its command line."""
    action: str
    """A word such as ``roster.import``."""
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)
