"""Ways to sign in to a provider: one file each, each a `ProviderAuth`."""
