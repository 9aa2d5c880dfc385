"""Where batches of targets run: in this process, or on the machines of a cluster."""
