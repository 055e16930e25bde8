"""The formats of tournaments, one module each; ``catalog`` has them by name (pure)."""
