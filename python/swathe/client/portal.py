"""Jobs on a remote portal: `swathe.connect`."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import time
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from swathe.core import errors
from swathe.core.angles import Size
from swathe.core.errors import OutputError, SettingsError, SourceError, SwatheError
from swathe.core.format import seconds_text, size_text
from swathe.core.outputs import (
    check_new,
    check_output,
    make_folder,
    open_unfinished,
    publish,
    sole_writer,
    write_file,
)
from swathe.core.progress import progress_bar
from swathe.files.manifest import manifest_meta, manifest_path
from swathe.files.targets.cells import plain_cells
from swathe.files.targets.columns import InvalidCell
from swathe.stores.registry import local_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import httpx
    from astropy.table import Table

    from swathe._swathe import Mode, OutputKind
    from swathe.catalog.records.jobs import RowStatus
    from swathe.files.planes import Planes
    from swathe.jobs.types import Estimate, Job, Row

TOKEN_VARIABLE = "SWATHE_TOKEN"
ENDED = ("COMPLETED", "ERROR", "ABORTED")
CONNECT_S, ANSWER_S = 10.0, 120.0
TRIES = 6
"""Number of tries per request. A portal that restarts is up again before the last one."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Pause between tries. It doubles each time; a longer `Retry-After` is cut to the maximum."""
PASSING = (429, 502, 503, 504)
"""HTTP statuses that are retried."""
WAIT_S = 20.0
"""Longest time that one request waits for a change of a job."""
SHOWN_S = 5.0
"""Timeout of the request that a notebook makes to show a job."""
SHOW_S = 0.5
"""Interval between requests for progress, if a progress bar is shown."""
AT_ONCE = 4
"""Number of files fetched in parallel."""
BLOCK = 1 << 20
NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")
ARCHIVES: dict[str, OutputKind] = {".zip": "zip", ".tar": "tar", ".fits": "fits"}


def connect(url: str, token: str | None = None) -> RemotePortal:
    """Connect to a portal.

    Args:
        url: URL of the portal, as `https://archive.example`.
        token: Token of the user; else `$SWATHE_TOKEN`, if that is set.

    Raises:
        SettingsError: If the URL is invalid.
        TokenError: If the portal does not accept the token.
        SourceError: If the portal does not answer.
    """
    portal = RemotePortal(url, token or os.environ.get(TOKEN_VARIABLE) or None)
    portal.about()
    return portal


