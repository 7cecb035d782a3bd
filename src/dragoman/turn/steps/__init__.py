"""Carries a turn from the message to the answer, step by step."""
