"""Bots that behave as students' bots do, for tests that the sandbox and its limits let them play.

Begin with README.md, which lists the bots. ``programs.py`` is the catalog, ``build.py`` compiles and
assembles the bots' directories, ``games.py`` plays games with them as ``kalarena play`` does, and
``python -m tests.corpus`` plays hundreds of such games.
"""
