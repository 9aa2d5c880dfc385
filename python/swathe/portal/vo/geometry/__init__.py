"""Regions of the sky, and the pixels of images that show them."""
