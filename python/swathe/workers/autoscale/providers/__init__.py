"""Who starts workers: this machine, or a batch system."""
