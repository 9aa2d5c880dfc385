"""Experiments, measured as in the studies of 2000 to 2007, so that figures can be compared."""
