"""The native half of Swathe. Use the classes of the package, which have defaults and units."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray
from typing_extensions import Buffer

__version__: str
TRUSTED_S: float
"""Seconds after which a server is asked again whether an object is still the same."""

Mode: TypeAlias = Literal["trim", "partial", "strict"]
OutputKind: TypeAlias = Literal["folder", "zip", "tar", "fits"]
HduKey: TypeAlias = int | str | tuple[str, int]

class Stores:
    """The storages that are known."""

    def __init__(self, described: str, costs: str = "{}", compute: str | None = None) -> None:
        """Take a JSON list of `{"name", "root", "options"}`, and costs measured, by `store_key`.

        `compute` is what computing costs on this host, as `measure_host` gives it.
        """

    def locate(self, path: str) -> tuple[str, str]:
        """Key of the store of an object, see `store_key`, and the object's URL or path."""

    def is_writable(self, path: str) -> bool:
        """Whether an object can be written: to a folder, a bucket, WebDAV or XRootD."""

    def can_list(self, path: str) -> bool:
        """Whether `list` lists what the store of an object holds."""

    def local_path(self, path: str) -> Path | None:
        """The path of an object that is a file of this machine; None of others."""

    def bearer(self, path: str) -> str | None:
        """The bearer token that the server of an object is sent."""

    def asked_by_http(self, path: str) -> str | None:
        """The URL by which the server of an object is asked for it; None of buckets."""

    def open(self, path: str) -> Source:
        """Open an object to read its bytes."""

    def list(self, place: str) -> Listing:
        """The objects of a bucket at or below `NAME:prefix`, or below `NAME:prefix/`, by pages."""

    def remove(self, path: str) -> None:
        """Remove an object, if there is one, of a folder, a bucket, or a WebDAV server."""

class Source:
    """An open object, whatever it holds; all that is read is of one version, or an error."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def version(self) -> str: ...
    def read(self, start: int, stop: int) -> bytes:
        """The bytes `[start, stop)`, at most 64 MiB."""

    def measure(
        self, requests: Sequence[tuple[int, int]], streams: int, *, fresh: bool = False
    ) -> list[Timing]:
        """Time reads of `(offset, length)`, so many in flight; `fresh`: each anew connected."""

class Listing:
    """The objects of a bucket, page by page."""

    def next_page(self) -> list[tuple[str, int, str, str | None]] | None:
        """Path in the store, bytes, time and ETag of some; `None` when all were given."""

class Copies:
    """Objects that are being copied by threads of their own, until this is dropped."""

    def __init__(
        self, orders: Sequence[tuple[str, str, str]], threads: int, stores: Stores
    ) -> None:
        """Take the object, the version it must have, and where to."""

    def poll(self, timeout_s: float) -> list[Copied] | None:
        """What was done since the last call, perhaps nothing; `None` when all is told."""

    @property
    def bytes(self) -> int:
        """Bytes written so far."""

    def cancel(self) -> None: ...

class Copied:
    """An object that was copied, or could not be."""

    @property
    def number(self) -> int:
        """Which of the orders."""

    @property
    def version(self) -> str:
        """That of the copy."""

    @property
    def read_back(self) -> bool:
        """Whether it was, because the store tells no MD5 of what it was sent."""

    @property
    def kind(self) -> str | None:
        """Class of the error, if it could not be copied."""

    @property
    def reason(self) -> str: ...

class Timing:
    """One request of a measurement; seconds since the measurement began."""

    @property
    def bytes(self) -> int: ...
    @property
    def start_s(self) -> float: ...
    @property
    def first_byte_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...

def open(url: str, stores: Stores | None = None, fresh: bool = False) -> Object:
    """Open an object; `fresh`: ask its server which version it has, whatever the index says."""

def store_key(root: str, options: Mapping[str, str]) -> str:
    """Root under which what is measured of a store is filed: `catalog.Store.key`."""

def assumed_costs(local: bool) -> str:
    """Costs taken for granted of a store before it was probed, as JSON."""

def measure(
    url: str,
    requests: Sequence[tuple[int, int]],
    streams: int,
    *,
    fresh: bool = False,
    stores: Stores | None = None,
) -> list[Timing]:
    """Open an object and time reads of it: `Source.measure`."""

def measure_open(url: str, stores: Stores | None = None) -> tuple[float, int]:
    """Open an object anew: seconds, and its bytes."""

def measure_restarts(path: str) -> list[float]:
    """Seconds that decoding takes to start at each seek point of a compressed file."""

def take_timings() -> list[tuple[str, int, int, float, float]]:
    """Timings of real requests since the last call.

    Each is root of the store, bytes, requests in flight, seconds to the first byte, seconds.
    """

class Kept:
    """What a folder of kept things holds: the blocks of files on servers, or the index."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def values(self) -> int:
        """Files."""

    @property
    def bytes(self) -> int:
        """What they take on disk."""

    @property
    def limit(self) -> int:
        """Bytes allowed."""

