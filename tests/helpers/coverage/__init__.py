"""How often intervals cover the truth, in simulated runs through the real estimators.

`perf/coverage.py` runs all cells and writes the tables of docs/metrics.md; slow tests run some of them.
"""
