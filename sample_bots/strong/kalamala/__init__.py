"""The engine for Kalamala.

Begin with ``engine.py`` (iterative deepening) and ``search.py`` (the kernel of one iteration).
``geometry.py`` numbers the lines of the board and encodes turns, ``memory.py`` lays out the arrays of the
kernels, and ``position.py`` fills them.  ``lines.py`` has the turns on one line, ``turns.py`` those of a
position, ``evaluation.py`` the static value, ``ordering.py`` the order of turns.
"""
