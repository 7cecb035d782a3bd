"""Trains the adapter of the bundled model: material, generator, training, conversion."""
