"""Turbulent convection in three dimensions: an application whose arrays are a run."""
