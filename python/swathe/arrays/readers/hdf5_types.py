"""Types, filters and attributes of HDF5, as a chunk index has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5a, h5r, h5t, h5z

from swathe.arrays.index_writer import encode_attribute
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ATTRIBUTES = 10_000
"""Limit of the attributes of an object."""
MOST_ATTRIBUTE_BYTES = 1 << 20
"""Size of an attribute beyond which a note stands for it."""
LINKS = ("DIMENSION_LIST", "REFERENCE_LIST")
"""Attributes that link dimension scales; `dims` says the same."""
IEEE_BIAS = {2: 15, 4: 127, 8: 1023}
"""Bias of the exponent, by bytes of a number."""
SZIP = ("options", "block", "bits", "scanline")
"""Parameters of szip, in the order of HDF5."""
FILTERS = {
    1: "deflate",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    307: "bzip2",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32015: "zstd",
}
"""Filters that `crates/codecs` decodes, by their number in HDF5."""
BITSHUFFLE_CODECS = {0: "none", 2: "lz4", 3: "zstd"}


def is_plain(of: Any, dtype: np.dtype[Any], filters: Sequence[str] = ()) -> bool:
    """Check whether stored elements are those of the NumPy type, bit for bit.

    Args:
        of: type in the file, an `h5py.h5t.TypeID`.
        dtype: type that h5py offers for it.
        filters: names of the filters; nbit clears the bits beyond the precision.
    """
    if of.get_size() != dtype.itemsize or dtype.hasobject:
        return False
    if isinstance(of, h5t.TypeEnumID):
        return is_plain(of.get_super(), dtype, filters) or dtype.kind == "b"
    if isinstance(of, h5t.TypeBitfieldID):
        # h5py does not tell their precision; it gives their bits as they are stored.
        return dtype.kind == "u"
    if isinstance(of, h5t.TypeIntegerID):
        is_whole = of.get_precision() == 8 * of.get_size()
        is_zero_padded = "nbit" in filters and dtype.kind == "u"
        return of.get_offset() == 0 and (is_whole or is_zero_padded)
    if isinstance(of, h5t.TypeFloatID):
        size = of.get_size()
        if dtype.kind != "f" or of.get_precision() != 8 * size:
            return False
        model = h5t.py_create(dtype.newbyteorder("="))
        return bool(of.get_ebias() == IEEE_BIAS.get(size) and of.get_fields() == model.get_fields())
    if isinstance(of, h5t.TypeArrayID):
        return is_plain(of.get_super(), dtype.base, filters)
    if isinstance(of, h5t.TypeCompoundID):
        if dtype.names is None:  # a complex number as `r` and `i`
            half = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
            return of.get_nmembers() == 2 and all(
                of.get_member_offset(i) == i * half.itemsize
                and is_plain(of.get_member_type(i), half, filters)
                for i in range(2)
            )
        fields: Any = dtype.fields or {}
        return len(fields) == of.get_nmembers() and all(
            fields[name][1] == of.get_member_offset(i)
            and is_plain(of.get_member_type(i), fields[name][0], filters)
            for i, name in enumerate(dtype.names)
        )
    return dtype.kind in "SVc"


def plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type without the notes of h5py, as the index describes it.

    Raises:
        FormatError: If its fields overlap or are not in order, which the index cannot say.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((plain_dtype(base), shape))
    if dtype.names is None:
        return np.dtype(dtype.str)
    fields: list[Any] = []
    end = 0
    for name in dtype.names:
        members: Any = dtype.fields or {}
        of, offset = members[name][:2]
        if offset < end:
            raise FormatError(f"field {name}: expected it from byte {end}, found it at {offset}")
        if offset > end:
            fields.append(("", f"V{offset - end}"))
        fields.append((name, plain_dtype(of)))
        end = offset + of.itemsize
    if end < dtype.itemsize:
        fields.append(("", f"V{dtype.itemsize - end}"))
    return np.dtype(fields)


def filters_of(plist: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the filters of a dataset for `crates/codecs`, and the one that it lacks, if any.

    Args:
        plist: creation properties of the dataset, an `h5py.h5p.PropDCID`.
    """
    filters = []
    for i in range(plist.get_nfilters()):
        code, _, values, text = plist.get_filter(i)
        name = FILTERS.get(code)
        note = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if name is None:
            return [], f"filter {code} ({note})" if note else f"filter {code}"
        if name == "shuffle":
            if not values or values[0] == 0:
                return [], f"shuffle with parameters {list(values)}"
            filters.append({"name": name, "size": int(values[0])})
        elif name in ("nbit", "scaleoffset"):
            filters.append({"name": name, "values": [int(value) for value in values]})
        elif name == "szip":
            if len(values) != len(SZIP):
                return [], f"szip with parameters {list(values)}"
            filters.append({"name": name, **dict(zip(SZIP, map(int, values), strict=True))})
        elif name == "lz4":
            filters.append({"name": name, "framing": "hdf5"})
        elif name == "bitshuffle":
            codec = BITSHUFFLE_CODECS.get(values[4] if len(values) > 4 else 0)
            if codec is None or len(values) < 3:
                return [], f"bitshuffle with parameters {list(values)}"
            block = int(values[3]) if len(values) > 3 else 0
            filters.append({"name": name, "size": int(values[2]), "block": block, "codec": codec})
        else:
            filters.append({"name": name})
    return filters, ""


