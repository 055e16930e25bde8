"""The HTTP API; docs/api.md explains it.

Begin at ``documentation``, the list of all operations; ``views`` has the models of the JSON.
"""
