"""Backup and restore of a server's data directory, and the move to another database.

Begin at ``backup``; ``manifest`` describes the archive, and ``restore`` reads it.  May import what
``tournaments.course`` may.
"""
