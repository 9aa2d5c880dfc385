"""Catalogue the images of an archive and search them by sky position, time and band.

`scan` reads the objects that a listing of a store names. `header_metadata` reads time and band of
an image, `footprint` its sky coverage. `search` finds images.
"""
