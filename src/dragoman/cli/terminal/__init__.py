"""What draws and asks at a terminal: text made safe, cards, Markdown, live screens, prompts."""
