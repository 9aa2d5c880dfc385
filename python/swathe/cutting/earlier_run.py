"""Files of an earlier run at the output of `cut_many`: an earlier run, or files of others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.outputs import check_new
from swathe.core.row_record import WITHOUT_RESULT
from swathe.cutting.resume import LEFT, whole_members
from swathe.files.manifest import COLUMNS
from swathe.files.manifest_file import read_part_file
from swathe.stores.registry import local_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from pathlib import Path

    from astropy.table import Table

    from swathe.costs.replica_stores import ReplicaStores
    from swathe.cutting.earlier_rows import EarlierRows
    from swathe.cutting.output_paths import CutWork, OutputPaths
    from swathe.files.manifest_columns import Manifest

STATUS, SOURCE = COLUMNS.index("status"), COLUMNS.index("source")


def check_outputs(
    output_paths: OutputPaths,
    work: CutWork,
    earlier: Table | None,
    sources: Callable[[], Iterable[str]],
    overwrite: bool,
    *,
    is_first: bool,
) -> None:
    """Check that no result or manifest replaces a source, or a file that must be kept.

    Args:
        output_paths: output of the run.
        work: targets and results of the run.
        earlier: manifest of the resumed run, whose own results may be replaced.
        sources: function that returns the local files that are read.
        overwrite: whether other existing files are replaced.
        is_first: whether it is the first piece of the list; then the run has written nothing yet.

    Raises:
        OutputExistsError: If a file exists and `overwrite` is false.
        OutputError: If an output is a source.
    """
    resumes = earlier is not None
    is_archive = output_paths.kind != "folder"
    is_broken_off = is_first and is_archive and output_paths.part.exists()
    if is_broken_off and not (resumes or overwrite):
        raise OutputExistsError(
            f"{output_paths.path}: an interrupted run left {output_paths.part.name}; "
            "give --resume (resume=True in Python) to continue it, or --overwrite "
            "(overwrite=True) to begin anew"
        )
    try:
        check_new(
            output_paths.manifest.parent,
            [output_paths.manifest.name],
            overwrite=overwrite or resumes or not is_first,
            sources=sources,
        )
        if is_archive:
            archive = [output_paths.path.name]
            may_go = overwrite or (resumes and not is_broken_off)
            check_new(output_paths.path.parent, archive, overwrite=may_go, sources=sources)
            return
        own = own_results(earlier, output_paths) if earlier is not None else set()
        results = list(work.paths(output_paths))
        check_new(output_paths.path, own.intersection(results), overwrite=True, sources=sources)
        others = [result for result in results if result not in own]
        check_new(output_paths.path, others, overwrite=overwrite, sources=sources)
    except OutputExistsError as error:
        raise OutputExistsError(f"{error}, or --resume (resume=True) to do only the rest") from None


def check_same_kind(earlier: Table | EarlierRows, output_paths: OutputPaths) -> None:
    """Check that the earlier run had the same kind of results: from one image, or from several.

    Raises:
        OutputError: If it had not.
    """
    from swathe.operations.registry import operation_of

    result_options, meta = output_paths.result_options, earlier.meta
    was = meta.get("operation", "cut"), meta.get("format", "fits")
    if operation_of(was[0]).is_combined != result_options.is_combined:
        raise OutputError(
            f"{output_paths.latest_manifest}: expected a run of operation "
            f"{result_options.operation} and format {result_options.format} to resume, found "
            f"{was[0]} and {was[1]}; give another output"
        )


def check_same_pixels(
    earlier: Table | EarlierRows, output_paths: OutputPaths, options: dict[str, Any]
) -> None:
    """Check that results of the earlier run, which are kept, have the requested pixels.

    Combined results are compared by their inputs.

    Raises:
        OutputError: If mode, fill or planes differ.
    """
    if output_paths.result_options.is_combined:
        return
    for name in ("mode", "fill", "planes"):
        was, now = earlier.meta.get(name), options.get(name)
        if str(was) != str(now):  # NaN differs from itself
            raise OutputError(
                f"{output_paths.latest_manifest}: expected a run with {name} {now} to resume, "
                f"found {was}; give another output"
            )


def own_results(earlier: Table, output_paths: OutputPaths) -> set[str]:
    """Return the paths of an earlier run's results, including those not made yet."""
    return set(_members_of(_results(earlier), output_paths))


def sources_of(targets: Any, files: Iterable[str]) -> list[str]:
    """Return the local files that are read: images, and the table of targets."""
    paths = local_paths(files)
    if isinstance(targets, str | os.PathLike):
        paths.append(os.fsdecode(targets))
    return paths


def sources_before(output_paths: OutputPaths) -> set[str]:
    """Return the sources that an earlier run has read successfully."""
    path = output_paths.latest_manifest
    if output_paths.is_null or not path.exists():
        return set()
    return {row[SOURCE] for row in read_part_file(path) if row[STATUS] == "ok"}


