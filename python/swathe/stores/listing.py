"""List the objects of a store below a prefix: folders, HTTP indexes, WebDAV, buckets."""

from __future__ import annotations

import fnmatch
import functools
import html
import http.client
import json
import os
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin, urlsplit

from swathe.catalog import WEBDAV
from swathe.core.errors import AccessError, DatasetError, NotFoundError, SourceError
from swathe.stores.folders import folders_of, is_within
from swathe.stores.registry import to_native
from swathe.stores.webdav import HEADERS, QUESTION, WebdavEntry, read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swathe.catalog import Store

TIMEOUT_S = 30
LONGEST_PATH_BYTES = 1_000
"""Limit of the catalogue for a path, in bytes of UTF-8."""
LONGEST_ETAG = 100
"""Limit of the catalogue for an ETag; all known ones are shorter."""
LARGEST_PAGE_BYTES = 256 << 20
LARGEST_XML_BYTES = 64 << 20
"""Limit of a WebDAV answer: about 100,000 objects in one folder. XML takes more memory."""
HIDDEN = "."
"""Prefix of names that are not objects of a dataset."""


@dataclass(frozen=True)
class ListedObject:
    """An object in a listing.

    Attributes:
        path: path in the store.
        size: size in bytes; `None` if the listing does not give it exactly.
        modified: modification time as the listing writes it; `None` if it gives none.
        etag: ETag without quotes; `None` if the listing gives none.
    """

    path: str
    size: int | None = None
    modified: str | None = None
    etag: str | None = None

    @property
    def mark(self) -> str | None:
        """Return the object's version mark: its ETag, else its time."""
        return self.etag or self.modified

    def shows_changes(self) -> bool:
        """Check whether a change of the object would show in the listing."""
        return self.size is not None and self.mark is not None


@dataclass(frozen=True)
class UnlistedObject:
    """An entry that could not be listed, and the reason."""

    path: str
    reason: str


