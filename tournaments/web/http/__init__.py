"""Requests and responses: routing, authentication, limits, streams, errors."""
