"""Names that people give: which can be taken, and which of them mean the same.  Pure."""

import re
import unicodedata

from referee.sentences import quote
from tournaments.course.errors import CourseError
from tournaments.manifest import NAME

LONGEST_TEAM_NAME = 50
"""Characters.  A version plays as ``NAME v123456``, and a bot's name has at most 60."""
LONGEST_NAME = 100
"""Characters of a person's name, a token's or a competition's title."""
LONGEST_SHOWN = 60
LOGIN = re.compile(r"\w[\w.+@-]{0,99}")
"""Numbers and short names of accounts, and mail addresses."""

BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters by their category, which show nothing at all (Hangul fillers, in Unicode's
Default_Ignorable_Code_Point): names that differ in them alone look the same."""
JOINERS = frozenset("\u200c\u200d")
"""Do not print by themselves, but belong into words of Persian and of Indic scripts."""


def login_of(text: str) -> str:
    """A login as it is kept and looked up: NFKC and casefolded.  Raises CourseError if it can be none."""
    login = _folded(text)
    if not LOGIN.fullmatch(login) or BLANK_LETTERS & set(login):
        raise CourseError(
            f"{shown(text)} cannot be a login: it is 1 to 100 letters, digits and . + @ - _ "
            "and begins with a letter or digit"
        )
    return login


def person_name(text: str, what: str = "name") -> str:
    """A name for people, as it is kept.  Raises CourseError if it is empty, too long or cannot be shown."""
    name = _tidy(text)
    visible = "".join(char for char in name if char not in JOINERS)
    if not visible:
        raise CourseError(f"the {what} is missing")
    if len(name) > LONGEST_NAME:
        raise CourseError(f"the {what} {shown(name)} has {len(name)} characters; {LONGEST_NAME} is the most")
    if not visible.isprintable() or BLANK_LETTERS & set(visible):
        raise CourseError(f"the {what} {shown(name)} has characters that do not show; write it without them")
    return name


def team_name(text: str) -> str:
    """A team's name as it is kept.  Raises CourseError if it can be none."""
    name = _tidy(text)
    if not NAME.fullmatch(name) or len(name) > LONGEST_TEAM_NAME or BLANK_LETTERS & set(name):
        raise CourseError(
            f"{shown(text)} cannot be a team's name: it is 1 to {LONGEST_TEAM_NAME} letters, digits, spaces "
            "and . : + = ( ) , ' - and begins with a letter or digit"
        )
    return name


def same_name(name: str) -> str:
    """Equal for names that differ in nothing but upper and lower case, or in forms of the same letters."""
    return _tidy(_folded(name))  # a compatibility form may begin with a space, as that of a macron does


def name_key(name: str) -> str:
    """Equal for names that cannot stand beside one another: those that are the same, and those whose files
    would be called the same (``tournaments.config.slug``) where case does not count.
    """
    return re.sub(r"[^\w.]", "_", same_name(name))


def storable(text: str) -> str:
    """A text that every database takes: PostgreSQL keeps no NUL, and neither of them half a character."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")


def shown(text: str) -> str:
    """A text of somebody's in a sentence: in quotes, on one line, cut if it is long."""
    return quote(text, LONGEST_SHOWN)


def _tidy(text: str) -> str:
    return " ".join(part for part in unicodedata.normalize("NFC", text).split(" ") if part)


def _folded(text: str) -> str:
    """Unicode's compatibility caseless matching, as far as letters and digits need it."""
    once = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", once).casefold().strip(" ")
