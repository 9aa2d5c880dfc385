"""MOCs of datasets, made once for each state of a dataset."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from swathe.catalog.datasets.datasets import no_such
from swathe.datasets.sky_coverage import MocFormat, moc_content, moc_of

if TYPE_CHECKING:
    from swathe.catalog import Catalog

MOST_BYTES = 64 << 20
"""Memory for contents."""


class MocKey(NamedTuple):
    """A state of a dataset, and what is made of it."""

    dataset: str
    added_at: str
    changes: int
    order: int
    form: MocFormat

    @property
    def tag(self) -> str:
        """Return it as an ETag."""
        return f'"{self.added_at}-{self.changes}-{self.order}-{self.form}"'


class Mocs:
    """MOCs in memory, the latest used; one at a time is made."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the catalogue."""
        self._catalog = catalog
        self._lock = threading.Lock()
        self._contents: OrderedDict[MocKey, bytes] = OrderedDict()

    def key(self, dataset: str, order: int, form: MocFormat) -> MocKey:
        """Return the key of a MOC as the dataset is now.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        for name, added_at, changes in self._catalog.changes():
            if name == dataset:
                # A new dataset of the same name begins to count anew.
                return MocKey(name, f"{added_at:%Y%m%dT%H%M%S%f}", changes, order, form)
        raise no_such(dataset)

    def content(self, key: MocKey) -> bytes:
        """Return the MOC of a key.

        Raises:
            DatasetError: If none of its images is on the sky, or the order is invalid.
        """
        with self._lock:
            content = self._contents.pop(key, None)
            if content is None:
                content = moc_content(moc_of(self._catalog, key.dataset, key.order), key.form)
            self._contents[key] = content
            while len(self._contents) > 1 and self._bytes() > MOST_BYTES:
                self._contents.popitem(last=False)
            return content

    def _bytes(self) -> int:
        return sum(map(len, self._contents.values()))
