"""Rule books of the games and their spec texts (pure).

Begin at ``base.Game``; ``catalog`` has all games by name.  May import ``protocol`` and the standard library
only, without a clock, a file or a process.
"""
