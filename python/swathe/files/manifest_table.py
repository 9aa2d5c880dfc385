"""The manifest that `cut_many` returns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astropy.table import Table

    from swathe.files.manifest_columns import Manifest


class ManifestTable:
    """A manifest that is used as an astropy table, with its columns, rows, masks and methods.

    `meta` and `len()` need no astropy, whose import takes 0.2 s. All else makes the table first.
    """

    def __init__(self, manifest: Manifest) -> None:
        """Take a complete manifest."""
        self._manifest = manifest

    @cached_property
    def table(self) -> Table:
        """The astropy table."""
        return self._manifest.table()

    @property
    def meta(self) -> dict[str, Any]:
        """Counts, seconds and options of the run."""
        meta: dict[str, Any] = (self.table if "table" in vars(self) else self._manifest).meta
        return meta

    @property
    def failed(self) -> Table:
        """The targets that are not `ok`."""
        return self.table[self.table["status"] != "ok"]

    def __len__(self) -> int:
        return len(self.table if "table" in vars(self) else self._manifest.id)

    def __getitem__(self, item: Any) -> Any:
        return self.table[item]

    def __setitem__(self, item: Any, value: Any) -> None:
        self.table[item] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def __repr__(self) -> str:
        return repr(self.table)

    def __str__(self) -> str:
        return str(self.table)

    def __astropy_table__(self, cls: type[Table], copy: bool, **options: Any) -> Table:
        return cls(self.table, copy=copy, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_manifest":
            raise AttributeError(name)
        return getattr(self.table, name)
