"""Experiments: arms and factors, their design, run and analysis."""
