"""The version of Kalarena.

A constant, because reading the metadata of the installed package (``importlib.metadata``) takes as long as a
short game.  The package build reads it from here.
"""

VERSION = "0.2.0"
