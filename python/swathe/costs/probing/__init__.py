"""Measure stores and this host."""
