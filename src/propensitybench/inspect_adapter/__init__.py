"""Inspect AI: our tasks, scorer and simulated models in it, and its logs (extra ``inspect``)."""
