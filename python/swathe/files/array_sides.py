"""Join the two sides of a cut that crosses the edge of a global grid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swathe.files.array_region import ArrayRegion
from swathe.files.places.coordinates import sureness_by
from swathe.files.variable import SCALING, Variable, physical_values

if TYPE_CHECKING:
    from swathe.files.array_cutout import ArrayCutout

LIMITS = ("valid_min", "valid_max", "valid_range", "actual_range")
PACKING = (*SCALING, "_FillValue", "missing_value", "_Unsigned")


def join_sides(first: ArrayCutout, second: ArrayCutout, axis: int) -> ArrayCutout:
    """Join two cuts of one array along an axis; the second one follows the end of the axis.

    The region begins with the first cut and ends beyond the array. Longitudes go on: those of the
    second side get 360 degrees more or less. If they are packed they become physical values, and
    they lose their valid range.

    Args:
        first: cut at the end of the axis.
        second: cut at its begin.
        axis: number of the axis of the array.
    """
    name = first.dims[axis - sum(one < axis for one in first.region.single)]
    longitudes = {
        word
        for key, each in first.coords.items()
        if sureness_by(key.rpartition("/")[2], each.attrs, "longitude")
        for word in (key, *str(each.attrs.get("bounds", "")).split())
    }

    # A grid may have its first meridian again at its end.
    is_repeated = any(
        _is_same_meridian(first.coords[key], second.coords[key])
        for key in longitudes & first.coords.keys()
        if first.coords[key].dims == (name,)
    )

    def join(key: str, one: Variable, other: Variable) -> Variable:
        import numpy as np

        if name not in one.dims:
            return one
        at = one.dims.index(name)
        masks = [
            np.zeros(each.data.shape, bool) if each.mask is None else each.mask
            for each in (one, other)
        ]
        if is_repeated:
            rest = np.delete(other.data, 0, at)
            masks[1] = np.delete(masks[1], 0, at)
            other = replace(other, data=rest, mask=None)
            if not rest.size:
                return one
        mask = np.concatenate(masks, at)
        if key in longitudes and one.data.dtype.kind in "iuf":
            one, other = _continuous(one, other, at)
        data = np.concatenate([one.data, other.data], at)
        return replace(one, data=data, mask=mask if mask.any() else None)

    def join_all(ones: dict[str, Variable], others: dict[str, Variable]) -> dict[str, Variable]:
        return {key: join(key, one, others[key]) for key, one in ones.items()}

    stop = list(first.region.stop)
    stop[axis] += second.region.stop[axis] - second.region.start[axis] - is_repeated
    return replace(
        first,
        main=join("", first.main, second.main),
        coords=join_all(first.coords, second.coords),
        others=join_all(first.others, second.others),
        region=ArrayRegion(first.region.start, tuple(stop), first.region.single),
    )


def _continuous(one: Variable, other: Variable, axis: int) -> tuple[Variable, Variable]:
    """Return longitudes of two sides as degrees that go on from one to the other."""
    import numpy as np

    attrs = {key: value for key, value in one.attrs.items() if key not in LIMITS}
    data: list[Any] = [one.data, other.data]
    if one.data.dtype.kind != "f" or set(SCALING) & set(attrs):
        data = [physical_values(each).astype("f8") for each in (one, other)]
        attrs = {key: value for key, value in attrs.items() if key not in PACKING}
    last = float(np.take(data[0], -1, axis).ravel()[0])
    first = float(np.take(data[1], 0, axis).ravel()[0])
    turn = 360 * np.rint((last - first) / 360)
    data[1] = data[1] + data[1].dtype.type(turn)
    return Variable(data[0], one.dims, attrs), Variable(data[1], one.dims, attrs)


def _is_same_meridian(one: Variable, other: Variable) -> bool:
    """Check whether longitudes end where others begin, but for whole turns."""
    import numpy as np

    if one.data.dtype.kind not in "iuf" or not one.data.size or not other.data.size:
        return False
    last, first = (physical_values(each).astype("f8") for each in (one, other))
    turns = (last[-1] - first[0]) / 360
    return bool(turns != 0 and np.isclose(turns, np.rint(turns), rtol=0, atol=1e-9))
