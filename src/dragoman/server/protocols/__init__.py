"""Other people's protocols: each a projection of our events, with no state of its own."""
