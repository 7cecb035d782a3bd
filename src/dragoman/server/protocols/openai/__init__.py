"""Serve OpenAI's API, so that its SDKs and tools based on them can use Dragoman's agents and models."""