def kept(name: Literal["blocks", "index"]) -> Kept:
    """Look what is kept."""

def clear_kept(name: Literal["blocks", "index"]) -> None:
    """Remove all that is kept."""

class SimulatedShelf:
    """What a block cache would hold: it keeps and evicts as those on disk do, without the bytes.

    Objects are in blocks of equal size, and go block by block. Times are seconds of the caller's.
    """

    def __init__(self, limit_bytes: int) -> None: ...
    @property
    def bytes(self) -> int:
        """What is taken."""

    @property
    def young_bytes(self) -> int:
        """What stays until it is read: no more is asked of peers for one read."""

    def note(
        self, name: str, blocks: int, block_bytes: int, seconds: float, now_s: float
    ) -> list[tuple[str, int]]:
        """Note that an object was used of which so many blocks are here now, old and new.

        Each takes `seconds` to fetch again. Gives how many blocks must go of what.
        """

    def drop(self, name: str) -> None:
        """Note that an object is not here any more."""

def confine(hosts: list[str]) -> None:
    """Let these servers, `host` or `host:port`, redirect only to each other, in this process.

    All others lead anywhere.
    """

def share_blocks(
    address: str, token: str, certificates: tuple[str, str, str] | None = None
) -> int | None:
    """Give blocks to other workers from now on, on a free port, and ask them for theirs.

    Args:
        address: to listen at, a number.
        token: without it nobody gets any.
        certificates: that of the authority, one's own and its key; then by TLS only, and with
            certificates of the same authority.

    Gives the port; nothing where no blocks are kept.
    """

def blocks_are_at(peers: dict[str, list[tuple[str, str]]]) -> None:
    """Tell which workers have blocks of objects: URL and token of each, to be asked in order."""

def blocks_of(objects: list[str]) -> list[int]:
    """Give how many bytes are kept of objects that this process has opened, by these names."""

Described = tuple[str, str, int, float, float, list[int]]
"""Of an object: URL, place and version, size, seconds of a request to its store and of a byte,
and numbers of the cells that are here."""

def blocks_described(objects: list[str]) -> list[Described | None]:
    """Tell what others must know to pull objects that this process has opened, by these names."""

def pull_blocks(
    name: str, told: Described, peers: list[tuple[str, str]], limit_s: float, only: bool
) -> tuple[int, int]:
    """Fetch blocks of an object from workers that have them; gives bytes, and how many came.

    Args:
        name: of the object.
        told: what one of them says of it.
        peers: URL and token of each, to be asked in order.
        limit_s: no longer than that.
        only: nobody else will have it, so that it is worth what its store asks for it.
    """

def peer_costs() -> tuple[float, float] | None:
    """Tell what other workers cost of late: seconds until they answer, bytes per second."""

def rename_each(moves: list[tuple[str, str]]) -> int:
    """Rename files, in order, up to the first that cannot be; tells how many were."""

def shown(url: str) -> str:
    """Give a path or URL as anyone may see it: without password, and "..." for what is secret."""

class Object:
    """An open object at one version."""

    @property
    def url(self) -> str: ...
    @property
    def kind(self) -> Literal["plain", "gzip", "bzip2", "compress"]: ...
    @property
    def size(self) -> int:
        """Bytes as stored."""

    @property
    def version(self) -> str: ...
    def notes(self) -> list[str]:
        """What the user should be told, since the last call."""

    def hdus(self) -> list[HduInfo]: ...
    def find(self, hdu: HduKey | None = None) -> int:
        """The number of an HDU; the first image by default."""

    def shape(self, hdu: int) -> list[int]:
        """Shape of an image, NumPy order."""

    def header(self, hdu: int) -> bytes:
        """Header blocks, of a compressed image as if it were not."""

    def wcs_hdus(self, hdu: int) -> bytes:
        """A FITS file of the lookup tables the image's WCS names; empty where it names none."""

    def cut(
        self,
        hdu: int,
        start: Sequence[int],
        stop: Sequence[int],
        mode: Mode,
        fill: float | None = None,
    ) -> Cutout:
        """Cut `[start, stop)`, zero-based, NAXIS1 first, all axes of the image."""

