"""The pages for students and visitors.

Begin at ``home``, the first page.  May import what ``tournaments.web`` may.
"""
