"""Titles and summaries of events, for mails and feeds.  Pure."""

from dataclasses import dataclass

from tournaments.course.model import Challenge, ChallengeState, LinkPurpose, Version, VersionState

CHECKED = {
    VersionState.QUALIFIED: "qualified",
    VersionState.FAILED: "did not qualify",
    VersionState.STUCK: "could not be checked",
}
ENDED = {
    ChallengeState.FINISHED: "is over",
    ChallengeState.FAILED: "was not played to its end",
    ChallengeState.CANCELLED: "was cancelled",
}


@dataclass(frozen=True)
class Notice:
    """An event in words."""

    path: str
    """Path of its page on the site."""
    title: str
    summary: str

    @property
    def text(self) -> str:
        """Title and summary together."""
        return f"{self.title}. {self.summary}"


def version_notice(version: Version) -> Notice:
    """Return the notice of a check's result."""
    failed = f"{version.failures} item{'' if version.failures == 1 else 's'} of its check failed."
    return Notice(
        path=f"/my/versions/{version.id}",
        title=f"Version {version.number} {CHECKED.get(version.state, 'is checked again')}",
        summary=failed if version.failures else "The result of its check is on its page.",
    )


def challenge_notice(challenge: Challenge, other: str, *, is_asker: bool) -> Notice:
    """Return the notice of a challenge that is over, for one of its teams.

    Args:
        challenge: The challenge.
        other: The displayed name of the other bot.
        is_asker: True for the team that asked for the challenge.

    """
    wins, losses = (challenge.wins, challenge.losses) if is_asker else (challenge.losses, challenge.wins)
    return Notice(
        path="/my/challenges",
        title=f"The challenge {'against' if is_asker else 'by'} {other} {ENDED[challenge.state]}",
        summary=f"Your bot: {wins} won, {challenge.draws} drawn, {losses} lost.",
    )


def tournament_notice(slug: str, title: str) -> Notice:
    """Return the notice of a finished tournament with its displayed title."""
    return Notice(
        path=f"/competitions/{slug}",
        title=f"{title} is finished",
        summary="The standings and all games are on its page.",
    )


def link_notice(login: str, purpose: LinkPurpose, until: str) -> Notice:
    """Return the notice of a one-time link; ``until`` is the moment at which the link expires."""
    if purpose is LinkPurpose.INVITATION:
        title, what = "Your account", f"Choose a password for your new account {login} with this link."
    else:
        title, what = "A new password", f"Choose a new password for your account {login} with this link."
    return Notice(
        path="/links/",
        title=title,
        summary=f"{what} It works once, until {until}. Give it to nobody.",
    )


def confirmation_notice(login: str, until: str) -> Notice:
    """Return the notice by which an address is confirmed until a moment."""
    return Notice(
        path="/account/mail/",
        title="Confirm your address",
        summary=(
            f"The account {login} asked for mail to this address. Confirm it with this link until {until}. "
            "If you did not ask for it, do nothing: this is the only mail that comes."
        ),
    )
