"""Write a cut as ASDF: arrays at their paths, attributes, and the GWCS of the part."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

from swathe.arrays.indexing import run_asdf_rest
from swathe.core.errors import OptionError, OutputError
from swathe.files.array_outputs.asdf_rest import Rest
from swathe.files.array_outputs.gwcs_of_part import system_of_part
from swathe.files.array_outputs.hdf5 import INTERNAL
from swathe.files.array_outputs.source import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.files.array_file import ArrayFile
    from swathe.files.variable import VariableSet

OWN_KEYS = frozenset({"asdf_library", "history", "attributes", "dims"})
"""Keys of the root that each file of a cut has anew."""
MOST_IN_TEXT = 1000
"""Attributes of more numbers are blocks: a text of them takes a minute for each million."""


def asdf_bytes(cutout: VariableSet) -> bytes:
    """Return an ASDF file: the array at its path, others beside it, attributes in `attributes`.

    Of a source that is ASDF the texts, numbers and lists of the tree come too, without their tags;
    other arrays do not.

    Raises:
        ChangedError: If the source is ASDF and another version by now.
        OptionError: If asdf is not installed.
    """
    try:
        import asdf
    except ImportError:
        raise OptionError("ASDF needs asdf; try: pip install 'swathe[asdf]'") from None
    import numpy as np

    tree: dict[str, Any] = {}
    rest = Rest()
    *groups, _ = keys = cutout.path.split("/")[1:]
    if keys[0] in OWN_KEYS:
        raise OutputError(
            f"{cutout.url}, array {cutout.path}: expected an array outside of /{keys[0]}, which a "
            "cut as ASDF has for itself; write .nc"
        )
    attributes, dims = {}, {}
    for name, variable in cutout.variables.items():
        _put(tree, [*groups, name], np.ascontiguousarray(variable.data))
        attributes[name], dims[name] = _plain(variable.attrs), list(variable.dims)
    tree["attributes"] = {"file": _plain(cutout.global_attrs, without="gwcs"), **attributes}
    tree["dims"] = dims
    if cutout.format == "asdf":
        with open_source(cutout, "the rest of its tree") as source:
            system = _system_of(cutout, source)
            if system is not None:
                path, node = system
                _put(tree, path.split("/")[1:], node)
            reads = source[cutout.path].reads
            rest.add(tree, json.loads(run_asdf_rest(reads, cutout.url)), OWN_KEYS)
    file = asdf.AsdfFile(tree)
    file.add_history_entry(cutout.history())
    content = BytesIO()
    file.write_to(content, include_block_index=False)
    return rest.fill(content.getvalue())


def _put(tree: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value at a path of the tree."""
    for key in keys[:-1]:
        tree = tree.setdefault(_key(key), {})
    tree[_key(keys[-1])] = value


def _key(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _plain(attrs: Mapping[str, Any], without: str = "") -> dict[str, Any]:
    """Return attributes as texts, numbers, lists of them, and long vectors of numbers."""
    import numpy as np

    plain: dict[str, Any] = {}
    for name, value in attrs.items():
        if name == without or name in INTERNAL:
            continue
        if isinstance(value, str):
            plain[name] = value
            continue
        array = np.asarray(value)
        is_long = array.size > MOST_IN_TEXT and array.dtype.kind in "biufc"
        plain[name] = np.ascontiguousarray(array) if is_long else array.tolist()
    return plain


def _system_of(cutout: VariableSet, source: ArrayFile) -> tuple[str, Any] | None:
    """Return path and plain node of the GWCS of the part; `None` if its array has none.

    The node is written as it is: no tag of it is resolved here.
    """
    from swathe.files.places.sky import gwcs_path

    box = cutout.box
    if box is None or cutout.shape[-2:] != (box[3], box[2]):
        return None
    array = source[cutout.path]
    path = gwcs_path(array)
    if path is None:
        return None
    return path, system_of_part(array, path, box[:2])
