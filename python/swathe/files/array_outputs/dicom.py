"""Write a cut of a DICOM image as DICOM: an image of its own, with what the source says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import OutputError
from swathe.files.array_outputs.source import open_source

if TYPE_CHECKING:
    from swathe.files.variable import VariableSet


def dicom_bytes(cutout: VariableSet) -> bytes:
    """Return a DICOM file of the pixels as stored, with the elements of the source.

    Raises:
        ChangedError: If the source is another version by now.
        OutputError: If the source is not DICOM, the cut lacks frames or samples, its samples were
            decoded by a library, or its frames have places of their own.
    """
    from swathe.arrays.indexing import run_dicom_head

    what = f"{cutout.url}, array {cutout.path}"
    box = cutout.box
    if cutout.format != "dicom" or box is None:
        raise OutputError(f"{what}: expected an image of DICOM for .dcm; write .nc")
    with open_source(cutout, "its elements") as file:
        array = file[cutout.path]
        lengths = {"y": box[3], "x": box[2]}
        sides = zip(array.dims, array.shape, strict=True)
        shape = tuple(lengths.get(name, length) for name, length in sides)
        if (cutout.dims, cutout.shape) != (array.dims, shape):
            raise OutputError(
                f"{what}: expected all frames and samples for .dcm, {shape}, found "
                f"{cutout.shape}; write .nc"
            )
        if array.problem and "band" in array.dims:
            raise OutputError(f"{what}: expected plain colours for .dcm, found {array.problem}")
        pixels = cutout.data.astype(array.dtype, copy=False).tobytes()
        argument = {"box": list(box), "size": len(pixels), "text": cutout.history()}
        try:
            head = run_dicom_head(argument, array.reads, what)
        except OutputError as error:
            raise OutputError(f"{what}: .dcm cannot hold it: {error}; write .nc") from error
    return head + pixels + bytes(len(pixels) % 2)
