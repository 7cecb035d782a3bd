"""Authenticate at a provider: one file for each way, each with a `ProviderAuth`."""
