"""Servers, pools, portals, files and traces for the tests."""
