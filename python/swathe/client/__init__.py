"""Jobs on a portal elsewhere."""
