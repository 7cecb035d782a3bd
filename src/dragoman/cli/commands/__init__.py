"""Implement the commands. Each module is imported when its command runs, so heavy imports are fine here."""
