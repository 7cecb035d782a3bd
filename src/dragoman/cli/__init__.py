"""The terminal program.

`main.py` is its entry point. Each command has its parameters in `flags/` and its work in `commands/`.
`terminal/` draws and prompts, `chat/` is the interactive chat, and `acp/` serves editors.
"""
