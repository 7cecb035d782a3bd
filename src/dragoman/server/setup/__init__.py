"""Set-up by whoever runs the server: providers and keys, MCP servers, what is written to their settings."""
