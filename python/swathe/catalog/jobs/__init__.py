"""Jobs in the catalogue: their rows in blocks, and who works on which."""
