"""Requests to a portal, with retries, and its errors as those of local calls."""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from swathe.core import errors
from swathe.core.angles import Size
from swathe.core.argument_checks import check_text
from swathe.core.errors import SettingsError, SourceError, SwatheError, TargetsError
from swathe.core.format import size_text
from swathe.files.targets.cells import InvalidCell, plain_cells
from swathe.files.targets.columns import ListOptions
from swathe.files.targets.table_files import is_packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

CONNECT_S, ANSWER_S = 10.0, 120.0
TRIES = 6
"""Number of tries per request. A portal that restarts is up again before the last one."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Pause between tries. It doubles each time; `Retry-After` makes it longer, up to the maximum."""
NO_CONTENT = 204
RETRY_STATUSES = (429, 502, 503, 504)
"""HTTP statuses of errors that may pass."""
BLOCK = 1 << 20
"""Bytes of an answer unpacked at once."""
MOST_JSON_BYTES = 64 << 20
"""Maximum size of an unpacked JSON answer: ten times a page of 10,000 rows with long names."""
MOST_ERROR_BYTES = 1 << 20
"""Maximum size of the unpacked JSON of an error."""


class PortalConnection:
    """A connection to a portal. May be shared by threads."""

    def __init__(self, url: str, token: str | None) -> None:
        """Set up the connection; nothing is sent yet."""
        import httpx

        from swathe._swathe import __version__

        self.url = _portal_url(url)
        headers = {"User-Agent": f"swathe/{__version__}", "Accept-Encoding": "gzip"}
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

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get_json(self, path: str, **parameters: Any) -> dict[str, Any]:
        """Return the JSON of a GET request, with retries."""
        with self.open_answer(path, parameters) as answer:
            return _read_json(answer)

    def post_json(self, path: str, **content: Any) -> dict[str, Any]:
        """Return the JSON of a POST request, which is sent once."""
        return self.request_once("POST", path, **content)

    def request_once(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        """Return the JSON of a request sent once, as a retry could repeat its effect."""
        import httpx

        try:
            with self._http.stream(method, f"{self.url}/api/{path}", **content) as answer:
                _raise_for(answer)
                return _read_json(answer) if answer.status_code != NO_CONTENT else {}
        except httpx.HTTPError as error:
            raise self._connection_error(error) from error

    def send_targets(
        self,
        path: str,
        targets: Any,
        choices: ListOptions,
        options: Mapping[str, Any],
        fields: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Send a list of targets with the options of a job; return the JSON of the answer.

        A file is sent as it is, unless it is packed, or `choices` fill in what it lacks.
        """
        is_compressed = isinstance(targets, str | os.PathLike) and is_packed(Path(targets))
        if not isinstance(targets, str | os.PathLike) or is_compressed or choices != ListOptions():
            return self.post_json(
                path,
                json={"targets": _json_targets(targets, choices), "options": options, **fields},
            )
        table = Path(targets)
        form = {"options": json.dumps(options)}
        form |= {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in fields.items()
        }
        try:
            file = table.open("rb")
        except FileNotFoundError as error:
            raise errors.NotFoundError(f"{table}: no such table of targets") from error
        except OSError as error:
            raise TargetsError(f"{table}: {error.strerror}") from error
        with file:
            return self.post_json(path, data=form, files={"targets": (table.name, file)})

    @contextmanager
    def open_answer(
        self, path: str, parameters: Mapping[str, Any] | None = None, first_byte: int = 0
    ) -> Iterator[httpx.Response]:
        """Yield a response whose body is not read yet."""
        import httpx

        answer = self._answer(path, parameters or {}, first_byte)
        try:
            _raise_for(answer)
            yield answer
        except httpx.HTTPError as error:
            raise self._connection_error(error) from error
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
                    raise self._connection_error(error) from error
            else:
                if answer.status_code not in RETRY_STATUSES or number == TRIES:
                    return answer
                answer.close()
                retry_after = answer.headers.get("retry-after", "")
                if retry_after.isdecimal():
                    pause_s = max(pause_s, float(retry_after[:6]))
            time.sleep(min(pause_s, LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")

    def _connection_error(self, error: Exception) -> SourceError:
        import httpx

        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        if isinstance(error, httpx.ConnectError):
            reason = f"cannot connect: {reason}; is a portal running there?"
        return SourceError(f"{self.url}: {reason}")


def _portal_url(url: str) -> str:
    """Return the URL of a portal, without a slash at its end.

    Raises:
        SettingsError: If the URL is invalid, or has a user or password.
    """
    check_text("url", url)
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


def content_blocks(answer: httpx.Response) -> Iterator[bytes]:
    """Yield the unpacked content of an answer, each block of at most BLOCK bytes.

    Raises:
        SourceError: If it is packed in another way than gzip, or damaged.
    """
    encoding = answer.headers.get("content-encoding", "identity").lower()
    if encoding == "identity":
        yield from answer.iter_raw(BLOCK)
        return
    if encoding not in ("gzip", "x-gzip"):
        raise SourceError(
            f"{answer.url}: expected content packed with gzip or not, found {encoding[:50]!r}"
        )
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    packed_bytes = unpacked_bytes = 0
    try:
        for content in answer.iter_raw(BLOCK):
            packed_bytes += len(content)
            while content:
                block = unpacker.decompress(content, BLOCK)
                unpacked_bytes += len(block)
                yield block
                content = unpacker.unconsumed_tail
            # Empty parts of gzip could be sent without an end, and no limit of size would count.
            if packed_bytes > 1.01 * unpacked_bytes + 2 * BLOCK:
                raise SourceError(f"{answer.url}: expected gzip, found parts without content")
            if unpacker.unused_data:  # it would be kept, without an end
                raise SourceError(f"{answer.url}: expected the end of gzip, found more content")
        yield unpacker.flush()
    except zlib.error as error:
        raise SourceError(f"{answer.url}: expected gzip, found damaged content: {error}") from error
    if not unpacker.eof:
        raise SourceError(f"{answer.url}: expected gzip to its end, found a part of it")


def read_content(answer: httpx.Response, most_bytes: int) -> bytes:
    """Return the unpacked content of an answer.

    Raises:
        SourceError: If it is larger than `most_bytes`, or damaged.
    """
    content = bytearray()
    for block in content_blocks(answer):
        content += block
        if len(content) > most_bytes:
            raise SourceError(
                f"{answer.url}: expected an answer of at most {size_text(most_bytes)}, found more"
            )
    return bytes(content)


def _read_json(answer: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer.

    Raises:
        SourceError: If it is not a JSON object, or too large.
    """
    data = read_content(answer, MOST_JSON_BYTES)
    try:
        content: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
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
    status = answer.status_code
    try:
        content = json.loads(read_content(answer, MOST_ERROR_BYTES))
        message, name = str(content["error"]), str(content["kind"])
    except (ValueError, KeyError, TypeError, RecursionError, SourceError):
        message, name = f"{answer.url}: answered {status}", ""
    kind = errors.error_class(name)
    if kind is None:
        kind = _KINDS.get(status, SwatheError if 400 <= status < 500 else SourceError)
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


def _json_targets(targets: Any, choices: ListOptions) -> dict[str, list[Any]] | list[str]:
    """Return targets as JSON values: lines unchanged, columns in standard units.

    Raises:
        TargetsError: If the list cannot be read.
    """
    is_lines = isinstance(targets, list | tuple) and all(isinstance(line, str) for line in targets)
    if is_lines and choices == ListOptions():
        return list(targets)
    from swathe.files.targets.columns import standard_columns
    from swathe.files.targets.list_tables import read_list

    table, _, faults = read_list(targets, choices)
    if faults:
        raise TargetsError(next(iter(faults.values())))
    columns = standard_columns(table, choices)
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
