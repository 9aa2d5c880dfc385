"""Variables of a cut: elements with names of axes and attributes, and their physical values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from swathe.core.box import Box
    from swathe.files.open_source import OpenSource

SCALING = ("scale_factor", "add_offset")


@dataclass(frozen=True)
class Variable:
    """Elements as stored, with the names of their axes.

    Attributes:
        data: elements, neither scaled nor masked.
        dims: names of the axes, slowest first.
        attrs: attributes.
        mask: true for elements without a value, besides those that the attributes say; `None` if
            there is no mask, or it masks none.
    """

    data: NDArray[Any]
    dims: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    mask: NDArray[np.bool_] | None = None


class VariableSet(Protocol):
    """Part of an `ArrayCutout` that its files are written from."""

    url: str
    path: str
    version: str
    format: str
    global_attrs: dict[str, Any]
    source: OpenSource

    @property
    def name(self) -> str:
        """Return the last part of its path."""

    @property
    def data(self) -> NDArray[Any]:
        """Return the elements as stored."""

    @property
    def dims(self) -> tuple[str, ...]:
        """Return the names of the axes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape, slowest axis first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes of the array."""

    @property
    def mask(self) -> NDArray[np.bool_] | None:
        """Return which elements have no value by a mask; `None` without one."""

    @property
    def box(self) -> Box | None:
        """Return `(x0, y0, width, height)` on the axes y and x."""

    @property
    def physical(self) -> NDArray[Any]:
        """Return physical values."""

    @property
    def variables(self) -> dict[str, Variable]:
        """Return all variables by name."""

    def history(self) -> str:
        """Return a line of text that says where the cut comes from."""

    def attrs_with_history(self) -> dict[str, Any]:
        """Return the global attributes with a line for the cut."""


class ArrayElements(Protocol):
    """Elements and attributes: a `Variable`, or an `Array` of a file."""

    @property
    def data(self) -> NDArray[Any]:
        """Return the elements as stored."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes."""


def number_of(value: Any) -> Any:
    """Return an attribute of one number as that number."""
    import numpy as np

    array = np.asarray(value)
    return array.ravel()[0] if array.size == 1 else value


def physical_values(variable: ArrayElements, fill: Any = None) -> NDArray[Any]:
    """Return physical values by the CF conventions, NaN where there is none.

    Integers keep their type if they have neither scale nor offset, and each has a value.

    Args:
        variable: as for `masked_values`.
        fill: as for `masked_values`.
    """
    import numpy as np

    values = masked_values(variable, fill)
    if values.mask is np.ma.nomask or not values.mask.any():
        return values.data
    floats = values.data
    if floats.dtype.kind != "f":
        floats = floats.astype(_float_type(floats.dtype, None, None))
    floats[values.mask] = np.nan
    return floats


def with_one_fill(variable: ArrayElements) -> tuple[NDArray[Any], Any]:
    """Return elements as stored, and the only value that says that there is none.

    Where `physical_values` has NaN for another reason than this value, as `missing_value` or the
    valid range, the element becomes it; of floats it becomes NaN.

    Returns:
        The elements, and the value in their type; `None` if no element lacks a value and none is
        named, or the type has no value for it: then the elements are as they are.
    """
    import numpy as np

    data, attrs = variable.data, variable.attrs
    if data.dtype.kind not in "iuf":
        return data, None
    mask = np.ma.getmaskarray(masked_values(variable))
    if data.dtype.kind == "f":
        fill = data.dtype.type(np.nan)
        return (np.where(mask, fill, data) if mask.any() else data), fill
    fill = fill_value(attrs, data.dtype)
    if fill is None:
        return data, None
    return (np.where(mask, fill, data) if mask.any() else data), fill


def fill_value(attrs: Mapping[str, Any], dtype: np.dtype[Any]) -> Any:
    """Return `_FillValue`, else the only `missing_value`, in the type of the elements.

    It is `None` if there is none, or the type, of integers, does not have it.
    """
    import numpy as np

    value = number_of(attrs.get("_FillValue", attrs.get("missing_value")))
    if value is None or isinstance(value, str | bytes) or np.size(value) != 1:
        return None
    if dtype.kind == "f":
        return dtype.type(value)
    if not np.isfinite(value) or value != np.rint(value):
        return None
    limits, number = np.iinfo(dtype), int(value)
    return dtype.type(number) if limits.min <= number <= limits.max else None


