"""Measuring storages: what they cost as seen from this host, and what this host costs."""
