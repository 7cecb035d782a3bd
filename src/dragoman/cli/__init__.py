"""The terminal program.

`main.py` is its entry point. Each command has its parameters in `flags/` and its work in `commands/`;
`terminal/` draws and asks; `chat/` is the interactive chat; `acp/` serves editors.
"""
