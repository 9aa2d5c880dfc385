"""Resolution reduction: swaths and grids binned into the cells of a coarser grid."""
