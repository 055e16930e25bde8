"""Reference players: from the bot that a student starts from to an alpha-beta player with compiled kernels.

Begin with ``first_legal.py``, a complete bot without imports of ours.  ``conversation.py`` is the bot's side
of the protocol; ``greedy.py`` and ``minimax.py`` build on it, on ``evaluation.py`` and on ``search.py``.
``catalog.py`` lists all bots by name.  ``ladder`` has the players of ten levels, ``strong`` the strongest
player of each game, ``solver`` exact solutions of small Kalah boards, ``starters`` the starter kits.

The package imports ``protocol`` and ``referee.games``, and nothing else of Kalarena.
"""