class HduInfo:
    """What is in an HDU; shapes in NumPy order."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def version(self) -> int: ...
    @property
    def kind(self) -> Literal["image", "compressed-image", "table", "empty", "other"]: ...
    @property
    def bitpix(self) -> int | None: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def codec(self) -> str | None: ...
    @property
    def tile_shape(self) -> list[int] | None: ...
    @property
    def data_start(self) -> int: ...
    @property
    def problem(self) -> str | None:
        """Why the image cannot be cut from, if it cannot."""

class Cutout:
    """A complete FITS file of a region, in memory."""

    @property
    def stored(self) -> Buffer:
        """The stored pixels, big-endian."""

    @property
    def bitpix(self) -> int: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def native(self) -> bool:
        """Whether the source was tile-compressed."""

    @property
    def scaling(self) -> tuple[float, float, int | None]:
        """BSCALE, BZERO and BLANK."""

    @property
    def header(self) -> bytes: ...
    @property
    def start(self) -> list[int]: ...
    def fits(self) -> bytes: ...

class Job:
    """Many targets: boxes of images, and where the cutouts go."""

    def __init__(
        self,
        files: list[str],
        file: NDArray[Any],
        hdu: list[HduKey | None],
        hdu_index: NDArray[Any],
        boxes: NDArray[Any],
        names: list[str],
        *,
        output: str,
        kind: OutputKind,
        mode: Mode = "trim",
        fill: float | None = None,
        planes: Sequence[tuple[int, int]] = (),
        threads: int = 1,
        append: int | None = None,
        overwrite: bool = False,
        stores: Stores | None = None,
        ids: list[str] | None = None,
        most_bytes: int | None = None,
    ) -> None: ...
    def start(self) -> Batch:
        """Start cutting."""

    def open(self) -> Output:
        """Open its output, for results that are made in Python; nothing is cut.

        Raises:
            OutputError: if it cannot be written.
        """

    def estimate(
        self, compute: str | None = None, most: int | None = None, machines: int = 1
    ) -> str:
        """What it will cost, storage by storage, as a JSON list.

        Of each storage at most `most` objects are looked into; so many `machines` like this one
        share the work. `compute` are the costs of this host, as JSON.
        """

class Output:
    """The output of a job, open for results that are made in Python."""

    def put(self, name: str, content: bytes) -> None:
        """Write a result by the rules of a batch; of `.fits` it is the bytes of extensions.

        Raises:
            OutputExistsError: if there is a file of this name that is not to be replaced.
            OutputError: if it cannot be written, or is a source.
        """

    def close(self, manifest: bytes) -> None:
        """Close it, as `Batch.close`."""

class Batch:
    """A running batch."""

    def poll(self, timeout_s: float) -> Rows | None:
        """Rows finished since the last call, perhaps none; `None` when all are told."""

    def gather(
        self, enough: int, timeout_s: float
    ) -> tuple[bytes, bytes, bytes, list[str], bytes, list[tuple[int, str, str]]] | None:
        """Rows finished since the last call, by columns, as soon as there are `enough`.

        After `timeout_s` those there are, perhaps none; `None` when all are told. Targets and
        bytes are 64-bit integers, digests 32 bytes each; then the versions there are, and the
        number of that of each row, 32 bits; place among these rows, status and reason of what
        failed.
        """

    def cancel(self) -> None: ...
    def finish(self) -> dict[str, Any]:
        """Wait for the threads; seconds per stage, bytes, notes."""

    def close(self, manifest: bytes) -> None:
        """Close the output of a finished batch: an archive ends with the manifest, and is named.

        A batch that is not closed leaves an unfinished archive; a folder lacks nothing.

        Raises:
            OutputExistsError: if there is such an archive that is not to be replaced.
            OutputError: if it cannot be written.
        """

def zip_members(path: str) -> list[tuple[str, int, int]]:
    """Return the whole members of a zip archive: name, bytes, and where each ends.

    Its directory, which one that was broken off lacks, is not needed.
    """

class Rows:
    """Finished rows, as parallel lists."""

    @property
    def target(self) -> list[int]: ...
    @property
    def status(self) -> list[str]: ...
    @property
    def reason(self) -> list[str]: ...
    @property
    def bytes(self) -> list[int]: ...
    @property
    def version(self) -> list[str]: ...
    @property
    def sha256(self) -> list[str]: ...

class Column(Buffer):
    """Numbers of one kind, in the byte order of the machine."""

def read_ulm(
    paths: Sequence[str | Path],
) -> tuple[
    Column,
    tuple[Column, tuple[str, ...] | None],
    list[tuple[str, tuple[Column, tuple[str, ...] | None]]],
    list[tuple[int, str]],
    int,
]:
    """Read events: times, names, other columns by key, damaged lines, how many those are."""

def trace_start(place: str, prog: str, host: str, token: str | None) -> None:
    """Start recording events."""

def trace_stop() -> tuple[int, int, int]:
    """Stop; events that were recorded, dropped and written."""

def trace_is_on() -> bool:
    """Tell whether events are recorded."""

def trace_forget() -> None:
    """Record nothing in this process, a forked child."""

def trace_event(name: str, fields: Mapping[str, str | int | float | None]) -> None:
    """Record an event; an error where RESULT is `error`."""

class Scope:
    """Ids that all events of a context carry: of a thread, or of one of its tasks."""

    def enter(self) -> None:
        """Make them those of this context."""

def trace_scope(ids: Mapping[str, str | int | float | None], keep: bool) -> Scope:
    """Add ids to all events of this context, `keep`: those it lacks; gives those of before."""
