"""Tournament files: tournament.toml to a ``Tournament``, with all errors at once.

Begin at ``load.load_tournament``.
"""
