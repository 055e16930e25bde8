"""The HTTP API; docs/api.md explains it."""
