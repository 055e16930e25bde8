"""Files: tables of spreadsheets, TOML files and clear errors in them, locks, and writes that survive a kill.

Begin at ``durable``.  May import ``referee``, but no other layer of ``tournaments``.
"""
