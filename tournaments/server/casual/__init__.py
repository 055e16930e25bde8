"""Casual games of people, which count for nothing.

Begin at ``games``, the interface to the pages; ``table`` is one game in memory.  ``session_pool`` holds the
sessions of bots: ``bot_session`` plays a bot's part of a game, with a ``seat`` for the person, and
``positions`` finds the opening from which a bot goes on.  May import what ``tournaments.server`` may.
"""
