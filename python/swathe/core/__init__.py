"""What every part of the package may use: the lowest layer."""
