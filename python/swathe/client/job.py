"""A job on a remote portal: its state, its rows, its results."""

from __future__ import annotations

import csv
import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from swathe.catalog.records.jobs import END_PHASES, count_finished_rows
from swathe.client.connection import content_blocks, read_content
from swathe.client.group_folders import unpack_groups
from swathe.client.manifests import (
    lines_of,
    manifest_fault,
    manifest_of,
    manifest_table,
    names_in,
)
from swathe.client.results import ResultFile, ResultList, compare
from swathe.core.errors import OutputError, SourceError, SwatheError
from swathe.core.format import seconds_text, size_text, time_left_text
from swathe.core.outputs import (
    check_new,
    check_output,
    make_folder,
    open_part_file,
    output_kind,
    publish,
    sole_writer,
    write_file,
)
from swathe.core.progress import can_show_progress, progress_bar
from swathe.files.manifest import (
    COLUMNS,
    MANIFEST,
    manifest_meta,
    manifest_path,
    rows_as_tables,
)
from swathe.files.manifest_file import LongManifest
from swathe.stores.registry import local_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astropy.table import Table

    from swathe.client.connection import PortalConnection
    from swathe.core.row_record import RowStatus
    from swathe.jobs.types import Job, Row


WAIT_S = 20.0
"""Longest time that one request waits for a change of a job."""
PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
"""Least time between two requests of `wait`; it doubles while the portal answers at once."""
NOTEBOOK_S = 5.0
"""Timeout of the request that a notebook makes to show a job."""
PROGRESS_S = 0.5
"""Interval between requests for progress, if a progress bar is shown."""
PARALLEL_FILES = 4
"""Number of files fetched in parallel."""
WAITING_FILES = 1000
"""Number of files that wait for one of these fetches."""
MOST_MANIFEST_BYTES = 512 << 20
"""Maximum size of a manifest: more than that of a million rows."""
MOST_ROWS = 1_000_000
"""Maximum number of rows of a job that is fetched, whatever the portal says."""
ROW_BYTES = 16 << 10
"""Allowed size of an archive beside the results, for each row of the job: headers, manifest."""
NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")


