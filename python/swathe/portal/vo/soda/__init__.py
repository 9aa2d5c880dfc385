"""SODA: synchronous cutouts, and asynchronous ones as UWS jobs."""
