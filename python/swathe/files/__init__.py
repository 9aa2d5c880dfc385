"""Open files, cut regions from them, and read lists of targets."""
