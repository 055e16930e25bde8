"""Rule books of the games and their spec texts (pure, standard library only).

Begin at ``base.Game``; ``catalog`` has all games by name.
"""
