"""Does nothing but play; always swaps."""

import kalah

kalah.play(wants_swap=lambda hole: True)
