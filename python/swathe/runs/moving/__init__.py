"""Move what a run wrote from store to store."""
