"""Exact solutions of small Kalah boards, for ``kalarena solve``.

The solver is no bot.  It is part of the sample bots because its kernels need ``strong/compiled.py`` and share
the cache of machine code with the strong player, whose values tests compare with the solver's.

Begin with ``solution.py``, the answer to one question, and ``solver.py``, which asks the prover about a
game's states.  ``prover.py`` proves bounds for positions in the middle of a game with ``search.py`` (a
null-window search that remembers exact bounds) and ``database.py`` (all positions with few seeds).
``layout.py`` packs and numbers positions.
"""
