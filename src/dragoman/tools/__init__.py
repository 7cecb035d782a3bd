"""Define, offer, authorize and run the tools that a model can call, including the built-in ones."""
