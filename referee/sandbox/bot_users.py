"""Numbers of the confined bots of this process, and the users that they run as where the referee is root."""

import os
from functools import lru_cache
from pathlib import Path
from threading import Lock

from referee.errors import RefereeError

MAX_BOTS = 32
"""Most confined bots of one process at a time: each has a number, from which its user follows."""
FIRST_USER = 1_900_000_000
"""First number of the users for bots, as root: a range that nothing uses (systemd's list of user numbers
leaves 1879048192 to 2147483647 free)."""
FEW_USERS_FIRST, FEW_USERS = 20_000, 40_000
"""First number and range if only 65536 users exist (in a container); two bots may then rarely share a
number."""


class BotNumbers:
    """The numbers of the confined bots that this process runs now, from all of its games and threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: set[int] = set()

    def take(self) -> int:
        """Return the lowest free number.  Raises RefereeError if there is none."""
        with self._lock:
            number = next((number for number in range(MAX_BOTS) if number not in self._taken), None)
            if number is None:
                raise RefereeError(f"this process runs {MAX_BOTS} confined bots already, as many as it can")
            self._taken.add(number)
        return number

    def give_back(self, number: int) -> None:
        """Free a number."""
        with self._lock:
            self._taken.discard(number)


bot_numbers = BotNumbers()


def bot_user(number: int) -> int:
    """Return the user that the bot with this number in this process runs as, when the referee is root.

    No two bots of a host have the same user at a time: Linux has at most 2**22 process numbers.
    """
    bot = MAX_BOTS * os.getpid() + number
    if _has_all_users():
        return FIRST_USER + bot
    return FEW_USERS_FIRST + bot % FEW_USERS


def can_assign_users() -> bool:
    """Return True if this process is root of enough users to give each bot one of its own.

    Root of a user namespace with fewer users is an ordinary user outside, and confines bots as one.
    """
    return os.geteuid() == 0 and _users() >= FEW_USERS_FIRST + FEW_USERS


def _has_all_users() -> bool:
    return _users() >= 2**31


@lru_cache(maxsize=1)
def _users() -> int:
    """Return the number of users, from 0 upwards, in this process's user namespace."""
    try:
        first = [int(word) for word in Path("/proc/self/uid_map").read_text().split()[:3]]
    except (OSError, ValueError):
        return 0
    return first[2] if first[:1] == [0] else 0
