"""The sandbox of bots: limits of resources, and the parts of the host that a bot can see.

Begin at ``bubblewrap.Sandbox``, which turns a player and limits into the command line to run; ``detection``
finds the best tier of this host.  May import ``referee.adapters``, which run inside the sandbox, and the data
types of ``referee.judge``.
"""
