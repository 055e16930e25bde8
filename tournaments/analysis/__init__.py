"""Analysis of results: evidence, standings, ratings, comparisons (pure).

Begin at ``standings``; ``evidence`` turns games into numbers and counts near-copies once.
"""
