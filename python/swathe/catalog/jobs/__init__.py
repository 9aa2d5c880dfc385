"""Jobs in the catalogue: their rows in blocks, and the leases of runners."""
