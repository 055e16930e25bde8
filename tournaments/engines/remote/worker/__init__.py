"""The part that runs on a worker's machine: its games, its bots, its lifetime."""
