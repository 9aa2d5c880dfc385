"""Arrays of HDF5, NetCDF, HDF4, TIFF, ASDF and DICOM files: their chunk indexes, and how they are read."""
