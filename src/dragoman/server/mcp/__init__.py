"""Serve tools, agents and conversations to other programs over the Model Context Protocol."""

from dragoman.installed import require

require("mcp")
