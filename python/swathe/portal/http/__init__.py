"""Connections, shares and answers of a portal, whatever they are about."""
