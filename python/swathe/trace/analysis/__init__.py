"""Reads traces: which events belong together, and what took the time."""
