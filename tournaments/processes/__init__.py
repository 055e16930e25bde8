"""Kalarena's own processes: their priority, their interpreter's settings, and pools of them."""
