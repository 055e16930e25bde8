"""Backup and restore of a server's data directory, and the move to another database."""
