"""The line protocol between referee and bot: messages, lines and the order in which they may come.

Begin at ``codec``, which converts between lines and ``messages``.  ``session`` has the order of the messages,
and ``lines`` splits the bytes of a pipe.  May import the standard library only, without input or output.
"""
