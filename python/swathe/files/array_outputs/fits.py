"""Write a cut as FITS: packing, units, attributes and linear axes as cards.

References:
    FITS Standard 4.0, 4.4.2.5 (BSCALE, BZERO, BLANK) and 8.1 (world coordinates).
"""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OutputError, RegionError
from swathe.files.array_outputs.even_steps import step_of
from swathe.files.array_outputs.hdf5 import INTERNAL
from swathe.files.places.attribute_wcs import (
    Cards,
    cards_of,
    has_wcs,
    is_of_wcs,
    mapping_names,
    without_wcs,
)
from swathe.files.variable import (
    SCALING,
    Variable,
    masked_values,
    number_of,
    physical_values,
    with_one_fill,
)

if TYPE_CHECKING:
    from astropy.io import fits

    from swathe.files.variable import VariableSet

PLAIN = ("u1", "i2", "i4", "i8")
"""Integers that FITS stores as they are."""
OFFSETS = {"i1": -(2**7), "u2": 2**15, "u4": 2**31, "u8": 2**63}
"""BZERO of the other integers."""
OTHERS = {"b1": "u1", "f2": "f4"}
PACKING = (*SCALING, "_FillValue", "missing_value", "_Unsigned")
MOST_CARD_TEXT = 1000
STRUCTURE = re.compile(
    r"SIMPLE|XTENSION|BITPIX|NAXIS\d*|EXTEND|[PG]COUNT|GROUPS|BSCALE|BZERO|BLANK|CONTINUE|END"
    r"|TFIELDS|THEAP|Z(IMAGE|TABLE|BITPIX|CMPTYPE|SCALE|ZERO|BLANK)|ZNAXIS\d*"
    r"|CHECKSUM|DATASUM|INHERIT",
    re.ASCII,
)
"""Keywords that say how an HDU is read: an attribute of such a name is no card."""


def fits_bytes(cutout: VariableSet) -> bytes:
    """Return a FITS file: the array in the primary HDU, what belongs to it in extensions.

    Values packed by scale and offset stay packed if FITS has their type, else they are physical.

    Raises:
        OutputError: If FITS cannot hold the elements.
    """
    from astropy.io import fits

    wcs, global_attrs = _wcs(cutout), cutout.global_attrs
    primary = fits.PrimaryHDU()
    hdus = fits.HDUList([primary])
    coordinates = str(cutout.variables[cutout.name].attrs.get("coordinates", "")).split()
    for name, variable in cutout.variables.items():
        is_main = name == cutout.name
        # Of one element: the time of a map, but not what only has attributes, as a projection.
        has_values = bool(variable.data.ndim) or name in coordinates
        if not is_main and (variable.data.dtype.kind not in "biuf" or not has_values):
            continue
        hdu = primary if is_main else fits.ImageHDU()
        if is_main and wcs is not None:
            variable = replace(variable, attrs=without_wcs(variable.attrs))
            global_attrs = without_wcs(global_attrs)
        _fill(hdu, f"{cutout.url}, array {name}", name, variable)
        if is_main:
            if wcs is None:
                _add_axes(hdu.header, variable, cutout.variables)
            else:
                hdu.header.update(wcs)
            _add_attributes(hdu.header, global_attrs)
            hdu.header.add_history(cutout.history().encode("ascii", "replace").decode())
        else:
            hdus.append(hdu)
    content = BytesIO()
    hdus.writeto(content, output_verify="exception")
    return content.getvalue()


def _wcs(cutout: VariableSet) -> Cards | None:
    """Return the WCS of the nearest attributes that have one, which already is that of the cut."""
    variables = cutout.variables
    main = variables[cutout.name].attrs
    names = [name for name in mapping_names(main) if name in variables]
    for attrs in (main, *(variables[name].attrs for name in names), cutout.global_attrs):
        if has_wcs(attrs):
            try:
                return cards_of(attrs, f"{cutout.url}, array {cutout.path}")
            except RegionError:  # the text of a header that is none; the cut warned of it
                continue
    return None


