"""The engine for Kalamala.

Begin at ``engine`` (iterative deepening) and ``search`` (the kernel of one iteration).  ``geometry`` numbers
the lines of the board and encodes turns, ``memory`` lays out the arrays of the kernels, and ``position``
fills them.  ``lines`` has the turns on one line, ``turns`` those of a position, ``evaluation`` the static
value, ``ordering`` the order of turns.  May import ``referee.games`` and the modules of
``sample_bots.strong``.
"""
