"""Jobs on a portal elsewhere: `swathe.connect`."""

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
from swathe.files.targets.columns import Bad
from swathe.stores.registry import local_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import httpx
    from astropy.table import Table

    from swathe._swathe import OutputKind

TOKEN_VARIABLE = "SWATHE_TOKEN"
ENDED = ("COMPLETED", "ERROR", "ABORTED")
CONNECT_S, ANSWER_S = 10.0, 120.0
TRIES = 6
"""A portal that is started anew is there again before the last."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Between tries, twice as long each time; where the portal says how long, at most so long."""
PASSING = (429, 502, 503, 504)
"""Statuses that may be another one next time."""
WAIT_S = 20.0
SHOWN_S = 5.0
"""So long a portal is waited for when a notebook shows a job."""
SHOW_S = 0.5
"""How often progress is asked for, if somebody looks."""
AT_ONCE = 4
"""Files fetched side by side."""
BLOCK = 1 << 20
NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")
ARCHIVES: dict[str, OutputKind] = {".zip": "zip", ".tar": "tar", ".fits": "fits"}


def connect(url: str, token: str | None = None) -> RemotePortal:
    """Reach a portal.

    Args:
        url: where it is, as `https://archive.example`.
        token: what it knows you by; else `$SWATHE_TOKEN`, if that is set.

    Raises:
        SettingsError: where the URL makes no sense.
        TokenError: where the portal wants another token.
        SourceError: where it does not answer.
    """
    portal = RemotePortal(url, token or os.environ.get(TOKEN_VARIABLE) or None)
    portal.about()
    return portal


