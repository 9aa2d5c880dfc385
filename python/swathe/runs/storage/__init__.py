"""The objects and metadata of a run in its stores."""
