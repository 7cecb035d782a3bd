"""Our tools, agents and conversations for other programs, over the Model Context Protocol."""

from dragoman.extras import require

require("mcp")