def keep_earlier(
    manifest: Manifest,
    work: CutWork,
    earlier: Table | None,
    output_paths: OutputPaths,
    end: int | None = None,
    stores: ReplicaStores | None = None,
) -> tuple[list[int], int | None]:
    """Copy the outcome of an earlier run into the manifest: its results and its errors.

    A result of a copy in another of the `stores` is as good; the manifest then names that copy. If
    the archive was checked before, `end` is its length up to which it is kept, and `earlier` has no
    done results that it lacks.

    Returns:
        The rows whose results are to be made, and the length in bytes up to which an archive is
        kept; `None` for a new run.

    Raises:
        OutputError: If an archive that was checked before holds a result of another source.
    """
    rows = work.paths(output_paths)
    if earlier is None:
        return list(rows.values()), None
    results = _results(earlier)
    complete_rows = _take_inputs(manifest, work, earlier)
    _keep_failures(
        manifest,
        {member: rows.get(member) for member in _members_of(results, output_paths)},
        results,
    )
    rows_by_path = {}
    for earlier_row in results[results["status"] == "ok"]:
        row = rows.get(str(earlier_row["path"]))
        if row is not None and _is_same(manifest, work, row, earlier_row, complete_rows, stores):
            rows_by_path[str(earlier_row["path"])] = earlier_row
    sizes = {path: int(earlier_row["bytes"]) for path, earlier_row in rows_by_path.items()}
    sound: Container[str]
    if end is not None:
        sound = sizes
        if remainder := results["path"][results["status"] == LEFT].tolist():
            raise OutputError(
                f"{output_paths.path}: expected no result {remainder[0]}, found one of a target "
                "that was taken off the list in an earlier run; give another output"
            )
        paths = results["path"][results["status"] == "ok"].tolist()
        if other := next(
            (path for path in paths if path in rows and path not in rows_by_path), None
        ):
            raise OutputError(
                f"{output_paths.path}: expected the sources of the earlier run, found another for "
                f"{other}, which the archive holds; give another output"
            )
    elif output_paths.kind == "folder":
        sound = {path for path, size in sizes.items() if _has_size(output_paths.path / path, size)}
    else:
        extensions = output_paths.result_options.kind.hdus
        sound, end = whole_members(
            output_paths.archive, output_paths.kind, sizes.get, rows, extensions
        )
    todo, sources = [], {}
    for path, row in rows.items():
        if path not in sound or path not in rows_by_path:
            todo.append(row)
            continue
        earlier_row = rows_by_path[path]
        size, version = int(earlier_row["bytes"]), str(earlier_row["source_version"])
        manifest.enter(row, "ok", "", size, version, str(earlier_row["sha256"]))
        if work.results is None and str(earlier_row["source"]) != manifest.source.value(row):
            sources[row] = str(earlier_row["source"])
    if sources:
        manifest.source = manifest.source.put([*sources], [*sources.values()])
    for row in work.inputs(todo) if work.results is not None else ():
        if manifest.is_ok(row):
            manifest.enter(row, "error", "interrupted")
    return todo, end


def _results(earlier: Table) -> Table:
    """Return the rows of a manifest that are results; for stacks and rgb the last ones."""
    return earlier[int(earlier.meta.get("images", 0)) :]


def _is_same(
    manifest: Manifest,
    work: CutWork,
    row: int,
    earlier_row: Any,
    complete_rows: set[int],
    stores: ReplicaStores | None,
) -> bool:
    """Check whether an earlier result has the same source or a copy of it, or the same inputs."""
    if work.results is None:
        source, earlier_source = manifest.source.value(row), str(earlier_row["source"])
        return source == earlier_source or (
            stores is not None and stores.are_copies(source, earlier_source)
        )
    result = row - work.first
    is_whole = complete_rows.issuperset(work.results.inputs[result])
    return is_whole and str(earlier_row["source_version"]) == work.results.digests[result]


def _take_inputs(manifest: Manifest, work: CutWork, earlier: Table) -> set[int]:
    """Copy the outcome of images of combined results; return those that need not be cut again."""
    if work.results is None:
        return set()
    images = earlier[: int(earlier.meta.get("images", 0))]
    by_name = {name: row for row, name in enumerate(work.rows.name)}
    rows = {name: by_name.get(name) for name in _names_of(images)}
    _keep_failures(manifest, rows, images)
    complete_rows = set()
    for row, earlier_row in zip(rows.values(), images, strict=True):
        if row is None or str(earlier_row["source"]) != manifest.source.value(row):
            continue
        if earlier_row["status"] == "ok":
            manifest.enter(row, "ok", version=str(earlier_row["source_version"]))
        if earlier_row["status"] in ("ok", "no-overlap"):
            complete_rows.add(row)
    return complete_rows


def _names_of(earlier: Table) -> list[str]:
    """Return the names of results from their ids, since a failed one has no path."""
    from swathe.files.targets.result_names import unique_names

    return unique_names(earlier["id"].tolist())


def _members_of(results: Table, output_paths: OutputPaths) -> list[str]:
    """Return the paths of results in the output; those of a piece of a list are in the table."""
    if "member" in results.colnames:
        members: list[str] = results["member"].tolist()
        return members
    return [output_paths.member(name) for name in _names_of(results)]


def _keep_failures(manifest: Manifest, rows: dict[str, int | None], earlier: Table) -> None:
    """Copy the reasons of failed rows of an earlier run; `rows` are in its order."""
    columns = (earlier[name].tolist() for name in ("status", "reason", "source", "source_version"))
    for row, status, reason, source, version in zip(rows.values(), *columns, strict=True):
        if status in WITHOUT_RESULT and row is not None and source == manifest.source.value(row):
            # It is valid until the row is tried again: this run may be stopped before that.
            manifest.enter(row, status, reason, version=version)


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
