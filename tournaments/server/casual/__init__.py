"""Casual games of people, which count for nothing.

Begin at ``games``, the interface to the pages; ``bot_session`` plays a bot's part of a game, with a ``seat``
for the person, and ``positions`` finds the opening from which a bot goes on.  May import what
``tournaments.server`` may.
"""
