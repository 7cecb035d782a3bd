"""Tool calls as text, for models that have no calls of their own."""
