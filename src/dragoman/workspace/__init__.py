"""Manage the folder that tools work in: its files, the changes of each turn as diffs, and reverts."""
