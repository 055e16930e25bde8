"""The server without its pages: checks, practice and tournaments, which share its CPU slots.

Begin at ``service.open_service``.  May import the layers up to ``course``.
"""
