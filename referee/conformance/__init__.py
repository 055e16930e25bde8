"""Games of one bot against a scripted opponent without a process, to examine the bot's behaviour.

Begin at ``game``.  Used by tournaments/checking alone.
"""
