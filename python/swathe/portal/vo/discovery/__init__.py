"""SIA2, DataLink and VOSI: which images there are."""
