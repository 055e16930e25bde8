"""Exceptions of the course."""


class CourseError(Exception):
    """An invalid request; the message gives the reason in a clear sentence, and nothing was changed.

    Errors of the database are ``StoreError`` instead.
    """
