"""Measures how often the bundled model calls the right tool, and how useful its answers are."""
