"""SIA2, DataLink and VOSI: discovery of images and services."""
