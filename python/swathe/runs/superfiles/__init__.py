"""Superfiles: many small arrays or images in one object, an uncompressed zip file."""
