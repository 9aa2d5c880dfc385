"""Rows of a piece of a list while it is cut, and as the engine returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from swathe import _swathe
from swathe.core.row_table import DIGEST_BYTES, DictColumn, hexadecimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from swathe.core.row_record import RowStatus
    from swathe.costs.replica_stores import ReplicaStores
    from swathe.cutting.output_paths import CutWork
    from swathe.files.manifest_columns import Manifest
    from swathe.operations.make_results import RowOutcome


class DoneRows(NamedTuple):
    """Rows that the engine returns.

    Attributes:
        rows: row of each in the manifest.
        size: bytes of its result.
        version: version of its object.
        sha256: digest of its result.
        failed: position, status and reason of those that are not `ok`.
        moves: position and store of those read from another store than was planned.
    """

    rows: NDArray[np.int64]
    size: NDArray[np.int64]
    version: DictColumn[str]
    sha256: NDArray[np.uint8]
    failed: list[tuple[int, RowStatus, str]]
    moves: list[tuple[int, int]]

    @classmethod
    def of(
        cls,
        todo: NDArray[np.int64],
        targets: bytes,
        size: bytes,
        sha256: bytes,
        versions: list[str],
        version: bytes,
        failed: list[tuple[int, str, str]],
        moves: list[tuple[int, int]],
    ) -> DoneRows:
        """Take what `Batch.gather` returns; its `targets` are positions in `todo`."""
        return cls(
            todo[np.frombuffer(targets, np.int64)],
            np.frombuffer(size, np.int64),
            DictColumn(versions, np.frombuffer(version, np.int32)),
            np.frombuffer(sha256, np.uint8).reshape(-1, DIGEST_BYTES),
            cast("list[tuple[int, RowStatus, str]]", failed),
            moves,
        )

    def failures(self) -> Iterator[RowOutcome]:
        """Yield the rows that are not `ok`."""
        from swathe.operations.make_results import RowOutcome

        for at, status, reason in self.failed:
            row, version = int(self.rows[at]), self.version.value(at)
            yield RowOutcome(row, status, reason, version=version)

    def outcomes(self) -> Iterator[RowOutcome]:
        """Yield the rows one by one."""
        from swathe.operations.make_results import RowOutcome

        faults = {at: (status, reason) for at, status, reason in self.failed}
        columns = (
            *(self.rows.tolist(), self.size.tolist()),
            *(self.version.list(), hexadecimal(self.sha256)),
        )
        for at, (row, size, version, sha256) in enumerate(zip(*columns, strict=True)):
            status, reason = faults.get(at, ("ok", ""))
            yield RowOutcome(row, status, reason, size, version, sha256)


class PieceFiles(NamedTuple):
    """A piece that is cut.

    Attributes:
        work: targets and results.
        manifest: outcome of each row.
        todo: targets to cut.
        paths: paths of the results to make, by row of the manifest.
        replicas: stores that have copies of the objects.
        is_cut_aside: whether the engine cuts into intermediate files, from which results are made.
    """

    work: CutWork
    manifest: Manifest
    todo: list[int]
    paths: dict[int, str]
    replicas: ReplicaStores | None = None
    is_cut_aside: bool = False

    def enter(self, outcome: RowOutcome) -> None:
        """Enter the outcome of a row."""
        row, status, reason, size, version, sha256 = outcome
        self.manifest.enter(row, status, reason, size, version, sha256)

    def move(self, results: DoneRows) -> None:
        """Enter the sources of rows that were read from another store than was planned."""
        if not results.moves:
            return
        assert self.replicas is not None
        rows = [int(results.rows[at]) for at, _ in results.moves]
        sources = [
            _swathe.redact_url(self.replicas.in_store(self.manifest.source.value(row), store))
            for row, (_, store) in zip(rows, results.moves, strict=True)
        ]
        self.manifest.source = self.manifest.source.put(rows, sources)

    def enter_results(self, results: DoneRows) -> None:
        """Enter rows as the engine returns them."""
        self.manifest.enter_results(results.rows, results.size, results.version, results.sha256)
        for at, status, reason in results.failed:
            version = results.version.value(at)
            self.manifest.enter(int(results.rows[at]), status, reason, version=version)
