"""Configuration of tournaments: from tournament.toml, or other validated choices, to a ``Tournament``.

Begin at ``tournament.build_tournament``, which every kind of tournament uses; ``load`` reads files, with all
errors at once.  May import the layers up to ``checking``.
"""