def is_known_to_library(plist: Any) -> bool:
    """Check whether the library can undo every filter of a dataset."""
    return all(h5z.filter_avail(plist.get_filter(i)[0]) for i in range(plist.get_nfilters()))


def attributes_of(target: Any) -> dict[str, Any]:
    """Return the attributes of a group or dataset, encoded.

    Raises:
        FormatError: If it has more than `MOST_ATTRIBUTES`.
    """
    count = h5a.get_num_attrs(target.id)
    if count > MOST_ATTRIBUTES:
        raise FormatError(f"{target.name}: expected {MOST_ATTRIBUTES} attributes, found {count}")
    attributes = {}
    for name in target.attrs:
        if name not in LINKS:
            attributes[encode_attribute(name)] = _attribute(target, name)
    return attributes


def _attribute(target: Any, name: str | bytes) -> Any:
    """Return an attribute, encoded. A name that is not valid UTF-8 is bytes."""
    raw = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    of = h5a.open(target.id, raw)
    size = of.get_type().get_size() * of.get_space().get_simple_extent_npoints()
    if size > MOST_ATTRIBUTE_BYTES:
        return f"(an attribute of {size} bytes)"
    try:
        value = target.attrs[name]
        if isinstance(value, h5py.Empty):
            return "" if value.dtype.kind in "SO" else encode_attribute(np.empty(0, value.dtype))
        if isinstance(value, np.ndarray | np.void) and value.dtype.kind in "OV":
            return _object_attribute(target, np.asarray(value))
        if isinstance(value, h5r.Reference):
            return _text(target, value)
        return encode_attribute(value)
    except (OSError, TypeError, ValueError, RuntimeError, KeyError) as error:
        return f"(an attribute that h5py does not read: {error})"


def _object_attribute(target: Any, value: np.ndarray[Any, Any]) -> Any:
    """Encode texts, references, sequences and compounds."""
    if value.dtype.kind == "V" and not value.dtype.hasobject:
        return encode_attribute(value.astype(plain_dtype(value.dtype)))
    texts = [_text(target, each) for each in value.ravel().tolist()]
    return encode_attribute(np.array(texts, object).reshape(value.shape))


def _text(target: Any, value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, h5r.Reference):
        return (h5r.get_name(value, target.id) or b"").decode("utf-8", "backslashreplace")
    if isinstance(value, np.ndarray | list | tuple):
        return ", ".join(_text(target, each) for each in value)
    return str(value)
