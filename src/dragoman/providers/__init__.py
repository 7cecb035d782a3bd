"""Manage the providers of models: addresses, keys, facts about each model, and prices."""
