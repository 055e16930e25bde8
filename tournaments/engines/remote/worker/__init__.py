"""The part of a cluster that runs on a worker's machine: its games, its bots, its lifetime.

Begin at ``worker_plugin``, which makes a Dask worker play; ``worker_play`` plays each game in a process of
``game_process``.  May import what ``tournaments.engines`` may.
"""
