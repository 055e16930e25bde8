"""Tournaments of the server: their specification, their entrants, their runs."""
