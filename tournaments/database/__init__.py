"""Databases: locations in SQLite files or PostgreSQL, transactions, migrations, errors as sentences.

Begin at ``base``.  The tables are in ``results.schema`` and ``course.schema``.  May import the layers
``files`` and ``processes``.
"""
