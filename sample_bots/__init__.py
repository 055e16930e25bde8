"""Reference players: from the bot that a student starts from to an alpha-beta player with compiled kernels.

Begin at ``first_legal``, a complete bot without imports of ours.  ``conversation`` is the bot's side of the
protocol; ``greedy`` and ``minimax`` build on it, on ``evaluation`` and on ``search``.  ``catalog`` lists all
bots by name.  ``ladder`` has the players of ten levels, ``strong`` the strongest player of each game,
``solver`` exact solutions of small Kalah boards, ``starters`` the starter kits.

May import ``protocol``, ``referee.games`` and ``referee.adapters``, which need neither Trio nor a sandbox.
"""
