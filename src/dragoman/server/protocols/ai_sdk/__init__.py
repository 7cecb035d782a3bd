"""Serve the AI SDK's UI message stream, as `useChat` and assistant-ui read it."""
