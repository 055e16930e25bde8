"""Uploads of strangers: archives, folders and files, read strictly and within limits (pure).

Begin at ``archive.read_upload``.  ``limits`` has the limits and the result, ``names`` the checks of paths,
and ``zip_format`` the reader of zip archives.  May import ``referee.judge``.
"""
