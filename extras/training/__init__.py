"""Trains the adapter of the model in the box: material, generator, training, conversion."""
