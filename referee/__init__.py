"""The referee: one game between two bots, from start to record.

``games`` has the rules, ``judge`` decides (both pure: events in, verdicts out), ``sandbox`` confines bots,
``process`` runs and measures them, ``session`` connects them to the judge.  Begin at ``playing.play_game``.
``conformance`` examines one bot against a scripted opponent.  Sample bots import this package in every
process of theirs, so that nothing is imported here.
"""
