"""Subscriptions in the catalogue: their matches, their runs and their events."""
