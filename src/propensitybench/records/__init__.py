"""Records of runs for others: Every Eval Ever, reporting sheets, a model card, BibTeX.

Every number is one of ``propensitybench score --json --all``; see `measures`.
"""
