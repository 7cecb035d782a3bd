"""The interactive chat: a session, and the `/commands`. `commands/chat.py` opens it."""
