"""Datasets, their images and the copies of these in the catalogue."""
