"""Processes of bots: start, input and output, measurement, and end.

Begin at ``bot.Bot``; ``turn_timer`` measures turns by the counters of ``process_tree``.  Imports:
referee.judge (data types) and referee.sandbox.
"""
