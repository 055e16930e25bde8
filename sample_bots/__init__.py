"""The sample bots, from the one a student starts from to an alpha-beta player."""
