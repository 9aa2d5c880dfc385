"""Viewer of events: lifelines, load-lines and points on one time axis."""
