"""Providers of workers: this machine, or a batch system."""
