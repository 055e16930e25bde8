"""Exact solutions of small Kalah boards, for ``kalarena solve``.

The solver is no bot.  It is part of the sample bots because its kernels need ``strong.compiled`` and share
the cache of machine code with the strong player, whose values tests compare with the solver's.

Begin at ``solution``, the answer to one question, and ``solver``, which asks the prover about a game's
states.  ``prover`` proves bounds for positions in the middle of a game with ``search`` (a null-window search
that remembers exact bounds) and ``database`` (all positions with few seeds).  ``layout`` packs and numbers
positions.  May import ``referee.games`` and ``sample_bots.strong``.
"""
