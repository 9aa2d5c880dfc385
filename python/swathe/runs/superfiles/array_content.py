"""Arrays as contents of entries: the format of `numpy.save`, checked before memory is taken."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import FormatError, OptionError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_HEADER = 10_000


def array_bytes(array: NDArray[Any]) -> bytes:
    """Return an array as `numpy.save` writes it.

    Raises:
        OptionError: If it has Python objects as elements.
    """
    if array.dtype.hasobject:
        raise OptionError(f"expected elements of plain types, found {array.dtype}")
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def array_of(content: bytes, label: str) -> NDArray[Any]:
    """Return the array that `numpy.save` wrote; it cannot be written to.

    Raises:
        FormatError: If there is none, or it has more or fewer bytes than it says.
    """
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, is_fortran, dtype = read(file, max_header_size=MOST_HEADER)
    except Exception as error:  # NumPy parses Python: MemoryError, TokenError and others
        raise _no_array(label, error) from error
    first = file.tell()
    size = math.prod(shape) * dtype.itemsize
    is_plain = not dtype.hasobject and dtype.itemsize and dtype.subdtype is None
    if not is_plain or min(shape, default=1) < 0 or size != len(content) - first:
        content_text = f"{len(content) - first} of type {dtype!s:.60}, shape {short_text(shape)}"
        raise FormatError(
            f"{label}: expected {short_text(size)} bytes of plain types, found {content_text}"
        )
    elements = np.frombuffer(content, dtype, offset=first) if size else np.empty(0, dtype)
    try:
        return elements.reshape(shape, order="F" if is_fortran else "C")
    except (ValueError, OverflowError) as error:  # too many axes, or too long ones
        raise _no_array(label, error) from error


def _no_array(label: str, error: Exception) -> FormatError:
    reason = f"{type(error).__name__} {str(error)!r:.100}"
    return FormatError(f"{label}: expected an array of NumPy, found {reason}")
