"""Our tools, agents and conversations for other programs, over the Model Context Protocol."""

from dragoman.installed import require

require("mcp")
