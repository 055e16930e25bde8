"""What the course refuses."""


class CourseError(Exception):
    """Something that cannot be done; the message says why in a clear sentence, and nothing was changed.

    Trouble of the database is none of these: it is a ``StoreError``.
    """
