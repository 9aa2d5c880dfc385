"""Placement of batches on workers. No clock and no network: the simulation uses it, too."""
