"""Staging of objects from tape: one protocol, and its implementations."""
