"""Run the interactive chat: a session and its `/commands`. `commands/chat.py` opens it."""
