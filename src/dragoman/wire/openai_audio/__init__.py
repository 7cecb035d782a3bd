"""OpenAI's Audio: transcription and speech, also of those that imitate it, such as Groq and Speaches."""