class RemotePortal:
    """A portal, as `connect` gives it. May be shared by threads."""

    def __init__(self, url: str, token: str | None) -> None:
        """Take where it is. Users call `swathe.connect`."""
        import httpx

        from swathe._swathe import __version__

        self.url = _checked(url)
        headers = {"User-Agent": f"swathe/{__version__}"}
        if token:
            if not re.fullmatch(r"[\x21-\x7e]+", token):
                raise SettingsError("the token has characters that no token has")
            headers["Authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S)
        # Elsewhere the token has no business: redirects are not followed.
        self._http = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def __repr__(self) -> str:
        return f"<RemotePortal {self.url}>"

    def __enter__(self) -> RemotePortal:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of its connections."""
        self._http.close()

    def about(self) -> dict[str, Any]:
        """Tell what the portal is and allows, and who you are there."""
        return self._get("about")

    def estimate(self, targets: Any, **options: Any) -> dict[str, Any]:
        """Tell what a job would be and cost; takes what `submit` does."""
        return self._send("estimate", targets, options, {})

    def submit(
        self, targets: Any, *, name: str = "", start: bool = True, **options: Any
    ) -> RemoteJob:
        """Submit a job.

        Args:
            targets: a table, a mapping of columns, or the path of a table, as for `cut_many`; its
                files are `STORE:path` of the portal's stores. Without a column `file`, places in
                the sky are cut from every image that shows them.
            name: what you call it.
            start: whether it may begin.
            options: those of `swathe.jobs.Options`.

        Raises:
            TargetsError, JobError: where these make no sense.
            LimitError: where they are more than is allowed.
        """
        given = {"name": name, "start": start}
        return RemoteJob(self, self._send("jobs", targets, options, given)["id"])

    def job(self, job_id: str) -> RemoteJob:
        """Give a job by its id.

        Raises:
            NoSuchJobError: where there is none.
        """
        job = RemoteJob(self, job_id)
        job.status()
        return job

    def jobs(self, last: int = 100) -> list[dict[str, Any]]:
        """Give your last jobs, the newest first."""
        found: list[dict[str, Any]] = self._get("jobs", last=last)["jobs"]
        return found

    def pool(self) -> dict[str, Any]:
        """Tell who does the work of jobs, and what they hold."""
        return self._get("pool")

    def _get(self, path: str, **parameters: Any) -> dict[str, Any]:
        with self._reading(path, parameters) as answer:
            return _json(answer)

    def _post(self, path: str, **content: Any) -> dict[str, Any]:
        return _json(self._once("POST", path, **content))

    def _once(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Ask once: who asks twice may get two."""
        import httpx

        try:
            answer = self._http.request(method, f"{self.url}/api/{path}", **content)
        except httpx.HTTPError as error:
            raise self._failed(error) from error
        _raise_for(answer)
        return answer

    def _send(
        self, path: str, targets: Any, options: Mapping[str, Any], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        if not isinstance(targets, str | os.PathLike):
            return self._post(
                path, json={"targets": _json_targets(targets), "options": options, **given}
            )
        import json

        table = Path(targets)
        fields = {"options": json.dumps(options)}
        fields |= {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in given.items()
        }
        try:
            with table.open("rb") as file:
                return self._post(path, data=fields, files={"targets": (table.name, file)})
        except FileNotFoundError as error:
            raise errors.NotFoundError(f"{table}: no such table of targets") from error

    @contextmanager
    def _reading(
        self, path: str, parameters: Mapping[str, Any] | None = None, first_byte: int = 0
    ) -> Iterator[httpx.Response]:
        """Read an answer, whose body is not fetched yet."""
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
        """Ask, and ask again where that may help."""
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
                told = answer.headers.get("retry-after", "")
                pause_s = float(told[:6]) if told.isdecimal() else pause_s
            time.sleep(min(pause_s, LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")

    def _failed(self, error: Exception) -> SourceError:
        return SourceError(f"{self.url}: {error or type(error).__name__}")


class RemoteJob:
    """A job on a portal."""

    def __init__(self, portal: RemotePortal, job_id: str) -> None:
        """Take which. Users call `submit` or `job` of a portal."""
        self.portal, self.id = portal, job_id
        self._path = f"jobs/{quote(job_id, safe='')}"

    def __repr__(self) -> str:
        return f"<RemoteJob {self.id} on {self.portal.url}>"

    def _repr_html_(self) -> str:
        """Return what its portal tells of it within a few seconds."""
        from swathe.files.notebook import page

        facts: dict[str, Any] = {"job": self.id, "portal": self.portal.url}
        try:
            status = _json(self.portal._once("GET", self._path, timeout=SHOWN_S))
        except SwatheError as error:
            return page("Job", {**facts, "status": error})
        counts = ", ".join(f"{count:,} {name}" for name, count in status["counts"].items() if count)
        facts |= {"name": status["name"], "phase": status["phase"]}
        facts |= {"rows": f"{status['rows']:,}: {counts}", "results": size_text(status["bytes"])}
        for name in ("predicted", "actual"):
            if status[name] and "seconds" in status[name]:
                facts[name] = seconds_text(status[name]["seconds"])
        facts |= {"error": status["error"]} if status["error"] else {}
        return page("Job", facts)

    def status(self) -> dict[str, Any]:
        """Tell how it is: phase, counts, cost predicted and actual; see `swathe.jobs.Job`."""
        return self.portal._get(self._path)

    def wait(self, timeout_s: float | None = None, *, progress: bool = False) -> dict[str, Any]:
        """Give its status when it has ended, or after a time.

        Args:
            timeout_s: how long to wait; by default as long as it takes.
            progress: show a bar, if standard error is a terminal.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        status = self.status()
        with progress_bar("cutting", progress, status["rows"]) as show:
            while True:
                counts = status["counts"]
                show(sum(counts.values()) - counts.get("waiting", 0))
                left_s = WAIT_S if end is None else end - time.monotonic()
                if status["phase"] in ENDED or left_s <= 0:
                    return status
                wait_s = min(left_s, SHOW_S if progress else WAIT_S)
                status = self.portal._get(self._path, wait=wait_s, phase=status["phase"])

    def rows(self, status: str | None = None) -> Iterator[dict[str, Any]]:
        """Give its rows in your order: those of one status, or all."""
        start: int | None = 0
        while start is not None:
            asked: dict[str, Any] = {"start": start, "limit": 10_000}
            found = self.portal._get(f"{self._path}/rows", **asked, **_given(status=status))
            yield from found["rows"]
            start = found["next"]

    def manifest(
        self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> Table:
        """Return what became of every row as a table; write it, too, if a path is given."""
        with self.portal._reading(f"{self._path}/manifest") as answer:
            content = answer.read()
        if path is not None:
            write_file(path, lambda file: file.write(content), overwrite=overwrite, durable=True)
        from astropy.table import Table

        return Table.read(content.decode(), format="ascii.ecsv", fill_values=[])

    def start(self) -> dict[str, Any]:
        """Let it begin, if it was submitted not to."""
        return self.portal._post(f"{self._path}/start")

    def cancel(self) -> dict[str, Any]:
        """Stop it; what is done stays."""
        return self.portal._post(f"{self._path}/cancel")

    def resume(self) -> dict[str, Any]:
        """Have failed rows, and those not done, worked on again."""
        return self.portal._post(f"{self._path}/resume")

    def delete(self) -> None:
        """Stop it and remove all of it, with its results."""
        self.portal._once("DELETE", self._path)

    def fetch(
        self, output: str | os.PathLike[str], *, overwrite: bool = False, progress: bool = False
    ) -> Table:
        """Fetch its results when it has ended.

        Into a folder they come file by file: what is there already stays, what was broken off goes
        on. Every file is compared with its checksum, also those within a zip or tar file.

        Args:
            output: a folder, or a `.zip`, `.tar` or multi-extension `.fits` file.
            overwrite: replace files of the same names. In a folder, those that were fetched of
                this job before and are damaged are replaced in any case.
            progress: show a bar, if standard error is a terminal.

        Returns:
            The manifest, which is also written as `manifest.ecsv` into the folder; of `o.zip` as
            `o.manifest.ecsv` beside it.

        Raises:
            OutputExistsError: if there is a file of such a name, and `overwrite` is false.
            OutputError: where the results cannot be written, or would replace a local file that
                the job read.
            SourceError: where they do not come, or not as they should be.
        """
        self.wait(progress=progress)
        path = Path(output)
        kind = ARCHIVES.get(path.suffix.lower())
        place = manifest_path(path, kind or "folder")
        make_folder(place.parent)
        with sole_writer(place):
            own = kind is None and manifest_meta(place).get("job") == self.id
            done = list(self.rows("ok"))
            # Stores of this machine's catalogue may be those of the portal.
            sources = local_paths({str(row["source"]) for row in done})
            for file in (place,) if kind is None else (place, path):
                if file.exists():
                    check_output(file, overwrite=overwrite or own, sources=sources)
            # What went into a stack or a picture has no file.
            results = [row for row in done if row["name"] or row["sha256"]]
            try:
                if kind is None:
                    names = [str(row["name"]) for row in results]
                    check_new(path, names, overwrite=True, sources=lambda: sources)
                    self._fetch_files(path, results, overwrite or own, progress)
                else:
                    self._fetch_archive(path, kind, results, overwrite)
            except OSError as error:
                if isinstance(error, SwatheError):
                    raise
                raise OutputError(f"{path}: {error}") from error
            return self.manifest(place, overwrite=overwrite or own)

    def _fetch_files(
        self, folder: Path, wanted: Sequence[Mapping[str, Any]], replace: bool, progress: bool
    ) -> None:
        with (
            progress_bar("fetching", progress, len(wanted)) as show,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            try:
                fetched = pool.map(lambda row: self._fetch_file(folder, row, replace), wanted)
                for done, _ in enumerate(fetched, 1):
                    show(done)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _fetch_file(self, folder: Path, row: Mapping[str, Any], replace: bool) -> None:
        """Fetch a result, or the rest of it, unless it is there; another may be replaced."""
        name, size, sha256 = str(row["name"]), int(row["bytes"]), str(row["sha256"])
        if not NAME.fullmatch(name):
            raise SourceError(f"{self.portal.url}: {name[:100]!r} is no name of a result")
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
                if os.path.lexists(path):  # it is replaced
                    file.flush()
                    os.fsync(file.fileno())
            if _size(part) == size and _sha256(part) == sha256:
                publish(part, path, overwrite=replace)
                return
            # What was there before may be of another run: once more, from the start.
            part.unlink()
        raise SourceError(f"{self.portal.url}: {name} came with other bytes than its checksum says")

    def _fetch_archive(
        self, path: Path, kind: str, results: Sequence[Mapping[str, Any]], overwrite: bool
    ) -> None:
        expected = {row["name"]: row["sha256"] for row in results}
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


def _part(path: Path) -> Path:
    """Give the hidden name of a file that has not come whole: it stays when that is broken off."""
    return path.with_name(f".{path.name}.part")


def _compare(path: Path, kind: str, expected: dict[str, str]) -> None:
    """Compare an archive with the checksums of what should be in it.

    Raises:
        SourceError: where they differ.
    """
    for name, sha256 in _members(path, kind):
        if expected.pop(name, sha256) != sha256:
            raise SourceError(f"{path}: {name} has other bytes than its checksum says")
    if expected:
        raise SourceError(f"{path}: {min(expected)} is missing")


def _members(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    """Give name and checksum of the members of an archive."""
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    with archive.open(name) as member:
                        yield name, _digest(member)
        else:
            with tarfile.open(path, "r:") as members:
                for found in members:
                    opened = members.extractfile(found)
                    if opened is not None:
                        yield found.name, _digest(opened)
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


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _checked(url: str) -> str:
    """Give the URL of a portal, without a slash at its end.

    Raises:
        SettingsError: where it is none, or holds a password.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it raises
    except ValueError:
        raise SettingsError("the portal's URL cannot be read: host or port") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise SettingsError("a portal's URL has no user, query or fragment")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"a portal's URL is http(s)://host[:port], not {url[:100]!r}")
    return url.rstrip("/")


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        answer.read()
        found: dict[str, Any] = answer.json()
    except ValueError as error:
        raise SourceError(f"{answer.url}: no answer of a portal: {error}") from error
    if not isinstance(found, dict):
        raise SourceError(f"{answer.url}: no answer of a portal")
    return found


def _raise_for(answer: httpx.Response) -> None:
    """Raise what went wrong on the portal, as it would be raised here.

    Raises:
        SwatheError: of the kind that the portal tells.
    """
    if answer.is_success:
        return
    answer.read()
    status = answer.status_code
    try:
        told = answer.json()
        message, name = str(told["error"]), str(told["kind"])
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
    """Give a list in memory as JSON takes it: lines as they are, columns in standard units."""
    if isinstance(targets, list | tuple) and all(isinstance(line, str) for line in targets):
        return list(targets)
    from swathe.files.targets.columns import standard_columns
    from swathe.files.targets.target_list import read_list

    columns = standard_columns(read_list(targets).table)
    return {name: [_plain(value) for value in plain_cells(each)] for name, each in columns.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Bad):
        # The portal says what is wrong with it.
        return value.cell if isinstance(value.cell, str | float | int) else str(value.cell)
    if isinstance(value, Size):
        return str(value)
    return None if value != value else value  # NaN is unlike itself.
