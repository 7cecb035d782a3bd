"""Attachments and large outputs, by the hash of their content."""
