"""Names of the metadata in a Zarr."""

from __future__ import annotations

NODE = "zarr.json"
"""An array or a group of version 3."""
ARRAY, GROUP, ATTRIBUTES, ALL = ".zarray", ".zgroup", ".zattrs", ".zmetadata"
"""Version 2: an array, a group, the attributes of either, and a copy of all of them in the root."""
EVERY = (NODE, ARRAY, GROUP, ATTRIBUTES, ALL)
MARKS = (NODE, GROUP, ARRAY)
"""A folder with a file of such a name is an array or a group."""
