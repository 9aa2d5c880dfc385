"""Datasets: which images an archive holds, and which of them show a place in the sky.

`scan` reads what a `listing` of a store finds: `headers` tell when and in what light an image was
taken, `footprint` where it is. `search` finds images again.
"""
