"""Numbers in words: what each is called, its unit and meaning, and the tables in which it stands.

The terminal, notebooks, reports, figures, boards and records all take their words from here.
"""