class RemotePortal:
    """A connection to a portal, as `connect` returns it. May be shared by threads."""

    def __init__(self, url: str, token: str | None) -> None:
        """Set up the connection. Users call `swathe.connect`."""
        import httpx

        from swathe._swathe import __version__

        self.url = _validated(url)
        headers = {"User-Agent": f"swathe/{__version__}"}
        if token:
            if not re.fullmatch(r"[\x21-\x7e]+", token):
                raise SettingsError(
                    "the token contains invalid characters (expected printable "
                    "ASCII without spaces)"
                )
            headers["Authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S)
        # The token must not go to another server, so redirects are not followed.
        self._http = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def __repr__(self) -> str:
        return f"<RemotePortal {self.url}>"

    def __enter__(self) -> RemotePortal:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def about(self) -> dict[str, Any]:
        """Return the version and limits of the portal, and the user that the token names."""
        return self._get("about")

    def estimate(
        self,
        targets: Any,
        *,
        operation: str | None = None,
        format: str | None = None,  # noqa: A002 - as in cut_many
        mode: Mode = "trim",
        fill: float | None = None,
        planes: Planes | None = None,
        bands: Sequence[str] | str = (),
        dataset: str | None = None,
        time: tuple[Any, Any] | None = None,
        **own_options: Any,
    ) -> Estimate:
        """Return the size and predicted cost of a job. The arguments are those of `submit`.

        Raises:
            TargetsError, JobError, RegionError: As `submit`.
        """
        from swathe.client.answers import estimate_of

        options = _options(operation, format, mode, fill, planes, bands, dataset, time, own_options)
        return estimate_of(self._send("estimate", targets, options, {}), self.url)

    def submit(
        self,
        targets: Any,
        *,
        name: str = "",
        start: bool = True,
        operation: str | None = None,
        format: str | None = None,  # noqa: A002 - as in cut_many
        mode: Mode = "trim",
        fill: float | None = None,
        planes: Planes | None = None,
        bands: Sequence[str] | str = (),
        dataset: str | None = None,
        time: tuple[Any, Any] | None = None,
        **own_options: Any,
    ) -> RemoteJob:
        """Submit a job.

        Example:
            >>> portal = swathe.connect("https://archive.example")
            >>> job = portal.submit("targets.csv", format="png")
            >>> job.wait().counts["ok"]
            2000
            >>> job.fetch("cutouts/")

        Args:
            targets: A table, a mapping of columns, or the path of a table, as for `cut_many`. Its
                files are `STORE:path` of the portal's stores. Without a column `file`, each sky
                position is cut from every image that shows it.
            name: Name of the job.
            start: Whether to start the job at once.
            operation: As in `cut_many`.
            format: As in `cut_many`.
            mode: As in `cut_many`.
            fill: As in `cut_many`.
            planes: As in `cut_many`.
            bands: Bands of the images of sky positions without a file; with `rgb` exactly three,
                red first.
            dataset: Dataset searched for sky positions without a file; by default all.
            time: Time range of their images, from and to: MJD (UTC), ISO text or astropy times.
            **own_options: Options of the operation, as in `cut_many`: `stack` of a stack.

        Raises:
            TargetsError, JobError: If the targets or the options are invalid.
            RegionError: If the planes are invalid.
            LimitError: If the job exceeds a limit of the portal.
        """
        fields = {"name": name, "start": start}
        options = _options(operation, format, mode, fill, planes, bands, dataset, time, own_options)
        return RemoteJob(self, self._send("jobs", targets, options, fields)["id"])

    def job(self, job_id: str) -> RemoteJob:
        """Return a job by its id.

        Raises:
            NoSuchJobError: If there is no such job of this user.
        """
        job = RemoteJob(self, job_id)
        job.status()
        return job

    def jobs(self, last: int = 100) -> list[Job]:
        """Return the user's last jobs, newest first."""
        from swathe.client.answers import job_of

        return [job_of(content, self.url) for content in self._get("jobs", last=last)["jobs"]]

    def pool(self) -> dict[str, Any]:
        """Return the state of the worker pool, with the cached objects of its workers."""
        return self._get("pool")

    def _get(self, path: str, **parameters: Any) -> dict[str, Any]:
        with self._reading(path, parameters) as answer:
            return _json(answer)

    def _post(self, path: str, **content: Any) -> dict[str, Any]:
        return _json(self._once("POST", path, **content))

    def _once(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Send a request once, without a retry, which could repeat its effect."""
        import httpx

        try:
            answer = self._http.request(method, f"{self.url}/api/{path}", **content)
        except httpx.HTTPError as error:
            raise self._failed(error) from error
        _raise_for(answer)
        return answer

    def _send(
        self, path: str, targets: Any, options: Mapping[str, Any], fields_given: Mapping[str, Any]
    ) -> dict[str, Any]:
        if not isinstance(targets, str | os.PathLike):
            return self._post(
                path, json={"targets": _json_targets(targets), "options": options, **fields_given}
            )
        import json

        table = Path(targets)
        form = {"options": json.dumps(options)}
        form |= {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in fields_given.items()
        }
        try:
            with table.open("rb") as file:
                return self._post(path, data=form, files={"targets": (table.name, file)})
        except FileNotFoundError as error:
            raise errors.NotFoundError(f"{table}: no such table of targets") from error

    @contextmanager
    def _reading(
        self, path: str, parameters: Mapping[str, Any] | None = None, first_byte: int = 0
    ) -> Iterator[httpx.Response]:
        """Yield a response whose body is not read yet."""
        import httpx

        answer = self._answer(path, parameters or {}, first_byte)
        try:
            _raise_for(answer)
            yield answer
        except httpx.HTTPError as error:
            raise self._failed(error) from error
        finally:
            answer.close()

    def _answer(self, path: str, parameters: Mapping[str, Any], first_byte: int) -> httpx.Response:
        """Send a GET request, with retries after passing errors."""
        import httpx

        headers = {"Range": f"bytes={first_byte}-"} if first_byte else {}
        request = self._http.build_request(
            "GET", f"{self.url}/api/{path}", params=dict(parameters), headers=headers
        )
        for number in range(1, TRIES + 1):
            pause_s = PAUSE_S * 2 ** (number - 1)
            try:
                answer = self._http.send(request, stream=True)
            except httpx.HTTPError as error:
                if number == TRIES or not isinstance(error, httpx.TransportError):
                    raise self._failed(error) from error
            else:
                if answer.status_code not in PASSING or number == TRIES:
                    return answer
                answer.close()
                retry_after = answer.headers.get("retry-after", "")
                pause_s = float(retry_after[:6]) if retry_after.isdecimal() else pause_s
            time.sleep(min(pause_s, LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")

    def _failed(self, error: Exception) -> SourceError:
        return SourceError(f"{self.url}: {error or type(error).__name__}")


class RemoteJob:
    """A job on a portal."""

    def __init__(self, portal: RemotePortal, job_id: str) -> None:
        """Set the portal and the id. Users call `submit` or `job` of a portal."""
        self.portal, self.id = portal, job_id
        self._path = f"jobs/{quote(job_id, safe='')}"

    def __repr__(self) -> str:
        return f"<RemoteJob {self.id} on {self.portal.url}>"

    def _repr_html_(self) -> str:
        """Return the status of the job as HTML, or the error if the portal is slow."""
        from swathe.files.notebook import page

        facts: dict[str, Any] = {"job": self.id, "portal": self.portal.url}
        try:
            status = self._job_of(_json(self.portal._once("GET", self._path, timeout=SHOWN_S)))
        except SwatheError as error:
            return page("Job", {**facts, "status": error})
        counts = ", ".join(f"{count:,} {name}" for name, count in status.counts.items() if count)
        facts |= {"name": status.name, "phase": status.phase}
        facts |= {"rows": f"{status.rows:,}: {counts}", "results": size_text(status.bytes)}
        for name, cost in (("predicted", status.predicted), ("actual", status.actual)):
            if cost and "seconds" in cost:
                facts[name] = seconds_text(cost["seconds"])
        facts |= {"error": status.error} if status.error else {}
        return page("Job", facts)

    def _job_of(self, content: Mapping[str, Any]) -> Job:
        from swathe.client.answers import job_of

        return job_of(content, self.portal.url)

    def status(self) -> Job:
        """Return the status: phase, counts, predicted and actual cost."""
        return self._job_of(self.portal._get(self._path))

    def wait(self, timeout_s: float | None = None, *, progress: bool = True) -> Job:
        """Return the status when the job has ended, or after a timeout.

        Args:
            timeout_s: Maximum time to wait; by default unlimited.
            progress: Whether to show a progress bar, if standard error is a terminal.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        status = self.status()
        with progress_bar("cutting", progress, status.rows) as show:
            while True:
                show(sum(status.counts.values()) - status.counts.get("waiting", 0))
                left_s = WAIT_S if end is None else end - time.monotonic()
                if status.phase in ENDED or left_s <= 0:
                    return status
                wait_s = min(left_s, SHOW_S if progress else WAIT_S)
                content = self.portal._get(self._path, wait=wait_s, phase=status.phase)
                status = self._job_of(content)

    def rows(self, status: RowStatus | None = None) -> Iterator[Row]:
        """Yield the rows in the order of the targets: those of one status, or all."""
        from swathe.client.answers import row_of

        start: int | None = 0
        while start is not None:
            query: dict[str, Any] = {"start": start, "limit": 10_000}
            page = self.portal._get(f"{self._path}/rows", **query, **_not_none(status=status))
            yield from (row_of(content, self.portal.url) for content in page["rows"])
            start = page["next"]

    def manifest(
        self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> Table:
        """Return the outcome of every row as a table. Write it if a path is given."""
        with self.portal._reading(f"{self._path}/manifest") as answer:
            content = answer.read()
        if path is not None:
            write_file(path, lambda file: file.write(content), overwrite=overwrite, durable=True)
        from astropy.table import Table

        return Table.read(content.decode(), format="ascii.ecsv", fill_values=[])

    def start(self) -> Job:
        """Start the job, if it was submitted with `start=False`."""
        return self._job_of(self.portal._post(f"{self._path}/start"))

    def cancel(self) -> Job:
        """Stop the job. Finished results are kept."""
        return self._job_of(self.portal._post(f"{self._path}/cancel"))

    def resume(self) -> Job:
        """Retry failed and unfinished rows."""
        return self._job_of(self.portal._post(f"{self._path}/resume"))

    def delete(self) -> None:
        """Stop the job, and delete it with its results."""
        self.portal._once("DELETE", self._path)

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
            OutputError: If the results cannot be written, or would replace a local file that
                the job read.
            SourceError: If the results cannot be fetched, or do not match their checksums.
        """
        self.wait(progress=progress)
        path = Path(output)
        kind = ARCHIVES.get(path.suffix.lower())
        place = manifest_path(path, kind or "folder")
        make_folder(place.parent)
        with sole_writer(place):
            is_own = kind is None and manifest_meta(place).get("job") == self.id
            ok_rows = list(self.rows("ok"))
            # The portal may use the same local stores as this machine's catalogue.
            sources = local_paths({row.source for row in ok_rows})
            for file in (place,) if kind is None else (place, path):
                if file.exists():
                    check_output(file, overwrite=overwrite or is_own, sources=sources)
            # Rows that went into a stack or a picture have no file of their own.
            results = [row for row in ok_rows if row.name or row.sha256]
            try:
                if kind is None:
                    names = [row.name for row in results]
                    check_new(path, names, overwrite=True, sources=lambda: sources)
                    self._fetch_files(path, results, overwrite or is_own, progress)
                else:
                    self._fetch_archive(path, kind, results, overwrite)
            except OSError as error:
                if isinstance(error, SwatheError):
                    raise
                raise OutputError(f"{path}: {error}") from error
            return self.manifest(place, overwrite=overwrite or is_own)

    def _fetch_files(
        self, folder: Path, results: Sequence[Row], replace: bool, progress: bool
    ) -> None:
        with (
            progress_bar("fetching", progress, len(results)) as show,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            try:
                finished = pool.map(lambda row: self._fetch_file(folder, row, replace), results)
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
                f"{self.portal.url}: expected a name of a result, found {name[:100]!r}"
            )
        path, part = folder / name, _part(folder / name)
        if path.exists() and path.stat().st_size == size and _sha256(path) == sha256:
            return
        if os.path.lexists(path):
            check_output(path, overwrite=replace)
        for first_byte in (_size(part) % max(size, 1), 0):
            with (
                self.portal._reading(
                    f"{self._path}/files/{quote(name)}", first_byte=first_byte
                ) as answer,
                open_unfinished(part, append=answer.status_code == 206) as file,
            ):
                for block in answer.iter_bytes(BLOCK):
                    file.write(block)
                if os.path.lexists(path):  # an existing file is replaced: be durable
                    file.flush()
                    os.fsync(file.fileno())
            if _size(part) == size and _sha256(part) == sha256:
                publish(part, path, overwrite=replace)
                return
            # The old part may be of another run, so fetch once more from the start.
            part.unlink()
        raise SourceError(f"{self.portal.url}: {name}: received bytes do not match the checksum")

    def _fetch_archive(
        self, path: Path, kind: str, results: Sequence[Row], overwrite: bool
    ) -> None:
        expected = {row.name: row.sha256 for row in results}
        part = _part(path)
        with (
            self.portal._reading(f"{self._path}/archive.{kind}") as answer,
            open_unfinished(part) as file,
        ):
            for block in answer.iter_bytes(BLOCK):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        if kind != "fits":
            _compare(part, kind, expected)
        publish(part, path, overwrite=overwrite)


def _options(
    operation: str | None,
    format_: str | None,
    mode: Mode,
    fill: float | None,
    planes: Planes | None,
    bands: Sequence[str] | str,
    dataset: str | None,
    time_range: tuple[Any, Any] | None,
    own: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options of a job as JSON.

    Raises:
        JobError: If an option is invalid.
        RegionError: If the planes are invalid.
    """
    from swathe.files.planes import plane_span
    from swathe.jobs.types import Options

    options = {
        "operation": operation,
        "format": format_,
        "mode": mode,
        "fill": fill,
        "planes": None if planes is None else plane_span(planes),
        "bands": bands or None,
        "dataset": dataset,
        "time": time_range,
        **own,
    }
    return Options.from_mapping(options).as_dict()


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
                for name in archive.namelist():
                    with archive.open(name) as member:
                        yield name, _digest(member)
        else:
            with tarfile.open(path, "r:") as members:
                for entry in members:
                    tar_member = members.extractfile(entry)
                    if tar_member is not None:
                        yield entry.name, _digest(tar_member)
    except (zipfile.BadZipFile, tarfile.TarError) as error:
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


def _not_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _validated(url: str) -> str:
    """Return the URL of a portal, without a slash at its end.

    Raises:
        SettingsError: If the URL is invalid, or has a user or password.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it raises
    except ValueError:
        raise SettingsError(
            "the portal's URL: expected http(s)://host[:port], found an invalid host or port"
        ) from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise SettingsError(
            "the portal's URL: expected http(s)://host[:port], found a user, query or fragment"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"the portal's URL: expected http(s)://host[:port], found {url[:100]!r}"
        )
    return url.rstrip("/")


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        answer.read()
        content: dict[str, Any] = answer.json()
    except ValueError as error:
        raise SourceError(
            f"{answer.url}: expected the answer of a portal, found no JSON: {error}"
        ) from error
    if not isinstance(content, dict):
        raise SourceError(f"{answer.url}: expected the answer of a portal, found other JSON")
    return content


def _raise_for(answer: httpx.Response) -> None:
    """Raise the error that the portal reports, with the class that it would have locally.

    Raises:
        SwatheError: If the response is not a success, of the class named in it.
    """
    if answer.is_success:
        return
    answer.read()
    status = answer.status_code
    try:
        content = answer.json()
        message, name = str(content["error"]), str(content["kind"])
    except (ValueError, KeyError, TypeError):
        message, name = f"{answer.url}: answered {status}", ""
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, SwatheError)):
        kind = _KINDS.get(status, SourceError if status >= 500 else SwatheError)
    if issubclass(kind, errors.LimitError):
        after = answer.headers.get("retry-after", "")
        raise kind(message, int(after[:6]) if after.isdecimal() else None)
    raise kind(message)


_KINDS: dict[int, type[SwatheError]] = {
    401: errors.TokenError,
    403: errors.AccessError,
    404: errors.NotFoundError,
    413: errors.LimitError,
    429: errors.LimitError,
}


def _json_targets(targets: Any) -> dict[str, list[Any]] | list[str]:
    """Return targets in memory as JSON values: lines unchanged, columns in standard units."""
    if isinstance(targets, list | tuple) and all(isinstance(line, str) for line in targets):
        return list(targets)
    from swathe.files.targets.columns import standard_columns
    from swathe.files.targets.target_list import read_list

    columns = standard_columns(read_list(targets).table)
    return {name: [_plain(value) for value in plain_cells(each)] for name, each in columns.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, InvalidCell):
        # The portal reports the error.
        return value.cell if isinstance(value.cell, str | float | int) else str(value.cell)
    if isinstance(value, Size):
        return str(value)
    return None if value != value else value  # NaN differs from itself
