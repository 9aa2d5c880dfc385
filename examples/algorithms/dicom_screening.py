# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "pydicom"]
# [tool.swathe.algorithm]
# name = "dicom-screening"
# version = "1.0"
# description = "Which images of a collection a person should look at, and why"
# inputs.images = {count = "1", group = "each"}
# outputs.screening = {media_type = "application/json"}
# parameters.least_contrast = {type = "number", minimum = 0, maximum = 1, default = 0.01}
# parameters.most_clipped = {type = "number", minimum = 0, maximum = 1, default = 0.02}
# resources = {cpu = 1, memory = "1 GB", wall = "1 min", output = "1 MB"}
# ///
"""Screen a collection of DICOM images, an image a group: those that are empty, flat or clipped.

Nothing that names a patient is read or written: the result has the image's identifier, its shape,
and shares of its pixels.
"""

import json

import numpy as np
import pydicom

TAGS = ["BitsStored", "Columns", "Modality", "NumberOfFrames", "PhotometricInterpretation"]
TAGS += ["PixelData", "PixelRepresentation", "Rows", "SamplesPerPixel", "BitsAllocated"]


def run(images, screening, least_contrast, most_clipped):
    """Write what was found in the image of this group."""
    (image,) = images
    dataset = pydicom.dcmread(image, specific_tags=[*TAGS, "PlanarConfiguration"])
    if "PixelData" not in dataset:
        raise ValueError(f"{image.id}: it has no pixels")
    pixels = dataset.pixel_array
    lowest, highest = range_of(dataset)
    low, high = np.percentile(pixels, [1, 99])
    contrast = float(high - low) / (highest - lowest)
    clipped = float(np.mean((pixels == lowest) | (pixels == highest)))
    reasons = []
    if pixels.min() == pixels.max():
        reasons.append("empty")
    elif contrast < least_contrast:
        reasons.append("flat")
    if clipped > most_clipped:
        reasons.append("clipped")
    found = {
        "image": image.id,
        "modality": str(dataset.get("Modality", "")),
        "shape": list(pixels.shape),
        "contrast": round(contrast, 6),
        "clipped": round(clipped, 6),
        "look_at": reasons,
    }
    screening.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{image.id}: {', '.join(reasons) or 'nothing to look at'}")


def range_of(dataset):
    """Return the lowest and the highest value that the stored bits can hold."""
    bits = dataset.BitsStored
    if dataset.PixelRepresentation == 1:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1
