"""The command `kalarena`: one module for each subcommand, loaded only when the subcommand is used.

Begin at ``main``, which lists the subcommands.  May import all layers.
"""
