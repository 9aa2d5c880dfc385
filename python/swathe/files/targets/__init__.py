"""Lists of targets: which region of which file, however they are written."""
