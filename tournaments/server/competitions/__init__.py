"""Tournaments of the server: their specification, their entrants, their runs.

Begin at ``tournament_manager``; ``tournament_run`` plays one of them.  May import what
``tournaments.server`` may.
"""
