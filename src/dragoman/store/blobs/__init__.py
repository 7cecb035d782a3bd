"""Stores attachments and long outputs by the hash of their content, in various places, with a cache."""
