"""Costs fitted to what was measured."""
