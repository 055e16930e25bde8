"""Invitation of the first account, an admin's."""

from datetime import datetime

from tournaments.course.course import Course
from tournaments.course.model import LinkPurpose, Role

LOGIN = "admin"


def invite_first_admin(course: Course, now: datetime) -> str | None:
    """Return the secret of a link for the first admin, who is created if there is no account at all.

    Each call makes a new link, which makes the earlier one void.  Returns None as soon as any admin has a
    password.
    """
    accounts = course.accounts.all()
    admins = [account for account in accounts if account.role is Role.ADMIN and not account.disabled]
    if any(account.has_password for account in admins):
        return None
    first = next((account for account in admins if account.login == LOGIN), None)
    if first is None:
        if accounts:
            return None  # the accounts were set up otherwise, with kalarena admin
        first = course.accounts.add(LOGIN, "Administrator", Role.ADMIN, None, now)
    return course.links.make(first.id, LinkPurpose.INVITATION, now)
