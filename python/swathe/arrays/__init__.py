"""Arrays of HDF5, NetCDF, HDF4, TIFF and ASDF files: their chunk indexes, and how they are read."""
