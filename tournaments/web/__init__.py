"""The web site of a course.

Begin at ``routes``, the list of all pages, and ``app``, the way of a request; ``http`` has what all pages
share, ``views`` their data, ``pages`` the pages of students and visitors, ``lecturer`` those of lecturers,
``api`` the HTTP API.  May import the layers up to ``server``.
"""
