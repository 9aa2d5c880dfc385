"""Pools simulated, event by event."""
