"""A course: people, teams, versions, competitions, settings, and a journal of all actions.

Begin at ``course.Course``; ``model`` has the data classes, ``schema`` the tables, ``people`` the accounts and
teams.  May import the layers up to ``api``.
"""
