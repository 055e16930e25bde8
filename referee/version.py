"""The version of Kalarena.

A constant, because reading the metadata of the installed package (``importlib.metadata``) takes as long as a
short game.  The package build reads it from here and not from git's tags, so that an archive without a
repository has the same version.  See docs/contributing.md for the steps of a release.
"""

VERSION = "0.3.0"
