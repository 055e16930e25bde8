"""The engine for Kalah.

Begin with ``engine.py``, which decides the first moves of a game (the swap, the opener's first turn) and
deepens the search of all others.  ``searcher.py`` runs the kernel of ``search.py`` on one position to one
depth.  A board of the search is kept in cells (``cell_board.py``) or packed into two numbers
(``packed_board.py``); ``board.py`` selects one of these.  ``first_turns.py`` reads the values of first turns
that ``make_first_turns.py`` has searched.
"""
