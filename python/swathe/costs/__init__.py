"""Measure the costs of stores and of this host, and predict the cost of jobs."""
