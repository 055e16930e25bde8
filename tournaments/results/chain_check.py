"""Comparison of a hash chain with the stored items, and with a head digest kept elsewhere (pure)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from referee.judge.verdict_text import counted
from tournaments.results.chain import SHORTEST_DIGEST, Head, Item, Kind, Link, extend
from tournaments.results.store import ChainedStore

CHAIN = "chain"
"""The subject of findings about the chain as a whole."""
HEAD = "head"
_DIGEST = re.compile(rf"[0-9a-f]{{{SHORTEST_DIGEST},64}}")


class HeadError(ValueError):
    """A head digest cannot be used; the message gives the reason."""


class Finding(NamedTuple):
    """A sentence about the chain or a stored item."""

    subject: str
    """Key of a game, or the name of something else."""
    text: str
    remark: bool = False
    """True if the sentence is for information, and nothing is wrong."""


@dataclass(frozen=True)
class ExpectedHead:
    """A head that was kept elsewhere."""

    digest: str
    """All digits or the first ones, SHORTEST_DIGEST at least."""
    number: int | None = None
    """The number of its entry, if that was kept, too."""

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.digest):
            raise HeadError(
                f"{self.digest!r} is no head digest: give all its 64 hexadecimal digits, or the first "
                f"{SHORTEST_DIGEST} at least"
            )


@dataclass(frozen=True)
class ChainCheck:
    """A chain with the store that it covers."""

    store: ChainedStore

    @cached_property
    def games(self) -> Mapping[str, Link]:
        """Key of a game -> the last entry of that game."""
        return {link.subject: link for link in self.store.links if link.kind == Kind.GAME}

    @property
    def adopted(self) -> Link | None:
        """Last entry of the items stored before there was a chain."""
        return next((link for link in self.store.links if link.kind == Kind.ADOPTED), None)

    def findings(self) -> Iterator[Finding]:
        """Yield everything that is wrong.

        The contents of games are not compared, since that needs their records.
        """
        store = self.store
        if not store.links and (store.games or store.rulings or store.tournament):
            yield Finding(CHAIN, f"it has no entry, but {len(store.games)} games are stored: it was emptied")
            return
        yield from _broken(store.links)
        for link in store.links:
            if link.kind not in set(Kind):
                yield Finding(CHAIN, f"entry {link.number} is of no kind that there is: {link.kind!r}")
            elif link.kind == Kind.ADOPTED and link != self.adopted:
                yield Finding(
                    CHAIN, f"entry {link.number} adopts the store again: its chain was removed once"
                )
        yield from self._of_games()
        yield from self._of_rulings()
        yield from self._of_tournament()
        adopted = self.adopted
        if adopted is not None:
            kinds = Counter(link.kind for link in store.links[: store.links.index(adopted)])
            yield Finding(
                CHAIN,
                f"{counts(kinds)} were stored before there was a chain, and entered at {adopted.subject} "
                f"(entry {adopted.number}): a change before that time cannot be found",
                remark=True,
            )

    def _of_games(self) -> Iterator[Finding]:
        first: dict[str, int] = {}
        for link in self.store.links:
            if link.kind != Kind.GAME:
                continue
            if link.subject in first:
                yield Finding(
                    link.subject,
                    f"this game was stored as entry {first[link.subject]} of the chain and again as entry "
                    f"{link.number}: the first one was removed, and the game was played again",
                )
            first.setdefault(link.subject, link.number)
        for key, number in first.items():
            if key not in self.store.games:
                text = f"this game was stored as entry {number} of the chain and is not there any more"
                yield Finding(key, text)
        for key in sorted(self.store.games - first.keys()):
            yield Finding(key, "this game is in the store, but not in the chain: it was put there by hand")

    def _of_rulings(self) -> Iterator[Finding]:
        seen: set[str] = set()
        for link in self.store.links:
            if link.kind != Kind.RULING:
                continue
            seen.add(link.subject)
            stored = self.store.rulings.get(link.subject)
            if stored is None:
                text = f"this ruling was stored as entry {link.number} of the chain and is not there any more"
                yield Finding(link.name, text)
            elif stored.content != link.content:
                yield Finding(link.name, changed(link))
        for subject in self.store.rulings:
            if subject not in seen:
                yield Finding(
                    f"{Kind.RULING} {subject}", "this ruling is in the journal, but not in the chain"
                )

    def _of_tournament(self) -> Iterator[Finding]:
        last = next((link for link in reversed(self.store.links) if link.kind == Kind.TOURNAMENT), None)
        stored = self.store.tournament
        if last is None:
            if stored is not None:
                yield Finding(Kind.TOURNAMENT, "it is in the store, but not in the chain")
        elif stored is None:
            text = f"it was stored as entry {last.number} of the chain and is not there any more"
            yield Finding(Kind.TOURNAMENT, text)
        elif stored.content != last.content:
            text = (
                "its name, what is to be played, or its identity (with the digests of the bots) was changed "
                f"since it was stored as entry {last.number} of the chain"
            )
            yield Finding(Kind.TOURNAMENT, text)

    def against(self, expected: ExpectedHead) -> Finding:
        """Compare the chain with a head that was kept elsewhere.  Raises HeadError if it is ambiguous."""
        links = self.store.links
        found = [link for link in links if link.digest.startswith(expected.digest)]
        if len(found) > 1 and len(expected.digest) < len(found[0].digest):
            raise HeadError(
                f"{len(found)} entries begin with {expected.digest}: give more digits of the digest"
            )
        if not found:
            return Finding(HEAD, self._missing(expected))
        link = found[0]
        if expected.number not in (None, link.number):
            text = f"{expected.digest} is the digest of entry {link.number}, not {expected.number}"
            return Finding(HEAD, f"{text}: entries before it were removed or added")
        if link is links[-1]:
            text = (
                f"{expected.digest} is the last of {len(links)} entries: nothing was changed or added since"
            )
            return Finding(HEAD, text, remark=True)
        since = counts(Counter(later.kind for later in links[links.index(link) + 1 :]))
        text = f"{expected.digest} is entry {link.number} of {len(links)}; added since: {since}"
        return Finding(HEAD, text, remark=True)

    def _missing(self, expected: ExpectedHead) -> str:
        links, number = self.store.links, expected.number
        text = (
            f"no entry of the chain has the digest {expected.digest}: the records were rewritten since it "
            "was noted, or this is an older copy, or another tournament"
        )
        if number is None:
            return text
        if number > len(links):
            return f"{text}; it was entry {number}, and there are {len(links)} now"
        there = links[number - 1] if number else links[0]
        return f"{text}; entry {number} is {there.name} with the digest {there.digest} now"


def _broken(links: Sequence[Link]) -> Iterator[Finding]:
    """Yield the entries that do not follow from the entries before."""
    before: Head | None = None
    for link in links:
        after = 0 if before is None else before.number
        if link.number != after + 1:
            missing = link.number - 1 - after
            which = "1 entry is" if missing == 1 else f"{missing} entries are"
            yield Finding(CHAIN, f"{which} missing before entry {link.number} ({link.name})")
        elif next(extend(before, [Item(*link[1:4])])).digest != link.digest:
            yield Finding(
                CHAIN,
                f"entry {link.number} ({link.name}) does not follow from the entries before: one was changed",
            )
        before = Head(link.digest, link.number)


def changed(link: Link) -> str:
    """Return the sentence about a stored item whose content differs from its entry."""
    return f"it was changed since it was stored as entry {link.number} of the chain"


def counts(kinds: Mapping[str, int]) -> str:
    """Return entries counted for people: games, rulings and changes of the configuration."""
    parts = [counted(kinds.get(Kind.GAME, 0), "game"), counted(kinds.get(Kind.RULING, 0), "ruling")]
    if others := kinds.get(Kind.TOURNAMENT, 0):
        parts.append(counted(others, "configuration"))
    return " and ".join(parts) if len(parts) == 2 else ", ".join(parts)
