"""Passwords, hashed with Argon2id."""

from functools import cache
from pathlib import Path
from threading import BoundedSemaphore

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from tournaments.course.model import CourseError
from tournaments.course.texts import normalized

SHORTEST, LONGEST = 10, 200
"""Minimum and maximum length in characters."""
PARAMETERS = argon2.profiles.RFC_9106_LOW_MEMORY
"""RFC 9106, section 4, the second recommended option: 3 passes over 64 MiB in 4 lanes."""
COMMON_WORDS = Path(__file__).with_name("common_words.txt")
"""Words of common passwords, in lower case: of leaked lists, German ones, and of this subject."""
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
        """Return the hash to be stored for a password.

        Raises CourseError if it is too short, too long, or a common one.
        """
        text = _normal(password)
        if len(text) < SHORTEST:
            raise CourseError(f"a password needs at least {SHORTEST} characters")
        if len(text) > LONGEST:
            raise CourseError(f"a password has at most {LONGEST} characters")
        if is_common(text):
            raise CourseError("this password is a common one, which is guessed first: choose another one")
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


def is_common(password: str) -> bool:
    """Return whether a password is digits with at most one letter, or one common word, perhaps repeated.

    Words count with any digits and signs around and in them, and in any case of letters, as those who guess
    passwords try them.
    """
    letters = "".join(filter(str.isalpha, password.casefold()))
    if password.isalnum() and len(letters) <= 1:
        return True
    return any(letters and letters == word * (len(letters) // len(word)) for word in _common_words())


@cache
def _common_words() -> frozenset[str]:
    return frozenset(COMMON_WORDS.read_text(encoding="utf-8").split())


def _normal(password: str) -> str:
    """Return the password in NFC, as RFC 8265 (OpaqueString) requires: systems encode letters differently."""
    return normalized("NFC", password, 4 * LONGEST)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
