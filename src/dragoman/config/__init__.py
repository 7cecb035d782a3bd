"""Loads settings from files, environment and flags. Only the server and the terminal program use them."""