def masked_values(variable: ArrayElements, fill: Any = None) -> np.ma.MaskedArray[Any, Any]:
    """Return physical values by the CF conventions (2.5.1, 8.1), masked where there is none.

    Elements equal to `_FillValue`, to one of `missing_value`, outside the valid range, or masked
    have no value. The others are `element * scale_factor + add_offset`; integers without these keep
    their type.

    Args:
        variable: packed elements; its attribute `_Unsigned` says that integers have no sign.
        fill: fill value of the format, for files without `_FillValue`.

    Raises:
        FormatError: If the scale or offset is no number.
    """
    import numpy as np

    attrs, data = variable.attrs, variable.data
    data = data.astype(data.dtype.newbyteorder("="), copy=True)
    if data.dtype.kind not in "iuf":
        return np.ma.MaskedArray(data)
    is_unsigned = {"true": True, "false": False}.get(str(attrs.get("_Unsigned", "")).lower())
    if is_unsigned is not None and data.dtype.kind == ("i" if is_unsigned else "u"):
        data = data.view(f"{'u' if is_unsigned else 'i'}{data.dtype.itemsize}")
    mask = _no_value(data, attrs, fill)
    if isinstance(variable, Variable) and variable.mask is not None:
        mask |= variable.mask
    scale, offset = scale_and_offset(attrs)
    values = data
    if scale is not None or offset is not None:
        values = data.astype(_float_type(data.dtype, scale, offset))
    elif mask.any() and data.dtype.kind == "f":
        values = data.astype(_float_type(data.dtype, None, None))
    with np.errstate(over="ignore", invalid="ignore"):
        if scale is not None:
            values *= scale
        if offset is not None:
            values += offset
    return np.ma.MaskedArray(values, mask)


def scale_and_offset(attrs: dict[str, Any]) -> tuple[Any, Any]:
    """Return `scale_factor` and `add_offset`, each `None` if there is none.

    Raises:
        FormatError: If one is no real number.
    """
    return _factor(attrs, "scale_factor"), _factor(attrs, "add_offset")


def _factor(attrs: dict[str, Any], name: str) -> Any:
    """Return an attribute that is one real number; `None` without it.

    Raises:
        FormatError: If it is anything else.
    """
    import numpy as np

    if name not in attrs:
        return None
    array = np.asarray(attrs[name])
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise FormatError(f"{name}: expected a number, found {attrs[name]!r:.60}")
    return array.ravel()[0]


def _no_value(data: NDArray[Any], attrs: dict[str, Any], fill: Any) -> NDArray[np.bool_]:
    """Return a mask of the elements without a value."""
    import numpy as np

    def as_elements(value: Any) -> NDArray[Any]:
        """Convert limits as the elements: those of unsigned integers may be stored with a sign."""
        numbers = np.asarray(value).ravel()
        if numbers.dtype.kind not in "iuf":
            return np.empty(0, data.dtype)
        if numbers.dtype.kind in "iu" and data.dtype.kind == "u":
            return numbers.astype(data.dtype)
        return numbers

    mask = np.zeros(data.shape, bool)
    fills = attrs.get("_FillValue", fill)
    for value in (fills, attrs.get("missing_value")):
        if value is not None:
            for one in as_elements(value):
                mask |= data == one
    least = as_elements(attrs.get("valid_min", ()))
    most = as_elements(attrs.get("valid_max", ()))
    limits = as_elements(attrs.get("valid_range", ()))
    if limits.size == 2:
        least, most = limits[:1], limits[1:]
    if least.size == 1:
        mask |= data < least[0]
    if most.size == 1:
        mask |= data > most[0]
    return mask


def _float_type(dtype: np.dtype[Any], scale: Any, offset: Any) -> np.dtype[Any]:
    """Return the type of physical values, as xarray chooses it.

    A scale, or scale and offset of one type (CF 8.1), give their type, if it is exact enough.
    """
    import numpy as np

    types = [
        np.asarray(each).dtype.newbyteorder("=") for each in (scale, offset) if each is not None
    ]
    if types and all(each.kind == "f" for each in types):
        if len(types) == 2 and types[0] == types[1]:
            return np.dtype("f8") if dtype.kind in "iu" and dtype.itemsize == 4 else types[0]
        return types[0] if offset is None else np.dtype("f8")
    if types:
        return np.dtype("f8")
    if dtype.itemsize <= (4 if dtype.kind == "f" else 2):
        return np.dtype("f4")
    return np.dtype("f8")
