"""Read and write tool calls as text, for models without native calls."""
