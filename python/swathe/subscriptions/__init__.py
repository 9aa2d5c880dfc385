"""Subscriptions: a saved search, and a job for each group of granules that comes to match it."""
