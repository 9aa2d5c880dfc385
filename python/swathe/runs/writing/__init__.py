"""Write the arrays of a run, by all its ranks."""
