"""Remote bots: bots at home that play unrated games over a WebSocket.

Begin at ``remote_bots``.  May import what ``tournaments.server`` may.
"""
