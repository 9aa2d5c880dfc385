"""Cuts: one, and many."""
