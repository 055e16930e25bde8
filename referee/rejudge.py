"""Judging a game again from its record.  Pure."""
