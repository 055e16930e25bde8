"""The pages for lecturers and admins.

Begin at ``dashboard``, the first page; ``forms`` makes inputs from models.  May import what
``tournaments.web`` may.
"""
