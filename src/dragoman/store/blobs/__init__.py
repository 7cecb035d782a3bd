"""Attachments and long outputs by the hash of their content: the protocol, a folder, a cache before it."""
