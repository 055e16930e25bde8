"""Checks of submitted versions: the queue, and the processes that build and check.

Begin at ``qualifying``, the queue; ``bot_worker`` starts a process of ``check_worker`` for each version.  May
import what ``tournaments.server`` may.
"""
