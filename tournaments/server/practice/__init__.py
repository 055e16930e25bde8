"""The practice ladder: endless games between the current bots of all teams and reference players.

Begin at ``practice``, which plays it; ``matchmaking`` pairs bots, ``practice_results`` is the table.  May
import what ``tournaments.server`` may.
"""
