"""Practice ladder: ``practice`` plays it, ``matchmaking`` pairs bots, ``practice_results`` is the table."""
