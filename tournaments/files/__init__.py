"""Files: tables of spreadsheets, clear errors in TOML files, locks, and writes that survive a kill.

Begin at ``durable``.  May import ``referee``, but no other layer of ``tournaments``.
"""
