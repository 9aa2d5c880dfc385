"""A pool that grows and shrinks."""
