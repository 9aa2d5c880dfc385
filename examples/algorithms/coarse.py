# /// script
# requires-python = ">=3.11"
# dependencies = ["astropy", "numpy"]
# [tool.swathe.algorithm]
# name = "coarse"
# version = "1.0"
# description = "Mean image of a day, in blocks of pixels"
# inputs.images = {count = "1..1000", group = "day"}
# outputs.mean = {media_type = "image/fits"}
# parameters.factor = {type = "integer", minimum = 1, maximum = 100, default = 10}
# resources = {cpu = 1, memory = "1 GB", wall = "10 min", output = "200 MB"}
# ///
"""Average images of 16-bit pixels over a day and over blocks, as coarse_c and coarse_fortran."""

import numpy as np
from astropy.io import fits


def run(images, mean, factor):
    """Add the blocks of each image, and write their means as 32-bit floats."""
    total = 0.0
    for image in images:
        pixels = fits.getdata(image.path).astype(np.float64)
        height, width = (length // factor for length in pixels.shape)
        blocks = pixels[: height * factor, : width * factor].reshape(height, factor, width, factor)
        total = total + blocks.sum(axis=(1, 3))
    means = (total / (len(images) * factor * factor)).astype(np.float32)
    fits.PrimaryHDU(means).writeto(mean)
