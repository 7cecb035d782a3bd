"""The interactive chat: a session, the menu of a question, the `/commands`. `commands/chat.py` opens it."""
