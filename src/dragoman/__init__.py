"""Dragoman: the runtime for conversations in which a language model calls tools."""
