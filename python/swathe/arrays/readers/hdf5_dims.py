"""Names of the axes of HDF5 arrays, as the NetCDF library or HDF-EOS gives them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5o, h5r

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ONLY_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError)


class Dimensions:
    """Dimension scales of a file, axes of HDF-EOS, and made-up (`phony`) names of others."""

    def __init__(
        self,
        root: h5py.File,
        groups: Iterable[str],
        datasets: Mapping[str, h5py.Dataset],
        axes: Mapping[str, Sequence[tuple[str, int]]],
    ) -> None:
        """Find the scales.

        Args:
            root: the file.
            groups: paths of all groups.
            datasets: all datasets, by path.
            axes: names and lengths (at most 0 if unlimited) that HDF-EOS says of some datasets.
        """
        self._root = root
        self._axes = axes
        self._scales: dict[int, str] = {}
        self._by_id: dict[int, str] = {}
        self._only: set[int] = set()
        self._names: dict[str, list[str]] = {}
        phony: dict[str, list[tuple[int, bool, str]]] = defaultdict(list)
        count = 0
        for path, dataset in datasets.items():
            if _attribute(dataset, "CLASS") != b"DIMENSION_SCALE":
                continue
            parent, _, name = path.rpartition("/")
            address = _address(dataset)
            self._scales[address] = name
            number = _number(dataset)
            self._by_id[count if number is None else number] = name
            count = max(count + 1, -1 if number is None else number + 1)
            text = _attribute(dataset, "NAME")
            if isinstance(text, bytes) and text.startswith(ONLY_DIMENSION):
                self._only.add(address)
            if dataset.shape:
                is_open = dataset.maxshape[0] is None
                phony[parent].append((dataset.shape[0], is_open, name))
        members: dict[str, list[str]] = defaultdict(list)
        for path in datasets:
            members[path.rpartition("/")[0]].append(path)
        for group in _children_first(groups):
            for path in members[group.rstrip("/")]:
                count = self._name_axes(path, datasets[path], phony[group.rstrip("/")], count)

    def is_only_dimension(self, dataset: h5py.Dataset) -> bool:
        """Check whether a dataset is a dimension of NetCDF that has no variable."""
        return _address(dataset) in self._only

    def names(self, path: str, dataset: h5py.Dataset) -> list[str]:
        """Return a name for each axis of a dataset."""
        return self._names.get(path, []) if dataset.shape else []

    def _name_axes(
        self,
        path: str,
        dataset: h5py.Dataset,
        phony: list[tuple[int, bool, str]],
        count: int,
    ) -> int:
        """Name the axes of a dataset; return the next number of a made-up name."""
        if not dataset.shape or self.is_only_dimension(dataset):
            return count
        names = self._scale_names(dataset)
        if not any(names):
            names = self._names_of_fields(path, dataset)
        for axis, side in enumerate(dataset.shape):
            if names[axis]:
                continue
            is_open = dataset.maxshape[axis] is None
            for each in phony:
                if each[:2] == (side, is_open) and each[2] not in names[:axis]:
                    names[axis] = each[2]
                    break
            else:
                names[axis] = f"phony_dim_{count}"
                phony.append((side, is_open, names[axis]))
                count += 1
        self._names[path] = names
        return count

    def _names_of_fields(self, path: str, dataset: h5py.Dataset) -> list[str]:
        """Return the names of HDF-EOS, or empty ones if it says nothing or something else."""
        axes = self._axes.get(path, ())
        fits = len(axes) == dataset.ndim and all(
            length in (side, min(length, 0))
            for (_, length), side in zip(axes, dataset.shape, strict=True)
        )
        return [name for name, _ in axes] if fits else [""] * dataset.ndim

    def _scale_names(self, dataset: h5py.Dataset) -> list[str]:
        """Return the name of the scale of each axis, or an empty one."""
        axes = dataset.ndim
        numbers = _attribute(dataset, "_Netcdf4Coordinates")
        if isinstance(numbers, np.ndarray) and numbers.size == axes:
            names = [self._by_id.get(int(number), "") for number in numbers.ravel()]
            if all(names):
                return names
        if (own := self._scales.get(_address(dataset))) is not None:
            return [own, *[""] * (axes - 1)]
        names = [""] * axes
        if "DIMENSION_LIST" not in dataset.attrs:
            return names
        try:
            lists = dataset.attrs["DIMENSION_LIST"]
            for axis, references in enumerate(lists[:axes]):
                if len(references):
                    scale = h5r.dereference(references[0], dataset.id)
                    names[axis] = self._scales.get(int(h5o.get_info(scale).addr), "")
        except ERRORS:  # damaged links: such axes get made-up names
            return names
        return names


def _children_first(groups: Iterable[str]) -> list[str]:
    """Return groups, each after those in it, as the NetCDF library visits them."""
    inside: dict[str, list[str]] = defaultdict(list)
    for path in groups:
        if path != "/":
            inside[path.rpartition("/")[0] or "/"].append(path)
    order: list[str] = []
    waiting = ["/"]
    while waiting:  # parents before children, the last child first; then turned around
        path = waiting.pop()
        order.append(path)
        waiting += inside[path]
    return order[::-1]


def _attribute(dataset: h5py.Dataset, name: str) -> Any:
    """Return an attribute, texts as bytes; None if it is missing or damaged."""
    try:
        value = dataset.attrs.get(name)
    except ERRORS:
        return None
    return value.encode() if isinstance(value, str) else value


def _number(dataset: h5py.Dataset) -> int | None:
    value = _attribute(dataset, "_Netcdf4Dimid")
    return int(value) if isinstance(value, np.integer) else None


def _address(dataset: h5py.Dataset) -> int:
    return int(h5o.get_info(dataset.id).addr)
