"""Analysis of results: evidence, standings, ratings, comparisons (pure).

Begin at ``standings``; ``evidence`` turns games into numbers and counts near-copies once.  May import the
layers up to ``bots``, without a clock, a file or a process.
"""
