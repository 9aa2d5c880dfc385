"""Stores by name, listings of their objects, and result stores of jobs."""
