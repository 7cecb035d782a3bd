"""Speak OpenAI's Audio API, for transcription and speech, and that of imitators such as Groq and Speaches."""
