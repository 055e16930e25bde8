"""The strongest player of each game: an alpha-beta search whose inner loops are compiled by numba.

Begin with ``engine.py``, the interface of a search and the player that uses one.  ``time_manager.py`` decides
how long a search may take.  ``engines.py`` lists the engines by game; ``kalah`` and ``kalamala`` hold one
engine each.  ``compiled.py`` has the decorator of compiled functions ("kernels"), ``kernels.py`` the
directory of their machine code.

Importing ``engines.py`` loads numba, which takes a second.  ``engine.py``, ``time_manager.py`` and
``kernels.py`` do without it.  The package imports ``protocol``, ``referee.games`` and the other sample bots.
"""
