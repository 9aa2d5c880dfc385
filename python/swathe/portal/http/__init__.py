"""Connections, limits and responses of a portal, for any content."""
