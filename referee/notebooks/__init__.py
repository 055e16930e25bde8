"""Use of the referee in notebooks, where an event loop is running and records are shown as HTML.

Begin at ``display``, which finds the function that draws a record; ``event_loop`` runs async functions from
blocking calls.  May import nothing of Kalarena.
"""
