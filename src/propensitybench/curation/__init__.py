"""Checks and measurements of a data set's texts, which playing a scenario does not need."""
