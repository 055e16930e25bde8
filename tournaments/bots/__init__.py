"""Bots: from a text, a folder or an upload to a command that can be started.

Begin at ``resolve.resolve_bot``.  ``upload`` reads archives from strangers, ``build`` makes a bot,
``storage`` keeps files under their digest.
"""
