"""The reference ladder: ten levels of players for each game.

Begin at ``levels``, the table of the levels; ``heuristic_players`` has the players of the lower ones.  May
import the simple bots and ``sample_bots.strong``.
"""