def list_objects(
    store: Store, prefix: str, pattern: str | None, *, may_lack: bool = False
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects below a folder of a store whose names match the pattern.

    A pattern without a slash is matched with the last part of the path. A pattern with a slash is
    matched with the whole path after the prefix. A sub-folder that cannot be listed is yielded as
    `UnlistedObject` and does not stop the listing. With `may_lack` a missing folder yields nothing.

    Raises:
        NotFoundError, AccessError, SourceError: if the folder cannot be listed.
        DatasetError: if the server's answer is not an index.
    """
    scheme = store.url.partition("://")[0]
    if scheme == "file":
        root = unquote(store.url.removeprefix("file://"))
        if may_lack and not os.path.lexists(os.path.join(root, prefix)):
            return
        entries = _local(root, prefix, folders_of(store.url, store.options))
    elif to_native([store]).can_list(f"{store.name}:"):
        entries = _in_bucket(store, prefix, may_lack)
    else:
        entries = _list_served(store, prefix, may_lack)
    for each in entries:
        if isinstance(each, UnlistedObject) or matches(each.path, prefix, pattern):
            yield _check_length(each)


def read_list(
    file: Path, prefix: str, pattern: str | None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects named in a text file, one a line; skip empty lines and # lines.

    Raises:
        NotFoundError, SourceError: if the file cannot be read.
        DatasetError: if the file is not text, or a line is not a path below the prefix.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError as error:
        raise NotFoundError(f"{file}: no such list of objects") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file}: a list of objects is UTF-8 text: {error}") from error
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}") from error
    names = set()
    for number, line in enumerate(lines, 1):
        path = line.strip()
        if not path or path.startswith("#"):
            continue
        below = not prefix or path.startswith(f"{prefix}/") or path == prefix
        if path.startswith("/") or "://" in path or ".." in path.split("/") or not below:
            raise DatasetError(
                f"{file}, line {number}: expected the path of an object in the store, below "
                f"{prefix or 'its root'!r}; found {path[:100]!r}"
            )
        if path not in names and matches(path, prefix, pattern):
            names.add(path)
            yield _check_length(ListedObject(path))


_SET = re.compile(r"\[!?(?:\][^\]]*(\])|[^\]]*(\]?))")
"""Set of characters in a pattern, with its end if it has one."""


def validate_pattern(pattern: str | None) -> str | None:
    """Return the pattern if it is valid.

    Raises:
        DatasetError: if the pattern is empty, or has a [ without a ].
    """
    if pattern is None:
        return None
    is_open = any(not (each[1] or each[2]) for each in _SET.finditer(pattern))
    if not pattern or is_open or pattern.startswith("/") or "\0" in pattern:
        raise DatasetError(
            f"a pattern is that of names, as *.fits or run[0-9]*/frame-*.fits.bz2; not {pattern!r}"
        )
    return pattern


def matches(path: str, prefix: str, pattern: str | None) -> bool:
    """Check whether a path matches a pattern."""
    if pattern is None:
        return True
    below = path.removeprefix(f"{prefix}/") if prefix else path
    compared = below if "/" in pattern else below.rpartition("/")[2]
    return fnmatch.fnmatchcase(compared, pattern)


def _check_length(entry: ListedObject | UnlistedObject) -> ListedObject | UnlistedObject:
    try:
        length = len(entry.path.encode())
    except UnicodeEncodeError:
        shown = entry.path.encode("utf-8", "backslashreplace").decode()
        return UnlistedObject(shown, "its name is not UTF-8 text")
    if length > LONGEST_PATH_BYTES:
        return UnlistedObject(
            entry.path, f"its path has {length} bytes, more than {LONGEST_PATH_BYTES}"
        )
    return entry


def _local(
    root: str, prefix: str, folders: tuple[str, ...]
) -> Iterator[ListedObject | UnlistedObject]:
    start = os.path.join(root, prefix) if prefix else root
    if not is_within(start, folders):
        raise AccessError(f"{start}: leads out of its store")
    if os.path.isfile(start):
        yield _entry_of_file(prefix, os.stat(start))
        return
    waiting = [prefix]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(root, folder) if folder else root) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if folder != prefix:
                yield UnlistedObject(folder, f"its folder cannot be listed: {error.strerror}")
                continue
            raise _local_error(start, error) from error
        for entry in inside:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(HIDDEN):
                continue
            try:
                if entry.is_symlink() and not is_within(entry.path, folders):
                    yield UnlistedObject(path, "a link that leads out of its store")
                # Links to folders could form loops.
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif entry.is_file():
                    yield _entry_of_file(path, entry.stat())
            except OSError as error:
                yield UnlistedObject(path, f"{error.strerror}")


def _entry_of_file(path: str, stat: os.stat_result) -> ListedObject:
    return ListedObject(path, stat.st_size, str(stat.st_mtime_ns))


def _local_error(path: str, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFoundError(f"{path}: no such folder")
    if isinstance(error, PermissionError):
        return AccessError(f"{path}: the folder may not be listed")
    return SourceError(f"{path}: {error.strerror}")


def _list_served(
    store: Store, prefix: str, may_lack: bool
) -> Iterator[ListedObject | UnlistedObject]:
    engine = to_native([store])
    token = engine.bearer(f"{store.name}:")
    root = (engine.asked_by_http(f"{store.name}:") or store.url).rstrip("/")
    scheme = store.url.partition("://")[0]
    by_webdav = None if scheme in WEBDAV else False
    is_xrootd = scheme in ("root", "roots")
    waiting = [prefix]
    folders = set(waiting)
    while waiting:
        folder = waiting.pop()
        url = f"{root}/{quote(folder)}/" if folder else f"{root}/"
        try:
            inside = _inside(url, token, by_webdav, is_xrootd)
            by_webdav = inside is not None
            if inside is None:
                inside = _entries(url, *_page(url, token))
        except (AccessError, NotFoundError, SourceError, DatasetError) as error:
            if folder == prefix:
                if may_lack and isinstance(error, NotFoundError):
                    return
                raise
            yield UnlistedObject(folder, str(error))
            continue
        for each in inside:
            path = f"{folder}/{each.name}" if folder else each.name
            if each.name.startswith(HIDDEN):
                continue
            if each.fault:
                yield UnlistedObject(path, f"{url}{quote(each.name)}: {each.fault}")
            elif not each.is_folder:
                etag = each.etag[:LONGEST_ETAG] if each.etag else None
                yield ListedObject(path, each.size, each.modified, etag)
            elif path not in folders:
                folders.add(path)
                waiting.append(path)


def _in_bucket(
    store: Store, prefix: str, may_lack: bool
) -> Iterator[ListedObject | UnlistedObject]:
    listing = to_native([store]).list(f"{store.name}:{prefix}")
    is_bucket = not prefix and store.url.count("/") == 2
    lacks = not (may_lack or is_bucket)
    before: ListedObject | None = None
    while (page := listing.next_page()) is not None:
        lacks = lacks and not page
        for path, size, modified, etag in page:
            # Some programs mark a folder by an empty object before those in it.
            if before and not (before.size == 0 and path.startswith(f"{before.path}/")):
                yield before
            hidden = path.startswith(HIDDEN) or f"/{HIDDEN}" in path
            tag = etag.strip('"')[:LONGEST_ETAG] if etag else None
            before = None if hidden else ListedObject(path, size, modified, tag)
    if before:
        yield before
    if lacks:
        raise NotFoundError(f"{store.url}/{prefix}: no such folder")


def _page(url: str, token: str | None) -> tuple[str, bytes]:
    """Return the content type and the text of an index."""
    request = urllib.request.Request(url, headers={"Accept": "application/json, text/html"})
    try:
        final_url, headers, content = _answer(url, request, token, LARGEST_PAGE_BYTES)
    except urllib.error.HTTPError as error:
        raise _refusal(url, error.code) from None
    if not final_url.endswith("/"):
        raise DatasetError(f"{url}: expected its index, found a redirect to {final_url}")
    return headers.get_content_type(), content


def _refusal(url: str, status: int) -> Exception:
    if status in (401, 403):
        return AccessError(f"{url}: its index may not be read: status {status}")
    if status in (404, 410):
        return NotFoundError(f"{url}: no such folder: status {status}")
    return SourceError(f"{url}: its index cannot be read: status {status}")


NO_WEBDAV = (403, 405, 501)
"""Status codes of servers that write by WebDAV but list only by index; nginx sends 403."""


def _inside(
    url: str, token: str | None, by_webdav: bool | None, is_xrootd: bool
) -> list[WebdavEntry] | None:
    """Return the entries of a folder on a WebDAV server; `None` if an index must be read instead.

    If this is not yet known for the first folder (`None`), it holds for all other folders.
    """
    if by_webdav is False:
        return None
    request = urllib.request.Request(url, QUESTION, HEADERS, method="PROPFIND")
    try:
        final_url, headers, content = _answer(url, request, token, LARGEST_XML_BYTES)
    except urllib.error.HTTPError as error:
        if by_webdav or error.code not in NO_WEBDAV:
            raise _refusal(url, error.code) from None
        return None
    server = headers.get("Server", "")
    # dCache also serves root://, but encodes names; a proxy may be in front of either.
    is_xrootd = server.startswith("XrootD") or (is_xrootd and not server.startswith("dCache"))
    # After a redirect, names are those of the server redirected to.
    inside = list(read_folder(final_url, content, not is_xrootd))
    if is_xrootd:
        why = "XRootD cuts names at a ?, also an encoded one, and would return another object"
        inside = [each._replace(fault=why) if "?" in each.name else each for each in inside]
    return inside


class _Redirected(urllib.request.HTTPRedirectHandler):
    """Redirect handler that repeats the method and body of the request; urllib would give up."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.get_method() != "PROPFIND" or code not in (301, 302, 307, 308):
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        return urllib.request.Request(newurl, req.data, req.headers, method="PROPFIND")


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirected)


