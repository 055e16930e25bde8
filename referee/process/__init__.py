"""Processes of bots: start, input and output, measurement, and end.

Begin at ``bot.Bot``; ``turn_timer`` measures turns by the counters of ``process_tree``.  May import
``referee.sandbox``, the data types of ``referee.judge``, and ``protocol``.
"""
