"""A job on a portal elsewhere: its state, its rows, its results."""

from __future__ import annotations

import csv
import hashlib
import os
import re
import shutil
import tarfile
import time
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from swathe.catalog.records.jobs import ENDED, count_done
from swathe.client.connection import BLOCK, content_blocks, read_content
from swathe.core.errors import OutputError, SourceError, SwatheError
from swathe.core.format import seconds_text, size_text, time_left_text
from swathe.core.outputs import (
    check_new,
    check_output,
    make_folder,
    open_unfinished,
    publish,
    sole_writer,
    write_file,
)
from swathe.core.progress import can_show_progress, progress_bar
from swathe.cutting.output_paths import output_kind
from swathe.files.manifest import (
    COLUMNS,
    MANIFEST,
    manifest_meta,
    manifest_path,
    read_manifest,
    rows_as_tables,
)
from swathe.stores.registry import local_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        counts = ", ".join(f"{count:,} {name}" for name, count in status.counts.items() if count)
        facts |= {"name": status.name, "phase": status.phase}
        facts |= {"rows": f"{status.rows:,}: {counts}", "results": size_text(status.bytes)}
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

    def wait(self, timeout_s: float | None = None, *, progress: bool = True) -> Job:
        """Return the status when the job has ended, or after a timeout.

        Args:
            timeout_s: Maximum time to wait; by default unlimited.
            progress: Whether to show a progress bar, if standard error is a terminal.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        status, pause_s = self.status(), PAUSE_S
        most_s = PROGRESS_S if progress and can_show_progress() else WAIT_S
        with progress_bar("cutting", progress, status.rows) as show:
            while True:
                show(
                    count_done(status.counts), time_left_text(**status.left) if status.left else ""
                )
                left_s = WAIT_S if end is None else end - time.monotonic()
                if status.phase in ENDED or left_s <= 0:
                    return status
                wait_s = min(left_s, most_s)
                asked_s = time.monotonic()
                content = self._connection.get_json(self._path, wait=wait_s, phase=status.phase)
                status = self._job_of(content)
                # A portal that answers at once is not asked again at once.
                took_s = time.monotonic() - asked_s
                if took_s < pause_s and status.phase not in ENDED:
                    time.sleep(min(pause_s, wait_s) - min(took_s, wait_s))
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                else:
                    pause_s = PAUSE_S

    def rows(self, status: RowStatus | None = None) -> Iterator[Row]:
        """Yield the rows in the order of the targets: those of one status, or all."""
        from swathe.client.answers import entry, row_of

        start: int | None = 0
        while start is not None:
            if start >= MOST_ROWS:
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
        return self._save_manifest(path, overwrite, None)

    def manifest_tables(self, rows: int = 100_000) -> Iterator[Table]:
        """Yield the outcome of every row as tables of at most `rows` rows, as they arrive.

        Raises:
            SourceError: If the portal sends something else, or more than a million rows.
        """
        with self._connection.open_answer(f"{self._path}/manifest") as answer:
            lines = _manifest_lines(content_blocks(answer), self._connection.url)
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
                raise SourceError(
                    f"{self._connection.url}: expected a manifest, found another text: {error}"
                ) from error

    def _save_manifest(
        self,
        path: str | os.PathLike[str] | None,
        overwrite: bool,
        names: set[str] | None,
        most_bytes: int = MOST_MANIFEST_BYTES,
    ) -> Table:
        """Return the manifest, and write it; with `names` it must name no other results."""
        with self._connection.open_answer(f"{self._path}/manifest") as answer:
            content = read_content(answer, min(most_bytes, MOST_MANIFEST_BYTES))
        table = _table(content, self._connection.url)
        # The next time, files that the manifest names are known to be results of this job.
        if names is not None and (others := _names(table) - names):
            raise SourceError(
                f"{self._connection.url}: expected the manifest of the results, found that it "
                f"names {min(others)[:100]!r}, too"
            )
        if path is not None:
            write_file(path, lambda file: file.write(content), overwrite=overwrite, durable=True)
        return table

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
        self, output: str | os.PathLike[str], *, overwrite: bool = False, progress: bool = True
    ) -> Table:
        """Wait until the job has ended, and fetch its results.

        Results in a folder are fetched file by file: complete files are kept, partial ones are
        continued. Every file is compared with its checksum, also within a zip or tar file.

        Args:
            output: A folder, or a `.zip`, `.tar` or multi-extension `.fits` file.
            overwrite: Whether to replace existing files. In a folder, damaged files that were
                fetched from this job before are replaced in any case.
            progress: Whether to show a progress bar, if standard error is a terminal.

        Returns:
            The manifest, which is also written: as `manifest.ecsv` in the folder, or as
            `o.manifest.ecsv` beside `o.zip`.

        Raises:
            OutputExistsError: If an output file exists, and `overwrite` is false.
            OutputError: If the results cannot be written, the disk has no room for them, or they
                would replace a local file that the job read.
            SourceError: If the results cannot be fetched, or do not match their checksums, or an
                archive is larger than the results and 16 KiB for each row.
        """
        path = Path(output)
        kind = output_kind(path)
        job = self.wait(progress=progress)
        manifest = manifest_path(path, kind)
        make_folder(manifest.parent)
        with sole_writer(manifest):
            is_own = kind == "folder" and manifest_meta(manifest).get("job") == self.id
            own_names = _names(read_manifest(manifest)) if is_own else set()
            most_rows = min(job.rows, MOST_ROWS)
            ok_rows = list(islice(self.rows("ok"), most_rows + 1))
            if len(ok_rows) > most_rows:
                raise SourceError(
                    f"{self._connection.url}: expected at most the {most_rows} rows of the job, "
                    "found more"
                )
            # The portal may use the same local stores as this machine's catalogue.
            sources = local_paths({row.source for row in ok_rows})
            for file in (manifest,) if kind == "folder" else (manifest, path):
                if file.exists():
                    check_output(file, overwrite=overwrite or is_own, sources=sources)
            # Rows that went into a stack or a picture have no file of their own.
            results = [row for row in ok_rows if row.name or row.sha256]
            # Another manifest would claim that other files in the folder are results of this job.
            if any(row.name.casefold() == MANIFEST for row in results):
                raise SourceError(
                    f"{self._connection.url}: expected names of results, found {MANIFEST!r}"
                )
            try:
                _check_free(path, kind, results)
                if kind == "folder":
                    names = [row.name for row in results]
                    check_new(path, names, overwrite=True, sources=lambda: sources)
                    self._fetch_files(path, results, None if overwrite else own_names, progress)
                else:
                    self._fetch_archive(path, kind, results, most_rows, overwrite)
            except OSError as error:
                if isinstance(error, SwatheError):
                    raise
                raise OutputError(f"{path}: {error}") from error
            return self._save_manifest(
                manifest,
                overwrite or is_own,
                {row.name for row in results},
                (most_rows + 1) * ROW_BYTES,
            )

    def _fetch_files(
        self, folder: Path, results: Sequence[Row], own_names: set[str] | None, progress: bool
    ) -> None:
        """Fetch results; of existing files only those of these names are replaced, or all."""

        def fetch(row: Row) -> None:
            self._fetch_file(folder, row, own_names is None or row.name in own_names)

        with (
            progress_bar("fetching", progress, len(results)) as show,
            ThreadPoolExecutor(PARALLEL_FILES) as pool,
        ):
            try:
                finished = pool.map(fetch, results)
                for fetched_count, _ in enumerate(finished, 1):
                    show(fetched_count)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _fetch_file(self, folder: Path, row: Row, replace: bool) -> None:
        """Fetch a result, or its missing rest, unless it is complete."""
        name, size, sha256 = row.name, row.bytes, row.sha256
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
                open_unfinished(part, append=answer.status_code == 206) as file,
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
        self, path: Path, kind: str, results: Sequence[Row], rows: int, overwrite: bool
    ) -> None:
        expected = {row.name: row.sha256 for row in results}
        most_bytes = sum(row.bytes for row in results) + (rows + 1) * ROW_BYTES
        part = _part(path)
        with (
            self._connection.open_answer(f"{self._path}/archive.{kind}") as answer,
            open_unfinished(part) as file,
        ):
            for block in content_blocks(answer):
                file.write(block)
                if file.tell() > most_bytes:
                    part.unlink()
                    raise SourceError(
                        f"{self._connection.url}: expected an archive of at most "
                        f"{size_text(most_bytes)} for {len(results)} results, found more"
                    )
            file.flush()
            os.fsync(file.fileno())
        if kind != "fits":
            _compare(part, kind, expected)
        publish(part, path, overwrite=overwrite)


def _table(content: bytes, url: str) -> Table:
    """Return the manifest that a portal sent.

    Raises:
        SourceError: If it is none.
    """
    from astropy.table import Table

    try:
        # The reader takes another text for the name of a file, or a URL, and opens that.
        if not content.startswith(b"# %ECSV ") or b"\n" not in content:
            raise ValueError("it does not begin as ECSV does")
        return Table.read(content.decode(), format="ascii.ecsv", fill_values=[])
    except Exception as error:  # the reader raises many kinds of errors
        raise SourceError(f"{url}: expected a manifest, found another text: {error}") from error


def _manifest_lines(blocks: Iterator[bytes], url: str) -> Iterator[str]:
    """Yield the lines of a manifest behind its head.

    Raises:
        SourceError: If it does not begin as ECSV does, or has a line of more than BLOCK bytes.
    """
    rest, is_first = b"", True
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > BLOCK:
            raise SourceError(f"{url}: expected lines of up to {size_text(BLOCK)}, found more")
        for line in lines:
            if is_first and not line.startswith(b"# %ECSV "):
                raise SourceError(f"{url}: expected a manifest, found another text")
            is_first = False
            if not line.startswith(b"#"):
                yield line.decode() + "\n"
    if rest or is_first:
        raise SourceError(f"{url}: expected a manifest to its end, found a part of it")


def _names(manifest: Table | None) -> set[str]:
    """Return the names of the files that a manifest lists."""
    if manifest is None or "path" not in manifest.colnames:
        return set()
    return {str(name) for name in manifest["path"] if name}


def _part(path: Path) -> Path:
    """Return the hidden name of an incomplete file, which is kept after an interruption."""
    return path.with_name(f".{path.name}.part")


def _compare(path: Path, kind: str, expected: dict[str, str]) -> None:
    """Compare the members of an archive with their expected checksums.

    Raises:
        SourceError: If a member is missing or differs.
    """
    for name, sha256 in _members(path, kind):
        if expected.pop(name, sha256) != sha256:
            raise SourceError(f"{path}: {name}: bytes do not match the checksum")
    if expected:
        raise SourceError(f"{path}: expected a member {min(expected)}, found none")


def _members(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    """Yield name and checksum of the members of an archive."""
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive:
                # Portals do not pack results: a packed member may be a million times larger.
                if sum(info.file_size for info in archive.infolist()) > path.stat().st_size:
                    raise ValueError("its members are larger than itself")
                for info in archive.infolist():
                    with archive.open(info) as member:
                        yield info.filename, _digest(member)
        else:
            with tarfile.open(path, "r:") as members:
                for entry in members:
                    # Links have no content, and a sparse member has any size.
                    if not entry.isreg() or entry.issparse():
                        raise ValueError(f"{entry.name[:100]!r} is no plain file")
                    tar_member = members.extractfile(entry)
                    assert tar_member is not None
                    yield entry.name, _digest(tar_member)
    except Exception as error:  # the readers raise many kinds of errors
        raise SourceError(f"{path}: the archive is broken: {error}") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return _digest(file)


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_free(path: Path, kind: str, results: Sequence[Row]) -> None:
    """Check that the disk has room for results that are not fetched yet.

    Raises:
        OutputError: If it has not.
    """
    folder = path if kind == "folder" else path.parent
    size = sum(row.bytes for row in results)
    if kind == "folder":
        to_fetch = (row for row in results if NAME.fullmatch(row.name))
        size -= sum(min(row.bytes, _fetched_bytes(path / row.name)) for row in to_fetch)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OutputError(
            f"{path}: expected {size_text(size)} of free disk space, found {size_text(free)}"
        )


def _fetched_bytes(path: Path) -> int:
    return max(_size(path), _size(_part(path)))


def _not_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
