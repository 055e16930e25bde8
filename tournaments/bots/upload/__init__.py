"""Uploads: archives from strangers, read strictly and within limits (pure)."""
