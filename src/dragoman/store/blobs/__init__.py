"""Attachments and long outputs by the hash of their content: where they can be, and a cache."""
