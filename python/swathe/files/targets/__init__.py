"""Read lists of targets: regions of files, in any supported form."""
