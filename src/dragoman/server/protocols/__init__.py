"""Other people's protocols: each a projection of our events and commands, with no state of its own."""
