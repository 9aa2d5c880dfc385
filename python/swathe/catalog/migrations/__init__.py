"""How the database came to its present shape: one module in `versions` for each step.

A step stands for itself, without the tables of today's code, and is never changed once released.
Its revision goes to the end of `swathe.catalog.tables.REVISIONS`.
"""
