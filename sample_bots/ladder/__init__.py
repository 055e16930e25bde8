"""The reference ladder: ten levels of players for each game.

Begin with ``levels.py``, the table of the levels.  ``heuristic_players.py`` has the players of the lower
ones. The package imports the strong player and the simple bots.
"""