class RemoteJob:
    """A job on a portal."""

    def __init__(self, connection: PortalConnection, job_id: str) -> None:
        """Take the connection and the id. Users call `submit` or `job` of a portal."""
        self._connection, self.id = connection, job_id
        self._path = f"jobs/{quote(job_id, safe='')}"

    def __repr__(self) -> str:
        return f"<RemoteJob {self.id} on {self._connection.url}>"

    def _repr_html_(self) -> str:
        """Return the status of the job as HTML, or the error if the portal is slow."""
        from swathe.files.notebook import page

        facts: dict[str, Any] = {"job": self.id, "portal": self._connection.url}
        try:
            content = self._connection.request_once("GET", self._path, timeout=NOTEBOOK_S)
            status = self._job_of(content)
        except SwatheError as error:
            return page("Job", {**facts, "status": error})
        counts = ", ".join(f"{count:,} {name}" for name, count in status.totals.items() if count)
        facts |= {"name": status.name, "phase": status.phase}
        total = f"{sum(status.totals.values()):,}: {counts}"
        facts |= {f"{status.unit}s": total, "results": size_text(status.bytes)}
        if status.predicted:
            facts["predicted"] = seconds_text(status.predicted["median_s"])
        if status.actual:
            facts["actual"] = seconds_text(status.actual["work_s"])
        if status.left:
            facts["left"] = time_left_text(**status.left)
        facts |= {"error": status.error} if status.error else {}
        return page("Job", facts)

    def _job_of(self, content: Mapping[str, Any]) -> Job:
        from swathe.client.answers import job_of

        return job_of(content, self._connection.url)

    def status(self) -> Job:
        """Return the status: phase, counts, predicted and actual cost."""
        return self._job_of(self._connection.get_json(self._path))

    def log(self, group: str) -> dict[str, Any]:
        """Return what became of a group of an algorithm's job, with its log.

        Args:
            group: name of the group, the id of its row.

        Raises:
            NoSuchResultError: If there is no such group, or it was not run yet.
        """
        return self._connection.get_json(f"{self._path}/group", name=group)

    def wait(self, timeout_s: float | None = None, *, progress: bool = True) -> Job:
        """Return the status when the job has ended, or after a timeout.

        Args:
            timeout_s: Maximum time to wait; by default unlimited.
            progress: Whether to show a progress bar, if standard error is a terminal.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        status, pause_s = self.status(), PAUSE_S
        most_s = PROGRESS_S if progress and can_show_progress() else WAIT_S
        verb = "cutting" if status.groups is None else "running groups"
        with progress_bar(verb, progress, sum(status.totals.values())) as show:
            while True:
                show(
                    count_finished_rows(status.totals),
                    time_left_text(**status.left) if status.left else "",
                )
                left_s = WAIT_S if end is None else end - time.monotonic()
                if status.phase in END_PHASES or left_s <= 0:
                    return status
                wait_s = min(left_s, most_s)
                asked_s = time.monotonic()
                content = self._connection.get_json(self._path, wait=wait_s, phase=status.phase)
                status = self._job_of(content)
                # A portal that answers at once is not asked again at once.
                took_s = time.monotonic() - asked_s
                if took_s < pause_s and status.phase not in END_PHASES:
                    time.sleep(min(pause_s, wait_s) - min(took_s, wait_s))
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                else:
                    pause_s = PAUSE_S

    def rows(self, status: RowStatus | None = None) -> Iterator[Row]:
        """Yield the rows in the order of the targets: those of one status, or all."""
        from swathe.client.answers import entry, row_of

        start: int | None = 0
        while start is not None:
            if start > MOST_ROWS:
                raise SourceError(
                    f"{self._connection.url}: expected at most {MOST_ROWS:,} rows, found more"
                )
            query: dict[str, Any] = {"start": start, "limit": 10_000}
            page = self._connection.get_json(
                f"{self._path}/rows", **query, **_not_none(status=status)
            )
            contents = entry(page, "rows", list, self._connection.url)
            yield from (row_of(content, self._connection.url) for content in contents)
            following = page.get("next")
            if following is not None and (type(following) is not int or following <= start):
                raise SourceError(
                    f"{self._connection.url}: expected rows after {start}, found those from "
                    f"{str(following)[:50]} again"
                )
            start = following

    def manifest(
        self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> Table:
        """Return the outcome of every row as a table. Write it if a path is given."""
        with self._connection.open_answer(f"{self._path}/manifest") as answer:
            content = read_content(answer, MOST_MANIFEST_BYTES)
        table = manifest_table(content, self._connection.url)
        if path is not None:
            write_file(path, lambda file: file.write(content), overwrite=overwrite, durable=True)
        return table

    def manifest_tables(self, rows: int = 100_000) -> Iterator[Table]:
        """Yield the outcome of every row as tables of at most `rows` rows, as they arrive.

        Raises:
            SourceError: If the portal sends something else, or more than a million rows.
        """
        with self._connection.open_answer(f"{self._path}/manifest") as answer:
            lines = lines_of(content_blocks(answer), self._connection.url)
            try:
                table = csv.reader(lines)
                if next(table, None) != list(COLUMNS):
                    raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
                count = 0
                for some in rows_as_tables(table, rows, {}):
                    count += len(some)
                    if count > MOST_ROWS:
                        raise ValueError(f"it has more than {MOST_ROWS:,} rows")
                    yield some
            except (ValueError, OverflowError, csv.Error) as error:
                raise manifest_fault(self._connection.url, error) from error

    def _save_manifest(
        self, path: Path, overwrite: bool, results: ResultList, most_bytes: int
    ) -> Table | LongManifest:
        """Write the manifest, which must name no other results, and return it."""
        part = _part(path)
        try:
            self._receive(f"{self._path}/manifest", part, most_bytes, "an answer", "")
            manifest = manifest_of(part, results, self._connection.url)
            publish(part, path, overwrite=overwrite)
        finally:
            part.unlink(missing_ok=True)
        return replace(manifest, path=path) if isinstance(manifest, LongManifest) else manifest

    def _receive(self, request: str, part: Path, most_bytes: int, what: str, of_what: str) -> None:
        """Write an answer to a file.

        Raises:
            SourceError: If it is larger than `most_bytes`.
        """
        with self._connection.open_answer(request) as answer, open_part_file(part) as file:
            for block in content_blocks(answer):
                file.write(block)
                if file.tell() > most_bytes:
                    part.unlink()
                    raise SourceError(
                        f"{self._connection.url}: expected {what} of at most "
                        f"{size_text(most_bytes)}{of_what}, found more"
                    )
            file.flush()
            os.fsync(file.fileno())

    def start(self) -> Job:
        """Start the job, if it was submitted with `start=False`."""
        return self._job_of(self._connection.post_json(f"{self._path}/start"))

    def cancel(self) -> Job:
        """Stop the job. Finished results are kept."""
        return self._job_of(self._connection.post_json(f"{self._path}/cancel"))

    def resume(self) -> Job:
        """Retry failed and unfinished rows."""
        return self._job_of(self._connection.post_json(f"{self._path}/resume"))

    def delete(self) -> None:
        """Stop the job, and delete it with its results."""
        self._connection.request_once("DELETE", self._path)

    def fetch(
        self,
        output: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: bool = True,
        unpack: bool = False,
    ) -> Table | LongManifest:
        """Wait until the job has ended, and fetch its results.

        Results in a folder are fetched file by file: complete files are kept, partial ones are
        continued. Every file is compared with its checksum, also within a zip or tar file.

        Args:
            output: A folder, or a `.zip`, `.tar` or multi-extension `.fits` file.
            overwrite: Whether to replace existing files. In a folder, damaged files that were
                fetched from this job before are replaced in any case.
            progress: Whether to show a progress bar, if standard error is a terminal.
            unpack: Whether to unpack the outputs of each group of an order into a folder of its
                name, beside its archive.

        Returns:
            The manifest, which is also written: as `manifest.ecsv` in the folder, or as
            `o.manifest.ecsv` beside `o.zip`. One of more than 64 MiB is a
            `swathe.files.manifest_file.LongManifest`, as of `cut_many`: `meta`, the first `failed`
            rows, and `tables()`.

        Raises:
            OutputExistsError: If an output file exists, and `overwrite` is false.
            OutputError: If the results cannot be written, the disk has no room for them, or they
                would replace a local file that the job read; or if something else than an order
                in a folder is to be unpacked.
            SourceError: If the results cannot be fetched, or do not match their checksums, or an
                archive is larger than the results and 16 KiB for each row.
        """
        path = Path(output)
        kind = output_kind(path)
        job = self.wait(progress=progress)
        if unpack and (kind != "folder" or job.options.operation != "algorithm"):
            raise OutputError(f"{path}: expected an order and a folder to unpack its groups in")
        manifest = manifest_path(path, kind)
        make_folder(manifest.parent)
        with sole_writer(manifest):
            is_own = kind == "folder" and manifest_meta(manifest).get("job") == self.id
            own_names = set(names_in(manifest)) if is_own else set()
            most_rows = min(job.rows, MOST_ROWS)
            results = self._results(most_rows)
            # The portal may use the same local stores as this machine's catalogue.
            sources = local_paths(results.sources)
            for file in (manifest,) if kind == "folder" else (manifest, path):
                if file.exists():
                    check_output(file, overwrite=overwrite or is_own, sources=sources)
            # Another manifest would claim that other files in the folder are results of this job.
            if any(name.casefold() == MANIFEST for name in results.names):
                raise SourceError(
                    f"{self._connection.url}: expected names of results, found {MANIFEST!r}"
                )
            try:
                _check_free(path, kind, results)
                if kind == "folder":
                    check_new(path, results.names, overwrite=True, sources=lambda: sources)
                    self._fetch_files(path, results, None if overwrite else own_names, progress)
                    if unpack:
                        unpack_groups(path, results.names, overwrite=overwrite)
                else:
                    self._fetch_archive(path, kind, results, most_rows, overwrite)
            except OSError as error:
                if isinstance(error, SwatheError):
                    raise
                raise OutputError(f"{path}: {error}") from error
            return self._save_manifest(
                manifest,
                overwrite or is_own,
                results,
                min((most_rows + 1) * ROW_BYTES, MOST_MANIFEST_BYTES),
            )

    def _results(self, most_rows: int) -> ResultList:
        """Return the results of a job.

        Raises:
            SourceError: If it has more rows than `most_rows`, or a checksum is invalid.
        """
        results, url = ResultList(), self._connection.url
        # Of all rows, in turn: for a page of one status the portal looks through the whole job.
        for count, row in enumerate(self.rows(), 1):
            if count > most_rows:
                raise SourceError(
                    f"{url}: expected at most the {most_rows} rows of the job, found more"
                )
            if row.status == "ok":
                try:
                    results.add(row)
                except ValueError as error:
                    raise SourceError(f"{url}: {error}") from error
        return results

    def _fetch_files(
        self, folder: Path, results: ResultList, own_names: set[str] | None, progress: bool
    ) -> None:
        """Fetch results; of existing files only those of these names are replaced, or all."""

        def fetch(result: ResultFile) -> None:
            self._fetch_file(folder, result, own_names is None or result.name in own_names)

        with (
            progress_bar("fetching", progress, len(results)) as show,
            ThreadPoolExecutor(PARALLEL_FILES) as pool,
        ):
            try:
                rest, count = iter(results), 0
                while some := list(islice(rest, WAITING_FILES)):
                    for _ in pool.map(fetch, some):
                        count += 1
                        show(count)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _fetch_file(self, folder: Path, result: ResultFile, replace: bool) -> None:
        """Fetch a result, or its missing rest, unless it is complete."""
        name, size, sha256 = result
        if not NAME.fullmatch(name):
            raise SourceError(
                f"{self._connection.url}: expected a name of a result, found {name[:100]!r}"
            )
        path, part = folder / name, _part(folder / name)
        if path.exists() and path.stat().st_size == size and _sha256(path) == sha256:
            return
        if os.path.lexists(path):
            check_output(path, overwrite=replace)
        for first_byte in (_size(part) % max(size, 1), 0):
            with (
                self._connection.open_answer(
                    f"{self._path}/files/{quote(name)}", first_byte=first_byte
                ) as answer,
                open_part_file(part, append=answer.status_code == 206) as file,
            ):
                bytes_left = size - file.tell()
                for block in content_blocks(answer):
                    if (bytes_left := bytes_left - len(block)) < 0:
                        break  # longer than the result: the checksum will differ
                    file.write(block)
                if os.path.lexists(path):  # an existing file is replaced: be durable
                    file.flush()
                    os.fsync(file.fileno())
            if _size(part) == size and _sha256(part) == sha256:
                publish(part, path, overwrite=replace)
                return
            # The old part may be of another run, so fetch once more from the start.
            part.unlink()
        raise SourceError(
            f"{self._connection.url}: {name}: received bytes do not match the checksum"
        )

    def _fetch_archive(
        self, path: Path, kind: str, results: ResultList, rows: int, overwrite: bool
    ) -> None:
        most_bytes = results.bytes + (rows + 1) * ROW_BYTES
        part, request = _part(path), f"{self._path}/archive.{kind}"
        self._receive(request, part, most_bytes, "an archive", f" for {len(results)} results")
        if kind != "fits":
            compare(part, kind, results)
        publish(part, path, overwrite=overwrite)


def _part(path: Path) -> Path:
    """Return the hidden name of an incomplete file, which is kept after an interruption."""
    return path.with_name(f".{path.name}.part")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_free(path: Path, kind: str, results: ResultList) -> None:
    """Check that the disk has room for results that are not fetched yet.

    Raises:
        OutputError: If it has not.
    """
    folder = path if kind == "folder" else path.parent
    size = results.bytes
    if kind == "folder":
        to_fetch = (each for each in results if NAME.fullmatch(each.name))
        size -= sum(min(each.bytes, _fetched_bytes(path / each.name)) for each in to_fetch)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OutputError(
            f"{path}: expected {size_text(size)} of free disk space, found {size_text(free)}"
        )


def _fetched_bytes(path: Path) -> int:
    return max(_size(path), _size(_part(path)))


def _not_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
