"""Let the admin set up providers, keys and MCP servers in the web UI, and write the settings file."""
