"""Players without a process in a sandbox, for people, services and functions.

Begin at ``function_player``, whose moves a function chooses; ``socket_player`` is at the other end of a Unix
socket.  Both are a ``SessionPlayer`` of ``process.player``, as a bot's process is.  May import ``live_feed``,
``process``, ``adapters``, ``judge`` and ``games``.
"""
