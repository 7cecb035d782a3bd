"""How often the model in the box calls the right tool, and how useful its answers are."""
