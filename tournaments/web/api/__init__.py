"""The HTTP API; docs/api.md explains it.

Begin at ``documentation``, the list of all operations; ``schemas`` has the models of the JSON.  May import
what ``tournaments.web`` may.
"""
