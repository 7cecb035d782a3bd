"""The API of OpenAI: its SDKs, and what is built on them, talk to agents and models here."""
