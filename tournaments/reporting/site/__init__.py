"""Static report: pages, charts and the replay viewer.

Begin at ``site``, which writes a report's folder; ``view`` contains the data of the pages, ``pages`` renders
them from ``templates``.  May import what ``tournaments.reporting`` may.
"""
