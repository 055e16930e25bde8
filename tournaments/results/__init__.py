"""The results of one tournament: games, rulings, and the store that keeps both.

Begin at ``store.Store``.  ``rulings`` applies the ``journal`` to the games; ``chain`` makes later changes to
stored records visible.  May import the layers up to ``schedule``.
"""
