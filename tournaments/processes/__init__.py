"""Kalarena's own processes: their priority, their interpreter's settings, and pools of them.

Begin at ``process_pool``.  May import ``referee``, but no other layer of ``tournaments``.
"""
