"""Engines: where games run.  ``base`` is the interface, ``local`` this machine, ``remote`` a cluster."""