def _fill(hdu: Any, what: str, name: str, variable: Variable) -> None:
    """Set the data of an HDU, and the cards that belong to them.

    Raises:
        OutputError: If FITS cannot hold the elements.
    """
    import numpy as np

    data, attrs = variable.data, dict(variable.attrs)
    kind = data.dtype.str[1:]
    is_packed = bool(set(SCALING) & set(attrs))
    if "_Unsigned" in attrs or (is_packed and kind not in PLAIN):
        data, is_packed = physical_values(variable), False
        attrs = {key: value for key, value in attrs.items() if key not in PACKING}
        kind = data.dtype.str[1:]
    fill = None
    if kind[0] in "iuf":
        left = replace(variable, data=data, attrs=attrs)
        data, fill = with_one_fill(left)
        has_gaps = np.ma.getmaskarray(masked_values(left)).any()
        if kind == "i1" or (kind in OFFSETS and has_gaps):
            # astropy reads no BLANK of integers that FITS stores with an offset.
            fill = None
        if fill is None and has_gaps:
            # No integer of this type says that there is no value.
            data, is_packed = physical_values(left), False
            attrs = {key: value for key, value in attrs.items() if key not in PACKING}
        kind = data.dtype.str[1:]
    if kind in OTHERS:
        data, kind = data.astype(OTHERS[kind]), OTHERS[kind]
    if kind not in (*PLAIN, *OFFSETS, "f4", "f8"):
        raise OutputError(f"{what}: expected numbers for FITS, found {data.dtype}")
    if not data.ndim:
        data = data.reshape(1)
    hdu.data = data.astype(data.dtype.newbyteorder("="))
    header = hdu.header
    if is_packed:
        header["BSCALE"] = float(number_of(attrs.get("scale_factor", 1)))
        header["BZERO"] = float(number_of(attrs.get("add_offset", 0)))
    if fill is not None and data.dtype.kind in "iu":
        header["BLANK"] = int(fill) - OFFSETS.get(kind, 0)
    header["EXTNAME"] = name[:68].encode("ascii", "replace").decode()
    unit = attrs.get("units")
    if isinstance(unit, str) and unit.isascii() and unit.isprintable():
        header["BUNIT"] = unit[:68]
    _add_attributes(header, {key: each for key, each in attrs.items() if key not in PACKING})


def _add_attributes(header: fits.Header, attrs: dict[str, Any]) -> None:
    """Add attributes of one text or number as cards; others do not fit.

    Names that are no keywords become HIERARCH cards. Cards that are there stay. Names that would
    become keywords of a WCS, such as `crpix1`, are left out: nobody moved them with the cut.
    """
    import numpy as np
    from astropy.io import fits

    for name, value in attrs.items():
        one = number_of(value)
        if isinstance(one, str):
            fits_card = one.isascii() and one.isprintable() and len(one) <= MOST_CARD_TEXT
        else:
            fits_card = np.ndim(one) == 0 and np.asarray(one).dtype.kind in "biuf"
            fits_card = fits_card and bool(np.isfinite(one))
            one = np.asarray(one).item() if fits_card else one
        is_keyword = len(name) <= 8 and name.replace("_", "").replace("-", "").isalnum()
        key = name.upper() if is_keyword else f"HIERARCH {name}"
        if (
            name in INTERNAL
            or not fits_card
            or not name.isascii()
            or "=" in name
            or key in header
            or STRUCTURE.fullmatch(key)
            or is_of_wcs(key)
            or not name
        ):
            continue
        try:
            card = fits.Card(key, one)
            card.verify("exception")
            str(card)
        except (ValueError, fits.VerifyError):
            continue
        header.append(card, end=True)


def _add_axes(header: fits.Header, main: Variable, variables: dict[str, Variable]) -> None:
    """Add the linear world coordinates of axes whose coordinates have equal steps."""
    from astropy import units

    for number, name in enumerate(reversed(main.dims), start=1):
        coordinate = variables.get(name)
        if coordinate is None or coordinate.dims != (name,):
            continue
        if coordinate.data.dtype.kind not in "iuf":
            continue
        values = physical_values(coordinate).astype("f8")
        step = step_of(values)
        if step is None:
            continue
        header[f"CTYPE{number}"] = name[:68].encode("ascii", "replace").decode()
        header[f"CRPIX{number}"], header[f"CRVAL{number}"] = 1.0, float(values[0])
        header[f"CDELT{number}"] = step
        text = str(coordinate.attrs.get("units", ""))
        if text.lower().startswith("degree"):
            header[f"CUNIT{number}"] = "deg"
        else:
            try:
                header[f"CUNIT{number}"] = units.Unit(text).to_string("fits")
            except (ValueError, TypeError):
                # Such as days since a date: the attribute of the coordinate has it.
                header.pop(f"CUNIT{number}", None)
