"""Pictures of positions, and animations of moves.

Begin at ``board_renderer``, the interface; ``kalah`` and ``kalamala`` draw one game each, with ``drawing``.
May import ``referee.games``.
"""
