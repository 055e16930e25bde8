"""Pictures of positions, and animations of moves."""
