"""Experiments: measured as the studies of 2000 to 2007 did, so that figures can be set beside."""
