"""Command words of an adapter, and the files that it needs inside a sandbox."""

import sys
from pathlib import Path
from typing import Any

from referee.games.base import Game
from referee.games.layout import PitBoard

DEFAULT_PROTOCOL = "manchester"
"""The protocol of the Manchester course, which the referee itself speaks."""
PROTOCOLS = (DEFAULT_PROTOCOL, "turns", "kgp")
"""Protocols of bots; all but the first one are translated by an adapter."""
OWN_NETWORK, SHARED_NETWORK = "own", "shared"
_PACKAGES = Path(__file__).resolve().parents[2]


def can_describe(protocol: str, game: Game[Any, Any]) -> bool:
    """Return True if the positions of a game can be written in a protocol."""
    return protocol != "kgp" or isinstance(game.layout(game.initial_state()), PitBoard)


def adapter_words(protocol: str, *, own_network: bool) -> tuple[str, ...]:
    """Return the words that stand before a bot's command; none for the Manchester protocol.

    ``own_network``: whether the bot's loopback interface is its own, as in a sandbox that confines.
    """
    if not protocol:
        return ()
    launch = str(_PACKAGES / "referee" / "adapters" / "launch.py")
    network = OWN_NETWORK if own_network else SHARED_NETWORK
    return (sys.executable, "-I", "-S", launch, protocol, network)


def adapter_reads(protocol: str) -> tuple[Path, ...]:
    """Return the directories that an adapter reads; none for the Manchester protocol."""
    return (_PACKAGES / "protocol", _PACKAGES / "referee") if protocol else ()
