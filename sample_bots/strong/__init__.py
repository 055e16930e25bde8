"""The strongest player of each game: an alpha-beta search whose inner loops are compiled by numba.

Begin at ``engine``, the interface of a search and the player that uses one.  ``time_manager`` decides how
long a search may take.  ``engines`` lists the engines by game; ``kalah`` and ``kalamala`` hold one engine
each.  ``compiled`` has the decorator of compiled functions ("kernels"), ``kernels`` the directory of their
machine code.

Importing ``engines`` loads numba, which takes a second.  ``engine``, ``time_manager`` and ``kernels`` do
without it.  May import ``protocol``, ``referee.games`` and the simple bots.
"""
