"""Who runs turns, and where."""
