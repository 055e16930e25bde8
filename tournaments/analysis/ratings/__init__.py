"""Ratings: the Bradley-Terry model, intervals, and statistics of matches (pure)."""
