"""Files: tables of spreadsheets, TOML files with clear error messages, locks, and writes that survive a kill.

Begin at ``durable``.  May import ``referee``, but no other layer of ``tournaments``.
"""
