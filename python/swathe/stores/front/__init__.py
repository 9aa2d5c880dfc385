"""Caches in front of other stores: whole objects are kept near, and evicted by refetch cost."""
