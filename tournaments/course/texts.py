"""Validation and comparison of names given by people (pure)."""

import re
import unicodedata
from typing import Literal

from referee.judge.verdict_text import quote
from tournaments.bots.manifest import NAME
from tournaments.course.model import CourseError

LONGEST_TEAM_NAME = 50
"""Maximum length in characters.  A version plays as ``NAME v123456``, and a bot's name has at most 60."""
LONGEST_NAME = 100
"""Maximum length of a person's name, a token's or a competition's title, in characters."""
LONGEST_TYPED = 4 * LONGEST_NAME
"""Maximum length of a name before normalization, which joins up to four characters to one."""
LONGEST_SHOWN = 60
LONGEST_EMAIL = 254
"""Maximum length of an e-mail address in characters (RFC 5321, 4.5.3.1.3, without the brackets)."""
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
EMAIL = re.compile(rf"(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")
"""An e-mail address without quotes and comments (RFC 5322, ``dot-atom``), in ASCII alone."""
LOGIN = re.compile(r"\w[\w.+@-]{0,99}")
"""Numbers and short names of accounts, and mail addresses."""

BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Invisible characters whose category is that of letters.

These are Hangul fillers, in Unicode's Default_Ignorable_Code_Point: names that differ in them alone look the
same.
"""
JOINERS = frozenset("\u200c\u200d")
"""Invisible joiners, which are part of words in Persian and in Indic scripts."""


def login_of(text: str) -> str:
    """Return a login in its stored form: NFKC and casefolded.  Raises CourseError if it is invalid."""
    login = _folded(text)
    if not LOGIN.fullmatch(login) or BLANK_LETTERS & set(login):
        raise CourseError(
            f"{shown(text)} cannot be a login: it is 1 to 100 letters, digits and . + @ - _ "
            "and begins with a letter or digit"
        )
    return login


def person_name(text: str, what: str = "name") -> str:
    """Return a displayed name in its stored form.

    Raises CourseError if it is empty, too long or not printable.
    """
    name = _tidy(text)
    visible = "".join(char for char in name if char not in JOINERS)
    if not visible:
        raise CourseError(f"the {what} is missing")
    if len(name) > LONGEST_NAME:
        raise CourseError(f"the {what} {shown(name)} has {len(name)} characters; {LONGEST_NAME} is the most")
    if not visible.isprintable() or BLANK_LETTERS & set(visible):
        raise CourseError(f"the {what} {shown(name)} has characters that do not show; write it without them")
    return name


def email_of(text: str) -> str:
    """Return an e-mail address in its stored form.  Raises CourseError if it is invalid."""
    email = text.strip(" ")
    if len(email) > LONGEST_EMAIL or not EMAIL.fullmatch(email):
        raise CourseError(
            f"{shown(text)} is no e-mail address: write it as in name@example.org, without other characters"
        )
    return email


def team_name(text: str) -> str:
    """Return a team's name in its stored form.  Raises CourseError if it is invalid."""
    name = _tidy(text)
    if not NAME.fullmatch(name) or len(name) > LONGEST_TEAM_NAME or BLANK_LETTERS & set(name):
        raise CourseError(
            f"{shown(text)} cannot be a team's name: it is 1 to {LONGEST_TEAM_NAME} letters, digits, spaces "
            "and . : + = ( ) , ' - and begins with a letter or digit"
        )
    return name


def same_name(name: str) -> str:
    """Return a key that is equal for names that differ only in case, or in forms of the same letters."""
    return _tidy(_folded(name))  # a compatibility form may begin with a space, as that of a macron does


def name_key(name: str) -> str:
    """Return a key that is equal for names that cannot exist side by side.

    These are equal names, and those with the same file names (``tournaments.config.load.slug``) where case is
    ignored.
    """
    return re.sub(r"[^\w.]", "_", same_name(name))


def shown(text: str) -> str:
    """Return a user's text in quotes for a sentence, on one line and cut if it is long."""
    return quote(text, LONGEST_SHOWN)


def normalized(form: Literal["NFC", "NFKC"], text: str, longest: int = LONGEST_TYPED) -> str:
    """Return a text in a normal form of Unicode; unchanged if it has more than ``longest`` characters.

    Such a text is too long in any form, and the time for it can grow with the square of its length.
    """
    return text if len(text) > longest else unicodedata.normalize(form, text)


def _tidy(text: str) -> str:
    return normalized("NFC", " ".join(part for part in text.split(" ") if part))


def _folded(text: str) -> str:
    """Return the text for Unicode's compatibility caseless matching, as far as letters and digits need it."""
    once = normalized("NFKC", text.strip(" ")).casefold()
    return normalized("NFKC", once).casefold().strip(" ")
