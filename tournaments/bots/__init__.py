"""Bots: the way from a user's text or upload to a command that can be started.

1. ``upload`` reads an archive, a folder or a file, strictly and within limits.
2. ``storage.ContentStore`` keeps the files of a submission under the digest of their contents.
3. ``manifest`` reads bot.toml, the declarations of a bot's author.
4. ``resolve.resolve_bot`` returns the player that a text or a directory names, with the program's digest.
   It runs the bot's build (``build``, ``build_products``, ``toolchains``) if products are missing or old.

Built bots are kept by ``server.bot_storage`` on a server, and by ``engines.remote.worker.bot_cache`` on the
host of a worker.  ``digest_store`` has what the stores of a server share; ``errors.BotError`` is the base of
all errors of a bot.  Begin at ``resolve``.  May import the layers up to ``results``.
"""
