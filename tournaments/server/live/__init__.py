"""Live state of running games, for spectators."""
