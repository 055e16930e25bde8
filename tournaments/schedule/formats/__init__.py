"""Formats of tournaments, one module each; ``plan.FORMATS`` lists them by name (pure)."""
