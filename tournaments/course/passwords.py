"""Passwords, hashed with Argon2id."""

import unicodedata
from threading import BoundedSemaphore

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from tournaments.course.model import CourseError

SHORTEST, LONGEST = 10, 200
"""Minimum and maximum length in characters."""
PARAMETERS = argon2.profiles.RFC_9106_LOW_MEMORY
"""RFC 9106, section 4, the second recommended option: 3 passes over 64 MiB in 4 lanes."""
AT_A_TIME = 2
"""Maximum number of simultaneous hashes, each of which takes 64 MiB.

More sign-ins wait, so that a course does not take 13 GB at the beginning of a lesson.
"""


class Passwords:
    """Hasher of passwords, which threads may share.  Tests use cheaper parameters."""

    def __init__(self, parameters: argon2.Parameters = PARAMETERS) -> None:
        self._hasher = argon2.PasswordHasher.from_parameters(parameters)
        self._turns = BoundedSemaphore(AT_A_TIME)

    def hash(self, password: str) -> str:
        """Return the hash to be stored for a password.  Raises CourseError if it is too short or too long."""
        text = _normal(password)
        if len(text) < SHORTEST:
            raise CourseError(f"a password needs at least {SHORTEST} characters")
        if len(text) > LONGEST:
            raise CourseError(f"a password has at most {LONGEST} characters")
        return self._hash(text)

    def check(self, kept: str | None, password: str) -> bool:
        """Return True if a password matches the hash ``kept``; without a hash, the call takes as long."""
        text = _normal(password)
        if len(text) > LONGEST:
            return False  # for any account
        if kept is None:
            self._hash(text)
            return False
        try:
            with self._turns:
                return self._hasher.verify(kept, _bytes(text))
        except (VerificationError, InvalidHashError):
            return False

    def is_old(self, kept: str) -> bool:
        """Return True if a hash was made with other parameters."""
        return self._hasher.check_needs_rehash(kept)

    def _hash(self, text: str) -> str:
        with self._turns:
            return self._hasher.hash(_bytes(text))


def _normal(password: str) -> str:
    """Return the password in NFC, as RFC 8265 (OpaqueString) requires: systems encode letters differently."""
    return unicodedata.normalize("NFC", password)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
