"""Lowest layer: errors, paths, boxes, sky positions, settings, formats and output files."""
