"""Serve external protocols. Each is a stateless projection of Dragoman's events and commands."""
