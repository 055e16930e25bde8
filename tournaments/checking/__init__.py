"""The conformance check of a bot, `kalarena check`.

Begin at ``check``, which lists the items.  ``scenarios`` has the games, ``scenario_runner`` plays them, and
``gameplay``, ``output_rules`` and ``resource_usage`` judge the ``evidence``.  ``advice`` and ``report`` are
for the bot's author.  All of them but ``check`` and ``scenario_runner`` are pure.  May import the layers up
to ``analysis``.
"""
