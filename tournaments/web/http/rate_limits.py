"""Rate limits by token buckets.  Pure; time is an argument, in seconds on any clock.

A bucket holds ``burst`` tokens and gets ``per_s`` new ones a second; each action takes one.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

MOST_KEYS = 10_000
"""Most buckets of one limit: 2 MB, however many addresses send requests."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Parameters of a token bucket."""

    burst: int
    """Actions allowed at once."""
    per_s: float
    """Actions allowed per second in the long run."""


class RateLimit:
    """The buckets of one limit, one for each key: an address, a login, an account."""

    def __init__(self, rate: Rate, most_keys: int = MOST_KEYS) -> None:
        self._rate = rate
        self._most_keys = most_keys
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Number of tokens, and the time of that count; the least recently used bucket first."""

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: Hashable, now: float) -> float:
        """Take one token and return 0; if there is none, return the seconds until there is one."""
        tokens = self._tokens(key, now)
        if tokens < 1:
            self._keep(key, tokens, now)
            return (1 - tokens) / self._rate.per_s
        self._keep(key, tokens - 1, now)
        return 0.0

    def give_back(self, key: Hashable, now: float) -> None:
        """Undo a ``take``, as of a sign-in that succeeded."""
        self._keep(key, min(self._rate.burst, self._tokens(key, now) + 1), now)

    def _tokens(self, key: Hashable, now: float) -> float:
        tokens, at = self._buckets.get(key, (float(self._rate.burst), now))
        return min(self._rate.burst, tokens + max(0.0, now - at) * self._rate.per_s)

    def _keep(self, key: Hashable, tokens: float, now: float) -> None:
        self._buckets[key] = (tokens, now)
        self._buckets.move_to_end(key)
        while len(self._buckets) > self._most_keys:
            self._buckets.popitem(last=False)


class TokenAccounts:
    """Accounts of the API tokens that were valid when they were used last."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._accounts: OrderedDict[str, int] = OrderedDict()
        """Digest of a token -> id of its account; the least recently used token first."""

    def get(self, digest: str | None) -> int | None:
        """Return the account of a token; None if the token is unknown."""
        if digest is None or digest not in self._accounts:
            return None
        self._accounts.move_to_end(digest)
        return self._accounts[digest]

    def keep(self, digest: str | None, account_id: int) -> None:
        """Store the account of a valid token."""
        if digest is not None:
            self._accounts[digest] = account_id
            if len(self._accounts) > self._most:
                self._accounts.popitem(last=False)

    def forget(self, digest: str | None) -> None:
        """Remove a token that is not valid (any more)."""
        if digest is not None:
            self._accounts.pop(digest, None)


class Limits:
    """The limits of a site."""

    def __init__(self) -> None:
        self.sign_in_address = RateLimit(Rate(burst=60, per_s=1))
        """A whole course behind one address may sign in within a minute or two."""
        self.passwords = RateLimit(Rate(burst=10, per_s=1 / 20))
        """By login and address together, or by a browser that the account has used before: 4,300 guesses a
        day.  Here and for ``sign_in_login``, wrong passwords alone count."""
        self.sign_in_login = RateLimit(Rate(burst=100, per_s=1 / 10))
        """By login, for guesses from many addresses: 8,600 a day.  Guesses from two addresses alone do not
        use it up, and browsers that the account has used before are exempt: others cannot lock it out."""
        self.links = RateLimit(Rate(burst=60, per_s=1))
        self.confirmations = RateLimit(Rate(burst=5, per_s=1 / 3600))
        """By account: each sends a mail to an address that may be somebody else's."""
        self.uploads = RateLimit(Rate(burst=10, per_s=1 / 15))
        """By account, beside the lecturer's own limits: each upload costs a check of a minute."""
        self.api = RateLimit(Rate(burst=60, per_s=2))
        """By account, or by address without a token that is known to be valid."""
        self.token_accounts = TokenAccounts()
        self.casual_starts = RateLimit(Rate(burst=10, per_s=1 / 20))
        """By account or visitor: each game against a bot starts a process."""
        self.casual_address = RateLimit(Rate(burst=100, per_s=1 / 2))
        """By address, which a whole class may share."""
        self.casual_moves = RateLimit(Rate(burst=60, per_s=5))
        """By account or visitor."""


def address_key(address: str) -> str:
    """Return the key of an address: one for all of an IPv6 network of 64 bits, which one household has."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed.packed[:8] + bytes(8), 64)))
    return str(parsed)
