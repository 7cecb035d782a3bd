"""A turn while it runs: its log, its events, and the signals that reach it."""
