"""Engines, which play games on this machine or on others.

Begin at ``base``, the interface; ``local`` is the engine of this machine, ``remote`` that of a cluster.  May
import the layers up to ``config``.
"""
