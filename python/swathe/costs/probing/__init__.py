"""Measuring stores and this host."""
