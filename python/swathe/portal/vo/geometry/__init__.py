"""Regions of the sky on images."""
