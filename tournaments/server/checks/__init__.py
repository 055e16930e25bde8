"""Checks of submitted versions: the queue, and the processes that build and check."""
