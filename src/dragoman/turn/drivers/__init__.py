"""Runs turns, in one process or across several."""
