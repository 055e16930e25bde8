"""The people of a course: accounts and their credentials, teams, and the roster that enrols students.

Begin at ``accounts``; ``roster`` makes accounts and teams from a list of students.  May import what
``tournaments.course`` may.
"""
