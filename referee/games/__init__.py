"""Rule books: pure, standard library only."""
