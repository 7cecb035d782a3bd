"""The terminal program.

`main.py` is its entry point; each command has its flags in `flags/` and its work in `commands/`; `terminal/`
draws and asks; `chat/` is the interactive chat.
"""
