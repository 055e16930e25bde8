"""Conformance games: one bot against a scripted opponent without a process, to observe the bot closely.

Begin at ``game``; ``script`` has the opponent's script and the observations.  Used by
``tournaments.checking`` alone.  May import all of ``referee``.
"""
