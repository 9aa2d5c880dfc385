"""Draws events: lifelines, load-lines and points on one axis of time."""
