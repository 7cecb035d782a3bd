"""Who serves a model: addresses, keys, what is known of each model, and what it costs."""
