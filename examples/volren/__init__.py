"""Parallel volume rendering of a dataset of bytes of a run."""
