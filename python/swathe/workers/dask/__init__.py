"""A pool of processes on many machines, by Dask distributed."""
