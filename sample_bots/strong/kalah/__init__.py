"""The engine for Kalah.

Begin at ``engine``, which decides the first moves of a game (the swap, the opener's first turn) and deepens
the search of all others.  ``searcher`` runs the kernel of ``search`` on one position to one depth.  A board
of the search is kept in cells (``cell_board``) or packed into two numbers (``packed_board``); ``board``
selects one of these.  ``first_turns`` reads the values of first turns that ``make_first_turns`` has searched.
May import ``referee.games`` and the modules of ``sample_bots.strong``.
"""
