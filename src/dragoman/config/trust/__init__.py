"""Decides on trust in folders: active content, users who could change it, and the user's answer."""
