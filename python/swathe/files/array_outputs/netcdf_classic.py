"""Write a cut as NetCDF classic, with 64-bit offsets."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from swathe.files.array_outputs.hdf5 import INTERNAL, axis_lengths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.files.variable import VariableSet

TYPES = ("S1", "i1", "i2", "i4", "f4", "f8")


def fits_classic(cutout: VariableSet) -> bool:
    """Check whether NetCDF classic has the types of all variables and attributes.

    scipy, which writes it, spoils names that are not ASCII, and attributes named as members of its
    own objects.
    """
    import numpy as np
    from scipy.io import netcdf_file  # type: ignore[import-untyped]

    with netcdf_file(BytesIO(), "w", version=2) as output:
        output.createDimension("one", 1)
        members = [set(dir(output.createVariable("one", "i4", ("one",)))), set(dir(output))]
    of_variables = {name for each in cutout.variables.values() for name in each.attrs} - INTERNAL
    of_file = set(cutout.global_attrs) - INTERNAL
    names = {*cutout.variables, *axis_lengths(cutout), *of_variables, *of_file}
    if not all(name.isascii() for name in names):
        return False
    if of_variables & members[0] or of_file & members[1]:
        return False

    values = [each.data for each in cutout.variables.values()]
    owners = [each.attrs for each in cutout.variables.values()] + [cutout.global_attrs]
    values += [np.asarray(one) for attrs in owners for one in attrs.values() if not _is_text(one)]
    return all(each.dtype.str.lstrip("<>|=") in TYPES for each in values)


def classic_bytes(cutout: VariableSet) -> bytes:
    """Return a file of NetCDF classic; `fits_classic` says whether it can hold the cut."""
    from scipy.io import netcdf_file

    content = BytesIO()
    with netcdf_file(content, "w", version=2) as output:
        _set_attributes(output, cutout.attrs_with_history())
        for axis, length in axis_lengths(cutout).items():
            output.createDimension(axis, length)
        for name, variable in cutout.variables.items():
            data = variable.data
            item = output.createVariable(name, data.dtype.newbyteorder(">"), variable.dims)
            item[...] = data
            _set_attributes(item, variable.attrs)
        output.flush()
        return content.getvalue()


def _set_attributes(of: Any, attrs: Mapping[str, Any]) -> None:
    for name, value in attrs.items():
        if name not in INTERNAL:
            setattr(of, name, value.encode() if isinstance(value, str) else value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
