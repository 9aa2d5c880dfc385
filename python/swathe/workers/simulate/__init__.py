"""Simulation of pools, event by event."""
