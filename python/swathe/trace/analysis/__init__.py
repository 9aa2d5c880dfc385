"""Analysis of traces: stages, their nesting, and where the time went."""
