"""Adapters: programs that run beside a bot and translate the Manchester protocol into another one.

The referee starts the adapter, which starts the bot as a child process inside the same sandbox.  The referee
exchanges lines of the Manchester protocol with the adapter alone, so a verdict never depends on the protocol
of the bot.

Begin at ``launch``, the main program.  ``turns`` and ``kgp`` are the protocols; ``beside`` has the event loop
and the bot's process.  May import ``referee.games`` and ``protocol``.
"""
