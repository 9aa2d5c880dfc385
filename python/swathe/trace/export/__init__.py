"""Traces as other programs read them."""