def _answer(
    url: str, request: urllib.request.Request, token: str | None, most_bytes: int
) -> tuple[str, http.client.HTTPMessage, bytes]:
    """Return the URL that answered at last, the headers, and the content."""
    if token:
        # Not sent to a server we are redirected to.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with _opener().open(request, timeout=TIMEOUT_S) as answer:
            final_url, headers = answer.geturl(), answer.headers
            content: bytes = answer.read(most_bytes + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise SourceError(f"{url}: its index cannot be read: {reason}") from error
    # A truncated index would make the missing objects look deleted.
    announced, size = headers["Content-Length"], len(content)
    if size > most_bytes or announced not in (None, str(size)):
        raise SourceError(
            f"{url}: expected an index of {announced or 'some'} bytes, at most "
            f"{most_bytes}; found {size}"
        )
    return final_url, headers, content


def _entries(url: str, kind: str, content: bytes) -> list[WebdavEntry]:
    if kind == "application/json":
        return _json_entries(url, content)
    if kind == "text/html":
        return _html_entries(url, content.decode("utf-8", "replace"))
    raise DatasetError(
        f"{url}: expected an index of the folder, as JSON or HTML; found {kind}; give --objects "
        "FILE, a text file with the path of one object on each line"
    )


def _json_entries(url: str, content: bytes) -> list[WebdavEntry]:
    """Parse an index as nginx writes it with `autoindex_format json`."""
    try:
        return [
            WebdavEntry(
                str(each["name"]).rstrip("/"),
                each["type"] == "directory",
                int(each["size"]) if "size" in each else None,
                str(each["mtime"]) if "mtime" in each else None,
            )
            for each in json.loads(content)
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise DatasetError(
            f"{url}: expected a list of name, type, size and mtime, as nginx writes; found "
            f"{content[:60]!r}"
        ) from error


_TAG = re.compile(r"<a\s([^>]*)>?|</a>([^<]*)", re.IGNORECASE)
_HREF = re.compile(r"href\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE)
_TIMED = re.compile(r"(\d{1,4}-\w{2,3}-\d{2,4}\s+\d\d:\d\d(?::\d\d)?)(?:\s+(\S+))?")


def _html_entries(url: str, page: str) -> list[WebdavEntry]:
    """Parse an index as nginx and Apache write it: links, each followed by time and size."""
    if "<a" not in page.lower():
        raise DatasetError(f"{url}: expected an index of the folder; found a page without links")
    entries: dict[str, WebdavEntry] = {}
    base = urlsplit(url)
    for link, behind in _links(page):
        target = urlsplit(urljoin(url, html.unescape(link)))
        below = target.path.removeprefix(base.path)
        name = unquote(below.rstrip("/"))
        elsewhere = target.netloc != base.netloc or below == target.path
        if elsewhere or target.query or not name or "/" in name:
            continue
        match = _TIMED.search(behind)
        size = int(match[2]) if match and match[2] and match[2].isdecimal() else None
        entries[name] = WebdavEntry(name, below.endswith("/"), size, match[1] if match else None)
    return list(entries.values())


def _links(page: str) -> Iterator[tuple[str, str]]:
    """Yield the target of each link, and the text after it."""
    link = None
    for tag in _TAG.finditer(page):
        if tag[1] is None:
            if link is not None:
                yield link, tag[2]
            link = None
        elif link is None and (href := _HREF.search(tag[1])):
            link = href[1]
