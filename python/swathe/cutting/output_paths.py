"""Output of `cut_many`: its results, its manifest, and hidden files during the run."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from swathe.core.errors import OutputError
from swathe.core.folder_output import refuse_in_zarr
from swathe.core.outputs import NULL, output_kind, unfinished_results
from swathe.files.manifest import MANIFEST, manifest_path
from swathe.files.manifest_file import piece_path
from swathe.operations.array_results import FITS_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swathe._swathe import OutputKind
    from swathe.core.row_table import RowTable
    from swathe.operations.make_results import CombinedResults
    from swathe.operations.registry import ResultOptions


PART_NAME = ".swathe-cut-many.part"
"""Folder of cutouts from which results are made; for an archive it is `.NAME.cut.part`."""


class OutputPaths(NamedTuple):
    """Output of a run, and its manifest.

    Attributes:
        path: folder or archive.
        kind: kind of the output.
        manifest: final name of the manifest.
        run_manifest: name of the manifest during the run. An archive has a separate file, since it
            has a hidden name until it is complete.
        result_options: options of the results.
        overwrite: whether existing files with the names of results are replaced.
        suffixes: suffix of the results of each file of arrays, if they have its format.
    """

    path: Path
    kind: OutputKind
    manifest: Path
    run_manifest: Path
    result_options: ResultOptions
    overwrite: bool = False
    suffixes: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, path: Path, result_options: ResultOptions) -> OutputPaths:
        """Return the paths of an output.

        Raises:
            OutputError: If the output cannot hold such results, or is inside a Zarr.
        """
        kind = output_kind(path)
        if kind == "null":
            if not result_options.is_plain:
                raise OutputError(
                    f"{NULL}: expected operation cut and format fits, found "
                    f"{result_options.operation} and {result_options.format}"
                )
            return cls(path, kind, path, path, result_options)
        if result_options.format != "fits" and kind == "fits":
            raise OutputError(
                f"{path}: expected a folder, *.zip or *.tar for format {result_options.format}, "
                f"found *{path.suffix}, which holds fits"
            )
        manifest = manifest_path(path, kind)
        refuse_in_zarr(manifest)
        if kind == "folder":
            return cls(path, kind, manifest, manifest, result_options)
        part_path = path.with_name(f".{path.name}.{MANIFEST}.part")
        return cls(path, kind, manifest, part_path, result_options)

    @property
    def cut_into(self) -> Path:
        """Return the folder the engine cuts to: the output, or a folder of intermediate files."""
        if self.result_options.is_plain:
            return self.path
        if self.kind == "folder":
            return self.path / PART_NAME
        return self.path.with_name(f".{self.path.name}.cut.part")

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Make the folder of intermediate files if it is needed, and remove it at the end."""
        if self.result_options.is_plain:
            yield
            return
        # A killed run may have left it; a link of that name is not our folder.
        shutil.rmtree(self.cut_into, ignore_errors=True)
        try:
            self.cut_into.mkdir(parents=True)
        except OSError as error:
            raise OutputError(
                f"{self.cut_into}: cannot make the folder: {error.strerror}"
            ) from error
        try:
            yield
        finally:
            shutil.rmtree(self.cut_into, ignore_errors=True)

    @property
    def is_null(self) -> bool:
        """Check whether results are dropped."""
        return self.kind == "null"

    def member(self, name: str, source: str = "") -> str:
        """Return the path of a result of a file in the output."""
        if self.kind == "fits":
            return name
        return name + (self.result_options.suffix or self.suffixes.get(source, FITS_SUFFIX))

    def members(self, rows: RowTable) -> list[str]:
        """Return the paths of the results of some rows in the output."""
        pairs = zip(rows.name, rows.source.list(), strict=True)
        return [self.member(name, source) for name, source in pairs]

    @property
    def part(self) -> Path:
        """Return the path of the archive while it is written."""
        return self.path.with_name(f".{self.path.name}.part")

    def hidden_files(self) -> Iterator[Path]:
        """Yield the existing files among those that a run writes, and then replaces or removes."""
        piece = piece_path(self.run_manifest)
        if self.kind == "folder":
            yield from unfinished_results(self.path)
            yield from filter(os.path.lexists, (piece,))
        else:
            yield from filter(os.path.lexists, (self.part, self.run_manifest, piece))
        if not self.result_options.is_plain:
            yield from self.cut_into.rglob("*")

    @property
    def archive(self) -> Path:
        """Return the archive, complete or unfinished."""
        return self.part if self.part.exists() else self.path

    @property
    def latest_manifest(self) -> Path:
        """Return the manifest of the last run."""
        return self.run_manifest if self.run_manifest.exists() else self.manifest


@dataclass(frozen=True)
class CutWork:
    """Targets of a run, and the results made from several of them.

    Attributes:
        rows: targets.
        results: results from several images; their rows of the manifest follow the targets' rows.
        pixel_deg: pixel size of these results.
    """

    rows: RowTable
    results: CombinedResults | None = None
    pixel_deg: float | None = None

    @property
    def first(self) -> int:
        """Return the row of the manifest of the first result."""
        return 0 if self.results is None else len(self.rows)

    @property
    def ids(self) -> list[str]:
        """Return the ids of all rows of the manifest."""
        return self.rows.id if self.results is None else [*self.rows.id, *self.results.ids]

    def paths(self, output_paths: OutputPaths) -> dict[str, int]:
        """Return the rows of the manifest by path of their result."""
        if self.results is None:
            names = output_paths.members(self.rows)
        else:
            names = list(map(output_paths.member, self.results.names))
        return {name: self.first + at for at, name in enumerate(names)}

    def inputs(self, rows: list[int]) -> list[int]:
        """Return the targets from which results are made, given the results' rows."""
        if self.results is None:
            return rows
        return self.results.rows_of([row - self.first for row in rows])
