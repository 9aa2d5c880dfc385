"""The run of a list: read in pieces, each cut into the same output."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.errors import OptionError, OutputError, TargetsError
from swathe.core.outputs import refuse_if_sources, remove_part_files
from swathe.cutting.cut_run import CutRun
from swathe.cutting.earlier_rows import EarlierRows, earlier_rows_path
from swathe.cutting.earlier_run import (
    check_outputs,
    check_same_kind,
    check_same_pixels,
    keep_earlier,
    sources_of,
)
from swathe.cutting.output_paths import CutWork, OutputPaths
from swathe.files.manifest import read_manifest
from swathe.files.manifest_columns import Manifest
from swathe.files.manifest_file import LongManifest, ManifestFile, is_in_pieces
from swathe.files.manifest_table import ManifestTable
from swathe.files.targets.arrays import FITS_NAMES
from swathe.files.targets.pieces import RowPiece, TablePiece, read_pieces, whole_objects
from swathe.files.targets.result_names import PieceNames, TextSet
from swathe.stores.staging.on_disk import faults_on_tape

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from astropy.table import Table

    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.row_table import DictColumn, RowTable
    from swathe.costs.replica_stores import ReplicaStores
    from swathe.costs.time_left import CutProgress
    from swathe.files.targets.columns import ListOptions
    from swathe.operations.registry import ResultOptions
    from swathe.stores.staging.hold import TapeHold


@dataclass
class GivenList:
    """The list of a user.

    Attributes:
        targets: the list, as in `cut_many`.
        choices: values for columns that it lacks.
        settings: mode, planes, threads and stores of the run.
        counts: number of targets by store, if there are several.
        replicas: files of the last piece that was read, in all of the stores.
        stores: the stores, if there are several.
        notes: which of the stores are not used, and why.
        before: sources of an earlier run, which are used again.
        suffix: suffix of all results of arrays; `None`: that of the format of their source.
        suffixes: suffix of results, by file of arrays.
        takes_arrays: whether results are made of arrays.
        hold: what brings objects from tape and keeps them on disk; `None`: they are faults.
    """

    targets: Any
    choices: ListOptions
    settings: dict[str, Any]
    counts: dict[str, int] | None = None
    replicas: list[str] = field(default_factory=list)
    stores: ReplicaStores | None = None
    notes: list[str] = field(default_factory=list)
    before: Container[str] = ()
    suffix: str | None = None
    suffixes: dict[str, str] = field(default_factory=dict)
    takes_arrays: bool = True
    hold: TapeHold | None = None

    def pieces(self, result_options: ResultOptions) -> Iterator[RowPiece]:
        """Yield the list in pieces.

        Raises:
            TargetsError: If the list cannot be read.
        """
        names, pieces = PieceNames(), read_pieces(self.targets, self.choices)
        hold = self.hold
        if hold is None or result_options.is_combined or self.settings["stores"]:
            return whole_objects(
                pieces, lambda piece: self._read(result_options, names, piece, self._faults_of)
            )
        return (self._tape_piece(result_options, names, piece, hold) for piece in pieces)

    def _tape_piece(
        self,
        result_options: ResultOptions,
        names: PieceNames,
        piece: TablePiece,
        hold: TapeHold,
    ) -> RowPiece:
        """Return the rows of a piece; those of objects on tape are read again once these have come.

        All are waited for now if one is not FITS by name: what is in it decides how the first
        results are named.
        """
        later: frozenset[str] = frozenset()

        def without_later(files: Sequence[str]) -> Mapping[str, str]:
            nonlocal later
            later = hold.from_tape(files)
            if not all(map(FITS_NAMES.search, later)):
                later = frozenset()
                return self._faults_of(files)
            # Replaced when they have come.
            return dict.fromkeys(later, "on tape")

        rows = self._read(result_options, names, piece, without_later)

        def read_again(news: frozenset[str]) -> RowTable:
            def faults_of(files: Sequence[str]) -> Mapping[str, str]:
                others = dict.fromkeys(set(files).difference(news), "read before, or on tape")
                return others | hold.faults

            return self._read(result_options, lambda _: rows.name, piece, faults_of)

        return RowPiece(rows, piece.is_last, None, later, read_again)

    def _read(
        self,
        result_options: ResultOptions,
        names: Callable[[list[str]], list[str]],
        piece: TablePiece,
        faults_of: Callable[[Sequence[str]], Mapping[str, str]],
    ) -> RowTable:
        from swathe.costs.replicas import mix_targets
        from swathe.files.file import sky_of
        from swathe.files.targets.target_list import read_targets
        from swathe.operations.make_results import of_bands

        settings, is_combined = self.settings, result_options.is_combined
        if is_combined and not piece.is_last:
            raise TargetsError(
                f"a stack or rgb: expected a list of up to {len(piece.table.table):,} targets, "
                "found more; divide the list by group"
            )
        common: dict[str, Any] = {
            "planes": settings["planes"],
            "is_combined": is_combined,
            "first": piece.first,
            "tree_of": self._tree_of,
        }
        if settings["stores"]:
            mixture = mix_targets(
                piece.table,
                settings["stores"],
                self.choices,
                mode=settings["mode"],
                threads=settings["threads"],
                before=self.before,
                # Of several copies one on disk is read.
                faults_of=faults_of if len(settings["stores"]) == 1 else faults_on_tape,
                **common,
            )
            rows = mixture.rows
            rows.name = names(rows.id)
            self.replicas = mixture.replicas
            self.notes = list(dict.fromkeys([*self.notes, *mixture.notes]))
            lacking = self.stores.lacking if self.stores is not None else frozenset()
            self.stores = replace(mixture.stores, lacking=lacking | mixture.stores.lacking)
            counts = self.counts or dict.fromkeys(mixture.counts, 0)
            self.counts = {store: counts[store] + mixture.counts[store] for store in counts}
        else:
            common |= {"choices": self.choices, "names": names, "faults_of": faults_of}
            rows = read_targets(piece.table, sky_of, **common)
        return of_bands(rows, result_options.bands) if result_options.bands else rows

    def _faults_of(self, files: Sequence[str]) -> Mapping[str, str]:
        """Return which files are on tape only, once those that can be had have come from there."""
        if self.hold is None:
            return faults_on_tape(files)
        self.hold.bring(files)
        return self.hold.faults

    def _tree_of(self, file: str) -> ArrayTree | None:
        """Return the arrays of a file, and note the suffix of results in its format.

        Raises:
            OptionError: If it has arrays, and no results are made of them.
        """
        from swathe.files.array_outputs import suffix_of
        from swathe.files.file import arrays_of

        tree = arrays_of(file)
        if tree is None:
            return None
        if not self.takes_arrays:
            raise OptionError(
                f"{file}: expected images of FITS to combine, or as in the first part of the "
                "list, found arrays: choose operation cut, and the format source"
            )
        self.suffixes[file] = self.suffix or suffix_of(tree.format)
        return tree

    def sources(self, rows: RowTable) -> list[str]:
        """Return the local files that are read for some rows, and the list itself."""
        return sources_of(self.targets, self.replicas or rows.source.values)


@dataclass
class ListRun:
    """The run of a list.

    Attributes:
        output_paths: output.
        target_list: list.
        settings: mode, fill, planes, threads and stores.
        progress: whether to show a bar, or what receives the progress.
        start_s: time when the run was started.
        overwrite: whether files are replaced.
        resume: whether results of an earlier run are kept.
    """

    output_paths: OutputPaths
    target_list: GivenList
    settings: dict[str, Any]
    progress: bool | Callable[[CutProgress], object]
    start_s: float
    overwrite: bool
    resume: bool
    _files_read: TextSet = field(default_factory=TextSet, init=False)
    _rereads: int = field(default=0, init=False)
    _waits_s: float = field(default=0.0, init=False)

    def cut(self, first: RowPiece, others: Iterator[RowPiece]) -> ManifestTable | LongManifest:
        """Cut all pieces; return the manifest.

        Raises:
            KeyboardInterrupt: After Ctrl-C, when the manifest is written.
        """
        self._check(first)
        earlier = self._earlier(first)
        paths = self.output_paths
        manifest_file = ManifestFile(None if paths.is_null else paths.run_manifest, {})
        run = CutRun(paths, self.settings, manifest_file, self.progress, self.start_s)
        is_whole = False
        next_rows = first.next_rows
        try:
            self._cut_piece(run, first, earlier, is_only=first.is_last)
            # Its memory is needed for the next piece.
            first = first._replace(rows=first.rows[:0], next_rows=None, read_again=None)
            for piece in others:
                next_rows = piece.next_rows
                self._cut_piece(run, piece, earlier, is_only=False)
            is_whole = True
        except KeyboardInterrupt:
            if next_rows is not None and run.output is not None:
                self._enter_remaining(run, next_rows, earlier)
            raise
        finally:
            if self._rereads:
                manifest_file.meta["notes"] = [
                    *manifest_file.meta.get("notes", []),
                    f"{self._rereads:,} times a file was read again for another part of the list: "
                    "it is not sorted by file, or has too many targets of one file; each part was "
                    "planned alone",
                ]
            run.close()
            if isinstance(earlier, EarlierRows):
                earlier.close(is_whole=is_whole)
        run.end()
        return manifest_file.result(None if paths.is_null else paths.manifest)

    def _check(self, first: RowPiece) -> None:
        """Check that the output can take a list that is longer than its first piece.

        Raises:
            OutputError: If it cannot.
        """
        if first.is_last:
            return
        path, count = self.output_paths.path, len(first.rows)
        if self.output_paths.kind == "fits":
            raise OutputError(
                f"{path}: expected up to about {count:,} targets for a FITS file, found more; "
                "write a .zip or .tar"
            )
        if self.output_paths.kind == "folder" and self.overwrite:
            raise OutputError(
                f"{path}: expected a new folder for more than about {count:,} targets, found "
                "overwrite: sources that are read later could be replaced; write a .zip or .tar"
            )

    def _earlier(self, first: RowPiece) -> Table | EarlierRows | None:
        """Return the earlier run that is resumed, if there is one."""
        paths = self.output_paths
        if paths.is_null:
            return None
        refuse_if_sources(paths.hidden_files(), partial(self.target_list.sources, first.rows))
        if not self.resume:
            return None
        earlier: Table | EarlierRows | None
        is_combined = paths.result_options.is_combined
        if not paths.latest_manifest.exists():
            earlier = None
        elif is_combined or (first.is_last and not is_in_pieces(paths.latest_manifest)):
            earlier = read_manifest(paths.latest_manifest)
        else:
            earlier = EarlierRows(paths)
        if earlier is not None:
            check_same_kind(earlier, paths)
            check_same_pixels(earlier, paths, _pixel_options(self.settings))
        return earlier

    def _cut_piece(
        self,
        run: CutRun,
        piece: RowPiece,
        earlier: Table | EarlierRows | None,
        *,
        is_only: bool,
    ) -> None:
        is_first = run.output is None
        self._leave_out_waits(run)
        earlier, end = _earlier_of(piece.rows, earlier, run.output_paths)
        work = self._work(piece.rows, earlier)
        paths = run.output_paths
        if not paths.is_null:
            sources = partial(self.target_list.sources, piece.rows)
            check_outputs(paths, work, earlier, sources, self.overwrite, is_first=is_first)
        if is_first:
            if paths.kind == "folder":
                remove_part_files(paths.path)
            if not self.resume and not paths.is_null:
                earlier_rows_path(paths).unlink(missing_ok=True)
            replaces = self.overwrite or (paths.kind == "folder" and earlier is not None)
            run.output_paths = paths = paths._replace(overwrite=replaces)
            run.manifest_file.meta |= {
                "output": paths.path.name,
                **_pixel_options(self.settings),
                **_run_options(paths.result_options, work),
                "swathe": _swathe.__version__,
            }
        meta = run.manifest_file.meta
        if self.target_list.counts is not None:
            # As planned; when a piece has ended, as it was.
            meta.setdefault("stores", self.target_list.counts)
            meta["notes"] = list(dict.fromkeys([*meta.get("notes", []), *self.target_list.notes]))
        self._count_rereads(piece.rows.source)
        manifest = Manifest(work.ids, _sources(work), meta, _names(work, paths))
        results, end = keep_earlier(manifest, work, earlier, paths, end, self.target_list.stores)
        todo = work.inputs(results)
        waits = len(results) + (len(todo) if work.results is not None else 0)
        meta["done_before"] = meta.get("done_before", 0) + len(work.ids) - waits
        if work.results is not None:
            without_faults(manifest, work.rows, work.results.unused_rows(len(work.rows)))
        stores = self.target_list.stores
        try:
            try:
                for rows, some in self._parts(run, piece, work.rows, results):
                    work = replace(work, rows=rows)
                    todo = without_faults(manifest, rows, work.inputs(some))
                    is_whole = is_only and len(some) == len(results)
                    run.cut(work, manifest, some, todo, end, stores, is_only=is_whole)
            finally:
                if run.output is not None:
                    run.end_piece(manifest, is_only=is_only)
        except KeyboardInterrupt as error:
            if run.output is None:
                if earlier is not None:
                    manifest.write(paths.latest_manifest)
                elif paths.kind == "folder":
                    manifest.write(paths.manifest)
                raise
            counts = run.manifest_file.counts
            raise KeyboardInterrupt(
                f"{counts['ok']:,} of {sum(counts.values()):,} targets are done"
                + ("" if piece.is_last else " in the part of the list that was read")
            ) from error

    def _parts(
        self, run: CutRun, piece: RowPiece, rows: RowTable, results: list[int]
    ) -> Iterator[tuple[RowTable, list[int]]]:
        """Yield the results that can be made now, and those of tape when their objects have come.

        With each come all rows of the piece. Only those that these results need are complete.
        """
        hold = self.target_list.hold
        if not piece.later or hold is None or piece.read_again is None:
            yield rows, results
            return
        now: list[int] = []
        on_tape: dict[str, list[int]] = {}
        for row in results:
            source = rows.source.value(row)
            (on_tape.setdefault(source, []) if source in piece.later else now).append(row)
        if now or not on_tape:
            yield rows, now
        for news in hold.arrivals(on_tape):
            self._leave_out_waits(run)
            yield (
                piece.read_again(news),
                sorted(chain.from_iterable(on_tape[name] for name in news)),
            )

    def _leave_out_waits(self, run: CutRun) -> None:
        """Leave the time that objects on tape were waited for out of the time of the run."""
        hold = self.target_list.hold
        if hold is not None:
            run.leave_out(hold.wait_s - self._waits_s)
            self._waits_s = hold.wait_s

    def _enter_remaining(
        self, run: CutRun, rows: RowTable, earlier: Table | EarlierRows | None
    ) -> None:
        """Enter rows that were read, and not cut because the run is interrupted."""
        meta = run.manifest_file.meta
        earlier, end = _earlier_of(rows, earlier, run.output_paths)
        work = self._work(rows, earlier)
        manifest = Manifest(work.ids, _sources(work), meta, _names(work, run.output_paths))
        stores = self.target_list.stores
        todo, _ = keep_earlier(manifest, work, earlier, run.output_paths, end, stores)
        meta["done_before"] = meta.get("done_before", 0) + len(work.ids) - len(todo)
        run.manifest_file.end_piece(manifest, is_only=False)
        meta.update(run.manifest_file.counts)

    def _work(self, rows: RowTable, earlier: Table | None) -> CutWork:
        """Return the work to do; a resumed run uses the pixel size of the earlier run."""
        from swathe.operations.make_results import results_of

        result_options = self.output_paths.result_options
        if not result_options.is_combined:
            return CutWork(rows)
        before = None if earlier is None else earlier.meta.get("pixel_deg")
        return CutWork(*results_of(rows, result_options, self.settings["planes"], before))

    def _count_rereads(self, source: DictColumn[str]) -> None:
        """Count the objects that an earlier piece read, too."""
        files = source.few().values
        self._rereads += int(self._files_read.contains(files).sum())
        self._files_read.add(files)


def _earlier_of(
    rows: RowTable, earlier: Table | EarlierRows | None, paths: OutputPaths
) -> tuple[Table | None, int | None]:
    """Return the earlier manifest of some rows, and where the archive ends that it describes."""
    if isinstance(earlier, EarlierRows):
        return earlier.table(paths.members(rows)), earlier.end
    return earlier, None


def _sources(work: CutWork) -> DictColumn[str]:
    """Return the source of each row of the manifest."""
    from swathe.core.row_table import DictColumn

    sources = work.rows.source.map(_swathe.redact_url)
    # A result from several images has no source of its own.
    others = DictColumn.same("", len(work.ids) - len(sources))
    return DictColumn.concatenate([sources, others]) if len(others) else sources


def _names(work: CutWork, output_paths: OutputPaths) -> list[str]:
    """Return the path of each row's result; empty for images of combined results."""
    return [*[""] * work.first, *work.paths(output_paths)]


def _pixel_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options that choose pixels, as the manifest records them; without absent ones."""
    fill, planes = settings["fill"], settings["planes"]
    options: dict[str, Any] = {"mode": settings["mode"]}
    if fill is not None:
        options["fill"] = float(fill)
    if planes is not None:
        options["planes"] = list(planes)
    return options


def _run_options(result_options: ResultOptions, work: CutWork) -> dict[str, Any]:
    """Return the options of the run, as the manifest records them."""
    options = {
        "operation": result_options.operation,
        "format": result_options.format,
        **result_options.own,
    }
    if result_options.bands:
        options["bands"] = list(result_options.bands)
    if work.results is not None:
        options |= {"images": len(work.rows), "pixel_deg": work.pixel_deg}
    return options


def without_faults(manifest: Manifest, rows: RowTable, todo: list[int]) -> list[int]:
    """Record why some rows cannot be cut; return the others."""
    faults = rows.faults()
    for row in todo:
        if row in faults:
            manifest.enter(row, *faults[row])
    return [row for row in todo if row not in faults]
