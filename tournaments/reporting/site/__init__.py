"""The static report: its pages, charts and replay viewer.

Begin at ``site``; ``view`` has the data of the pages, ``pages`` renders them from ``templates``.
"""
