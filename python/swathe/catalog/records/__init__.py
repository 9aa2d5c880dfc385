"""Records of the catalogue as plain values."""
