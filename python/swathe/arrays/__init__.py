"""Arrays of all formats but FITS: their chunk indexes, and how they are read."""
