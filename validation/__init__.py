"""How often our numbers are right where the truth is known: simulations, and the tables of the documents.

``python -m validation`` runs them; slow tests run a part of each.
"""
