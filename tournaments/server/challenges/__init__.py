"""Challenges: games that teams ask for, against a chosen bot.

Begin at ``challenge_runner``; ``challenge_games`` has the keys and results of its games.  May import what
``tournaments.server`` may.
"""
