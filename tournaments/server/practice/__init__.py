"""The practice ladder."""
