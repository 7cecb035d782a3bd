"""Draw and prompt at a terminal: safe text, cards, Markdown, live screens and prompts."""
