"""What a person reads of runs: pages, figures, tables."""
