"""Data of pages: competitions as a viewer may see them, rows of tables, cached.

Begin at ``competition_view``; ``visibility`` decides what a viewer may see.  May import what
``tournaments.web`` may.
"""
