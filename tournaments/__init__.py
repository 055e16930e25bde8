"""Tournaments: many games, their results, and the course around them.

The packages are layers; each imports only those before it: ``files`` and ``processes``, ``database``,
``schedule`` (who meets whom), ``results`` (what is stored), ``bots`` (from source to a command),
``analysis`` (standings and ratings), ``checking``, ``config`` (tournament.toml), ``engines`` (where games
run), ``running``, ``reporting``, ``course``, ``server``, ``web``, ``cli``.  docs/design.md has the picture.
"""
