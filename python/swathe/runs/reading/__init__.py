"""Read the arrays of a run wherever they lie."""
