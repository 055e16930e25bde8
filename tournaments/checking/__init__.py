"""The conformance check of a bot, `kalarena check`: scenarios, verdicts and the report.

Begin at ``check``; ``items`` is the list of what is checked.
"""
