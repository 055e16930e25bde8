"""The account that all others begin with."""

from datetime import datetime

from tournaments.course.course import Course
from tournaments.course.model import LinkPurpose, Role

LOGIN = "admin"


def invite_first_admin(course: Course, now: datetime) -> str | None:
    """The secret of a link for the first admin, who is made if there is no account at all.

    A new one each time, which makes the earlier void; None as soon as any admin has a password.
    """
    accounts = course.accounts.all()
    admins = [account for account in accounts if account.role is Role.ADMIN and not account.disabled]
    if any(account.has_password for account in admins):
        return None
    first = next((account for account in admins if account.login == LOGIN), None)
    if first is None:
        if accounts:
            return None  # somebody arranged it otherwise, with kalarena admin
        first = course.accounts.add(LOGIN, "Administrator", Role.ADMIN, None, now)
    return course.links.make(first.id, LinkPurpose.INVITATION, now)
