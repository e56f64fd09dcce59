"""Reports of runs: pages, figures and tables."""
