"""Fit costs to measurements."""
