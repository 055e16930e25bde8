"""The sandbox of bots: its limits, and what a bot sees of the host.

Begin at ``bubblewrap.Sandbox``, which turns a player and limits into the command line to run; ``detection``
finds the best tier of this host.  Imports: referee.judge.
"""
