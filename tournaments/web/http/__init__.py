"""Requests and responses: routing, authentication, limits, streams, errors.

Begin at ``routing``; ``request_context`` has what a page gets of its request.  May import what
``tournaments.web`` may, but no pages.
"""
