"""Native module of Swathe. Use the classes of the package, which have defaults and units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray
from typing_extensions import Buffer

from swathe.core.argument_checks import Objective
from swathe.core.box import Mode

__version__: str
HIDDEN: str
LONGEST_PATH_BYTES: int
TRUSTED_S: float
"""Seconds for which the version of an object is trusted; then its server is asked again."""

OutputKind: TypeAlias = Literal["folder", "zip", "tar", "fits", "null"]
DoneColumns: TypeAlias = tuple[
    bytes,
    bytes,
    bytes,
    list[str],
    bytes,
    list[tuple[int, str, str]],
    list[tuple[int, int]],
]
HduKey: TypeAlias = int | str | tuple[str, int]

class Stores:
    """Stores known to the engine."""

    def __init__(self, stores_json: str, costs: str = "{}", compute: str | None = None) -> None:
        """Set a JSON list of `{"name", "root", "options"}`, and measured costs by `store_key`.

        A striped store, whose root is `striped://NAME`, also has `over`: its places, each
        `{"store": {...}, "prefix": "folder"}`.

        `compute` is the computing cost of this host, as `measure_host` returns it.
        """

    def locate(self, path: str) -> tuple[str, str]:
        """Return the `store_key` of an object's store, and the object's URL or path."""

    def is_writable(self, path: str) -> bool:
        """Check whether an object can be written: in a folder, a bucket, WebDAV or XRootD."""

    def local_path(self, path: str) -> Path | None:
        """Return the path of an object that is a file of this machine; else None."""

    def bearer(self, path: str) -> str | None:
        """Return the bearer token that is sent to the server of an object."""

    def http_url(self, path: str) -> str | None:
        """Return the URL by which the server of an object is asked for it; None for buckets."""

    def open(self, path: str) -> Source:
        """Open an object to read its bytes."""

    def list(
        self,
        place: str,
        *,
        with_hidden: bool = False,
        may_lack: bool = False,
        tells_links: bool = False,
    ) -> Listing:
        """List the objects of a folder, a server or a bucket at or below `NAME:prefix`, by pages.

        In a bucket, `NAME:prefix/` lists only what is below. `with_hidden` includes names that
        begin with a dot, and empty objects that mark folders. With `may_lack` a missing folder
        has no objects. With `tells_links` links that lead out of the folder, to folders or to
        nothing, are listed with the reason why they are not followed.
        """

    def check_stripe(self, object: str, deep: bool) -> str:  # noqa: A002
        """Return the state of all parts and records of a striped object, as JSON.

        Args:
            object: `NAME:path` of an object in a striped store.
            deep: whether all bytes are read and compared with their checksums.

        Raises:
            ValueError: If its store is not striped.
            NotFoundError, AccessError, SourceError: If it cannot be opened.
        """

    def repair_stripe(
        self,
        object: str,  # noqa: A002
        deep: bool = True,
        progress: RepairProgress | None = None,
    ) -> str:
        """Rebuild the parts and records of a striped object that are not whole.

        Returns what was rebuilt and what could not be, as JSON.

        Args:
            object: `NAME:path` of an object in a striped store.
            deep: whether all bytes are read first, to find those that are damaged.
            progress: object that counts the bytes meanwhile.

        Raises:
            ValueError: If its store is not striped.
            NotFoundError, AccessError, SourceError: If it cannot be opened.
        """

    def stripe_servers(self, name: str, count: bool) -> str:
        """Return the servers of a striped store, and the number and bytes of their files, as JSON.

        Raises:
            ValueError: If the store is not striped.
        """

    def stripe_name(self, name: str) -> str:
        """Return the stripe that most servers of a striped store are of, as JSON.

        It is `null` if no server says one.

        Raises:
            ValueError: If the store is not striped.
        """

    def stripe_server(self, name: str, server: str) -> str:
        """Return one server of a striped store as JSON, as `stripe_servers` without a count.

        It is `null` if the store has no server of this name.

        Raises:
            ValueError: If the store is not striped.
        """

    def admit_empty_servers(self, name: str) -> str:
        """Use the empty servers of a striped store from now on; return their names as JSON.

        Raises:
            ValueError: If the store is not striped.
            SourceError: If too many servers are empty or away, or one does not take its mark.
        """

    def ask_failed_servers(self, name: str) -> None:
        """Ask the servers of a striped store that failed a moment ago: they may be there again.

        Raises:
            ValueError: If the store is not striped.
        """

    def stripe_hedges(self, name: str) -> str:
        """Return how often parts of a striped store were late in this process, as JSON.

        Raises:
            ValueError: If the store is not striped.
        """

    def stripe_leftovers(self, name: str, remove: bool) -> str:
        """Return the parts that no record names, as JSON; remove those that no write can be using.

        Raises:
            ValueError: If the store is not striped.
            SourceError: If too few of its servers can be listed.
        """

    def remove(self, path: str) -> None:
        """Remove an object, if it exists, from a folder, a bucket, or a WebDAV server."""

class RepairProgress:
    """How far the repair of a striped object is; any thread may read it.

    Attributes:
        counts: bytes read and written, and all that are to be, as far as these are known.
        written_bytes: bytes written.
    """

    def __init__(self) -> None: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    @property
    def written_bytes(self) -> int: ...

class StoreKind:
    """What kind a store is."""

    def __init__(self, root: str, over: list[str] = ...) -> None:
        """Set the URL of the store, percent-encoded; of a striped store also its servers'."""

    @property
    def is_local(self) -> bool:
        """Whether its objects are files of this machine."""

    @property
    def is_bucket(self) -> bool:
        """Whether it is a bucket, or a part of one."""

    @property
    def is_webdav(self) -> bool:
        """Whether its server speaks WebDAV; XRootD does through its HTTP door."""

    @property
    def is_writable(self) -> bool:
        """Whether objects can be written to it."""

    @property
    def local_path(self) -> Path | None:
        """Its folder, if its objects are files of this machine."""

class Source:
    """An open object of any format; all reads are of one version, or raise an error."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def version(self) -> str: ...
    @property
    def is_shared(self) -> bool:
        """Whether others read it, too."""

    @property
    def opened_bytes(self) -> int:
        """Bytes that came with opening it."""

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes `[start, stop)`.

        Raises:
            RegionError: If `stop` is before `start`, or the range is larger than 64 MiB.
        """

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges `[start, stop)`, with the requests that cost least.

        Ranges may overlap, and come in any order.

        Raises:
            RegionError: If a range is invalid or ends outside the object, or all of them have more
                than 64 MiB.
        """

    def measure(
        self, requests: Sequence[tuple[int, int]], streams: int, *, fresh: bool = False
    ) -> list[Timing]:
        """Time reads of `(offset, length)`, `streams` in flight; `fresh`: on new connections."""

    def measure_vector(self, ranges: Sequence[tuple[int, int]], limit_s: float) -> VectorTiming:
        """Time one request for ranges `(offset, length)`, ascending and apart.

        After `limit_s` seconds without a whole answer it counts as refused.
        """

    def measure_multiplexed(
        self, ranges: Sequence[tuple[int, int]], streams: int, limit_s: float
    ) -> MultiplexTiming:
        """Time requests for ranges `(offset, length)` on one connection of HTTP/2.

        `streams` of them are in flight. After `limit_s` seconds without all answers they count as
        refused.
        """

class Listing:
    """Objects of a store, page by page."""

    def next_page(
        self,
    ) -> list[tuple[str, int | None, str | None, str | None, str | None]] | None:
        """Return path in the store, bytes, time and ETag of some objects; `None` at the end.

        The last value is the reason if an object or a folder could not be listed.
        """

    def take_notes(self) -> list[str]:
        """Return the warnings since the last call, as of servers that were left out."""

class Copies:
    """Copies made by threads of their own, until this object is dropped."""

    def __init__(
        self, orders: Sequence[tuple[str, str | None, str, bool]], threads: int, stores: Stores
    ) -> None:
        """Set the orders: object, its version, destination, and whether that may be replaced.

        Without a version an object is copied at the one it has when its copy begins.
        """

    def poll(self, timeout_s: float) -> list[CopyOutcome] | None:
        """Return the copies ended since the last call, perhaps none; `None` at the end."""

    @property
    def bytes(self) -> int:
        """Bytes written so far."""

    def cancel(self) -> None: ...

class CopyOutcome:
    """Outcome of one copy."""

    @property
    def number(self) -> int:
        """Number of the order."""

    @property
    def version(self) -> str:
        """Version of the copy."""

    @property
    def read_back(self) -> bool:
        """Whether the copy was read to compare it, since its store reports no checksum."""

    @property
    def by_servers(self) -> bool:
        """Whether servers copied it, so that its bytes did not pass through this process."""

    @property
    def detour(self) -> str | None:
        """Why its bytes passed through this process though both ends are servers; else `None`."""

    @property
    def notes(self) -> list[str]:
        """Warnings, as when a striped store could not write all parts."""

    @property
    def kind(self) -> str | None:
        """Class of the error, if the copy failed."""

    @property
    def reason(self) -> str: ...

class Timing:
    """Times of one request of a measurement, in seconds since its begin."""

    @property
    def bytes(self) -> int: ...
    @property
    def start_s(self) -> float: ...
    @property
    def first_byte_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...

def open(url: str, stores: Stores | None = None, fresh: bool = False) -> Object:
    """Open an object; `fresh`: get its version from the server, not from the index."""

def store_key(root: str, options: Mapping[str, str]) -> str:
    """Return the key under which measurements of a store are filed: `catalog.Store.key`."""

def assumed_costs(local: bool) -> str:
    """Return the costs assumed for a store that was not probed, as JSON."""

def request_s(costs: str, out: NDArray[Any], size: NDArray[Any]) -> None:
    """Set each element of `out` to the seconds of one request of a size in bytes, when idle.

    All arrays are contiguous, of float64 and of one length. `costs` is JSON as of `assumed_costs`.
    """

def requests_s(
    costs: str,
    out: NDArray[Any],
    size: NDArray[Any],
    count: NDArray[Any],
    streams: NDArray[Any],
    largest: NDArray[Any],
) -> None:
    """Set `out` to the seconds of `count` requests, `streams` at a time; as `request_s`."""

def line_s(
    out: NDArray[Any],
    count: NDArray[Any],
    streams: NDArray[Any],
    wait_s: NDArray[Any],
    sending_s: NDArray[Any],
) -> None:
    """Set `out` to the seconds of requests whose answers share a line.

    The first axis of `out`, `wait_s` and `sending_s` is that of `count` and `streams`.
    """

def queue_s(
    works: bool,
    out: NDArray[Any],
    count: NDArray[Any],
    streams: NDArray[Any],
    each_s: NDArray[Any],
    own_s: NDArray[Any],
    serve_s: NDArray[Any],
) -> None:
    """Set `out` to the seconds of requests that wait for each other; as `line_s`."""

def measure(
    url: str,
    requests: Sequence[tuple[int, int]],
    streams: int,
    *,
    fresh: bool = False,
    stores: Stores | None = None,
) -> list[Timing]:
    """Open an object and time reads of it: `Source.measure`."""

class VectorTiming:
    """How one request for many ranges was answered; times in seconds."""

    @property
    def refusal(self) -> str | None:
        """Return why it was of no use; None if all ranges came."""

    @property
    def parts(self) -> int:
        """Return the number of parts: fewer than ranges if the server merged some."""

    @property
    def is_ordered(self) -> bool:
        """Return whether the parts came in the order of the request."""

    @property
    def bytes(self) -> int:
        """Return the bytes of the answer, with the headers of parts."""

    @property
    def first_byte_s(self) -> float: ...
    @property
    def seconds(self) -> float: ...

class MultiplexTiming:
    """How requests that shared one connection of HTTP/2 were answered; times in seconds."""

    @property
    def refusal(self) -> str | None:
        """Return why that was of no use; None if all ranges came."""

    @property
    def bytes(self) -> int:
        """Return the bytes of all ranges."""

    @property
    def header_bytes(self) -> int:
        """Return the bytes of an answer beside its data: headers and frames, about."""

    @property
    def first_byte_s(self) -> float: ...
    @property
    def seconds(self) -> float: ...

def open_source(url: str, stores: Stores | None = None) -> Source:
    """Open an object, to measure reads of it."""

def measure_open(url: str, stores: Stores | None = None) -> tuple[float, int]:
    """Open an object anew; return the seconds, and its size in bytes."""

def measure_restarts(path: str) -> list[float]:
    """Return the seconds to start decoding at each seek point of a compressed file."""

def received_bytes() -> int:
    """Return the bytes that servers have sent to this process, however they were requested."""

def take_timings() -> list[tuple[str, int, int, float, float]]:
    """Return the timings of real requests since the last call.

    Each has the root of the store, bytes, requests in flight, seconds to the first byte, seconds.
    """

class CacheUsage:
    """Contents of a cache folder: blocks of files on servers, or the index."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def values(self) -> int:
        """Number of files."""

    @property
    def bytes(self) -> int:
        """Bytes used on disk."""

    @property
    def limit(self) -> int:
        """Bytes allowed."""

def cache_usage(name: Literal["blocks", "index"]) -> CacheUsage:
    """Return the contents of a cache folder."""

def clear_cache(name: Literal["blocks", "index"]) -> None:
    """Remove all contents of a cache folder."""

class SimulatedCache:
    """Simulated block cache: it stores and evicts as the cache on disk does, without the bytes.

    Objects are divided into blocks of equal size, and evicted by blocks. Times are in seconds of
    the caller's clock.
    """

    def __init__(self, limit_bytes: int) -> None: ...
    @property
    def bytes(self) -> int:
        """Bytes used."""

    @property
    def young_bytes(self) -> int:
        """Bytes protected until they are read; no more are fetched from peers for one read."""

    def note(
        self, name: str, blocks: int, block_bytes: int, seconds: float, now_s: float
    ) -> list[tuple[str, int]]:
        """Record a use of an object, of which this many blocks are cached now, old and new.

        Each block takes `seconds` to fetch again. Return the number of blocks to evict, by object.
        """

    def drop(self, name: str) -> None:
        """Record that an object is no longer cached."""

def confine(hosts: list[str]) -> None:
    """Let these servers, `host` or `host:port`, redirect only to each other, in this process.

    Other servers may redirect anywhere.
    """

def share_blocks(
    address: str, token: str, certificates: tuple[str, str, str] | None = None
) -> int | None:
    """Serve cached blocks to other workers on a free port, and fetch theirs.

    Args:
        address: numeric address to listen on.
        token: secret that other workers must send.
        certificates: certificate of the authority, own certificate and its key. With them only TLS
            is used, with certificates of the same authority.

    Return the port; `None` if no blocks are cached.
    """

def serve_disks(
    disks: list[Path],
    address: str,
    port: int,
    tell: Callable[[int, list[str]], None],
    *,
    write_token: str | None = None,
    read_token: str | None = None,
    certificate: tuple[Path, Path] | None = None,
    max_bytes: int | None = None,
    forget: list[Path] = ...,
) -> None:
    """Serve what lies on disks by HTTP and WebDAV, until a signal of this thread raises.

    Then finish the answers that are under way, for up to 10 s, and raise what the signal raised.

    Args:
        disks: folders.
        address: numeric address to listen on.
        port: port to listen on; 0: any free port.
        tell: called with the port and messages about missing disks when it listens.
        write_token: secret of clients that read and write; without any token all clients may.
        read_token: secret of clients that only read.
        certificate: files of a certificate and its key. With them only TLS is used.
        max_bytes: maximum of the bytes of objects on each disk.
        forget: folders of disks that are given up with what lies on them.

    Raises:
        SettingsError: If a disk, the address or the certificate cannot be used.
    """

def set_block_peers(peers: dict[str, list[tuple[str, str]]]) -> None:
    """Set the workers that have blocks of objects: URL and token of each, in order of use."""

def cached_bytes(objects: list[str]) -> list[int]:
    """Return the cached bytes of objects that this process has opened, by these names."""

BlockDescription = tuple[str, str, int, float, float, list[int]]
"""Description of an object: URL, place and version, size, seconds per request to its store and per
byte, and numbers of the cached cells."""

def describe_blocks(objects: list[str]) -> list[BlockDescription | None]:
    """Return descriptions of objects that this process has opened, for others to pull them."""

def pull_blocks(
    name: str,
    description: BlockDescription,
    peers: list[tuple[str, str]],
    limit_s: float,
    only: bool,
) -> tuple[int, int]:
    """Fetch blocks of an object from workers; return bytes and number of the blocks fetched.

    Args:
        name: name of the object.
        description: description of the object by one of the workers.
        peers: URL and token of each worker, in order of use.
        limit_s: time limit in seconds.
        only: whether no other worker will have it. Then the costs of its store count in full.
    """

def peer_costs() -> tuple[float, float] | None:
    """Return recent costs of other workers: seconds until they answer, bytes per second."""

def rename_each(moves: list[tuple[str, str]]) -> int:
    """Rename files in order, up to the first failure; return the number of renamed files."""

def remove_folder(path: str) -> None:
    """Remove a folder and all files in it; links are not followed.

    Raises:
        OSError: If something cannot be removed.
    """

def redact_url(url: str) -> str:
    """Return a path or URL that is safe to show: no password, and "..." for secrets."""

class Object:
    """An open object at one version."""

    @property
    def url(self) -> str: ...
    @property
    def kind(self) -> Literal["plain", "gzip", "bzip2", "compress"]: ...
    @property
    def size(self) -> int:
        """Stored size in bytes."""

    @property
    def version(self) -> str: ...
    def notes(self) -> list[str]:
        """Return the warnings since the last call."""

    def hdus(self) -> list[HduInfo]: ...
    def find(self, hdu: HduKey | None = None) -> int:
        """Return the number of an HDU; the first image by default."""

    def shape(self, hdu: int) -> list[int]:
        """Return the shape of an image in NumPy order."""

    def header(self, hdu: int) -> bytes:
        """Return header blocks; for a compressed image, those of the uncompressed one."""

    def wcs_hdus(self, hdu: int) -> bytes:
        """Return a FITS file of the lookup tables that the image's WCS names; empty if none."""

    def cut(
        self,
        hdu: int,
        start: Sequence[int],
        stop: Sequence[int],
        mode: Mode,
        fill: float | None = None,
        objective: Objective = "auto",
    ) -> Cutout:
        """Cut `[start, stop)`, zero-based, NAXIS1 first, all axes of the image."""

    def cut_each(
        self,
        hdu: int,
        regions: Sequence[tuple[Sequence[int], Sequence[int]]],
        objective: Objective = "auto",
    ) -> list[Cutout]:
        """Cut several regions `[start, stop)` that lie within the image, read together."""

    @property
    def is_local(self) -> bool:
        """Whether it lies on a disk of this host."""

    @property
    def is_fits(self) -> bool | None:
        """Whether it is a file of FITS; `None` if that is not known without a read."""

    def read_at(self, at: int, length: int) -> bytes:
        """Return bytes of the decompressed object; fewer only at its end."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges `(start, stop)` of the decompressed object.

        They ascend and do not overlap. The requests are those that cost least, several at once.
        """

    @property
    def first_bytes(self) -> int:
        """How many of its first bytes are in memory since it was opened."""

    @property
    def block_bytes(self) -> int:
        """Bytes that are best read at once: as many as take the time of a request."""

    def traffic(self) -> dict[str, Any]:
        """Return the bytes and requests since it was opened, as `Batch.finish` does."""

    def content_len(self) -> int:
        """Return the length of the decompressed object; a stream is read to its end."""

    def chunk_index(self) -> bytes | None:
        """Return the JSON of its chunk index, if it is known."""

    def set_chunk_index(self, index: bytes) -> None:
        """Check a chunk index, and keep it."""

    def member_names(self, prefix: str) -> list[str]:
        """Return the members of a folder, as it was opened, whose names begin with a prefix."""

    def read_array(
        self,
        path: str,
        start: Sequence[int],
        stop: Sequence[int],
        mode: Mode = "strict",
        objective: Objective = "auto",
    ) -> Buffer:
        """Read `[start, stop)` of an array, fastest axis first, as it is stored."""

class WindowReader:
    """Small boxes of an array of a local file, cut while the file is what was opened."""

    def __init__(
        self, native: Object, array: str, file: str, state: tuple[int, int, int, int, int]
    ) -> None:
        """Take an array.

        Args:
            native: the open file.
            array: its path in the file.
            file: absolute path of the file.
            state: mode, device, inode, size, and time of modification in nanoseconds, when the
                file was opened.
        """

    def cut(
        self, window: object, objective: Objective = "auto"
    ) -> tuple[Buffer, tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Cut a box `(x0, y0, width, height)` on the plane of the array.

        Returns:
            Elements as stored, first and last index, and shape, slowest axis first; `None` if the
            box is no tuple of four integers, not within the array or not small, or if the file is
            another one by now.
        """

class HduInfo:
    """Properties of an HDU; shapes in NumPy order."""

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
        """Reason if regions cannot be cut from the image."""

class Cutout:
    """A cutout as a complete FITS file in memory."""

    @property
    def stored(self) -> Buffer:
        """Stored pixels, big-endian."""

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
    """Many targets: boxes of images, and the output of the cutouts."""

    def __init__(
        self,
        files: list[str],
        file: NDArray[Any],
        hdu: list[HduKey | None],
        hdu_index: NDArray[Any],
        planes: Sequence[Sequence[tuple[int, int]]],
        planes_index: NDArray[Any],
        boxes: NDArray[Any],
        names: list[str],
        *,
        output: str,
        kind: OutputKind,
        mode: Mode = "trim",
        fill: float | None = None,
        threads: int = 1,
        append: int | None = None,
        overwrite: bool = False,
        stores: Stores | None = None,
        ids: list[str] | None = None,
        most_bytes: int | None = None,
        objective: Objective = "auto",
        replicas: tuple[list[tuple[str, float]], list[list[tuple[int, str]]]] | None = None,
    ) -> None:
        """Check the arguments.

        `planes` are distinct ranges on NAXIS3 and the axes behind it, `planes_index` the number of
        each target's. `replicas` are stores, by name and predicted seconds of a target if all were
        read from it; then for each file the number of the store and the name of each copy, first
        the file itself.
        """

    def start(self, output: Output | None = None) -> Batch:
        """Start cutting into an open output, by default into the job's own.

        An output that was given stays open. Several batches may write to it, one after another.
        """

    def open(self) -> Output:
        """Open the output, for batches or for results made in Python; nothing is cut.

        Raises:
            OutputError: If the output cannot be written.
        """

    def estimate(
        self,
        compute: str | None = None,
        most: int | None = None,
        machines: int = 1,
        keeps: bool = False,
    ) -> str:
        """Return the predicted cost by store, as a JSON list.

        At most `most` objects per store are inspected. `machines` like this one share the work.
        `compute` is the computing cost of this host, as JSON. With `keeps` the batch of this job
        follows: it reads from the objects that were opened, which are not opened again.
        """

class Output:
    """Open output of one job or of several."""

    def put(self, name: str, content: bytes) -> None:
        """Write a result by the rules of a batch; for `.fits`, `content` is the extensions.

        Raises:
            OutputExistsError: If the file exists and may not be replaced.
            OutputError: If the file cannot be written, or is a source.
        """

    def close(self, manifest: str | PathLike[str] | None = None) -> None:
        """Close the output when all batches have ended: an archive gets its name.

        A zip or tar archive gets the manifest, a file, as its last member. Without this call an
        archive stays unfinished; a folder lacks nothing.

        Raises:
            OutputExistsError: If the archive exists and may not be replaced.
            OutputError: If it cannot be written.
        """

class Batch:
    """A running batch."""

    def poll(self, timeout_s: float) -> Rows | None:
        """Return the rows finished since the last call, perhaps none; `None` at the end."""

    def gather(self, enough: int, timeout_s: float) -> DoneColumns | None:
        """Return the rows finished since the last call by columns, when there are `enough`.

        After `timeout_s` fewer are returned, perhaps none; `None` at the end. Targets and bytes are
        64-bit integers, digests 32 bytes each. Then follow the distinct versions, and the number of
        each row's version, 32 bits; then index among these rows, status and reason of failed rows;
        then index and store of rows that were read from another store than the job's file.
        """

    def progress(self) -> float:
        """Return how much is done, from 0 to 1: targets by their predicted seconds.

        All count alike if `Job.estimate` was not called before.
        """

    def cancel(self) -> None: ...
    def finish(self) -> dict[str, Any]:
        """Wait for the threads; return seconds per stage, bytes and warnings."""

class ZipMembers(Iterator[tuple[str, int, int]]):
    """Complete members of a zip archive, one by one: name, bytes, and end of each.

    The central directory is not needed; an interrupted archive has none.
    """

    def __init__(self, path: str) -> None: ...
    def __iter__(self) -> ZipMembers: ...
    def __next__(self) -> tuple[str, int, int]: ...

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
    """Numbers of one type, in the byte order of the machine."""

def read_ulm(
    paths: Sequence[str | Path],
) -> tuple[
    Column,
    tuple[Column, tuple[str, ...] | None],
    list[tuple[str, tuple[Column, tuple[str, ...] | None]]],
    list[tuple[int, str]],
    int,
]:
    """Read events: times, names, other columns by key, damaged lines, number of damaged lines."""

def ulm_line(
    time_ns: int,
    host: str,
    name: str,
    fields: Mapping[str, str | int | float | None],
    *,
    prog: str = "swathe",
) -> str:
    """Return an event as a line without its end; LVL is `Error` if RESULT is `error`."""

def clock_reply(line: bytes) -> tuple[int, int, int] | None:
    """Parse a line CLOCK_REPLY, without its end; `None` if it is another event.

    Return times in ns since 1970: of the question by the collector's clock, of its arrival and of
    the reply by the sender's clock.

    Raises:
        FormatError: If the line is not an event, or a reply without its times.
    """

class RotatingFile:
    """A trace to append to; several processes may write it.

    Args:
        path: path of a file, FIFO or device.
        rotate_bytes: file size above which the file is renamed `NAME.1`, and that `NAME.2`.
        keep: number of rotated files to keep.

    Raises:
        OSError: If it cannot be opened.
    """

    def __init__(self, path: Path, *, rotate_bytes: int | None, keep: int) -> None: ...
    def begin(self, length: int) -> OSError | None:
        """Make room for whole lines; rename a large file, and end an unfinished line.

        Return why the file cannot be renamed, once. It grows; renaming is retried every minute.

        Raises:
            OSError: If it cannot be written to.
        """

    def append(self, content: bytes) -> int:
        """Append some of the bytes; return how many.

        Raises:
            OSError: If it cannot be written to.
        """

def crc32c(data: bytes, start: int = 0) -> int:
    """Return the CRC-32C of bytes that follow on others whose CRC-32C is `start`."""

def decode_chunk(filters_json: str, skips: int, data: bytes, decoded_bytes: int) -> bytes:
    """Decode a chunk of an array.

    Args:
        filters_json: filters in the order in which a writer applies them, as in
            docs/design/030-chunk-index.md.
        skips: bit `i` is set if filter `i` was not applied.
        data: stored bytes.
        decoded_bytes: bytes that they decode to.

    Raises:
        ValueError: If a filter is not known, or a parameter is wrong.
        FormatError: If the bytes are not those of a chunk of this size.
    """

def trace_start(place: str, prog: str, host: str, token: str | None) -> None:
    """Start recording events."""

def trace_stop() -> tuple[int, int, int]:
    """Stop recording; return the number of events recorded, dropped and written."""

def trace_is_on() -> bool:
    """Check whether events are recorded."""

def trace_forget() -> None:
    """Stop recording in this process, a forked child."""

def trace_event(name: str, fields: Mapping[str, str | int | float | None]) -> None:
    """Record an event; it is an error if RESULT is `error`."""

class Scope:
    """Ids that all events of a context carry, for a thread or one of its tasks."""

    def enter(self) -> None:
        """Use these ids in this context."""

def trace_scope(ids: Mapping[str, str | int | float | None], keep: bool) -> Scope:
    """Add ids to all events of this context (`keep`: only missing ones); return the former ids."""

class Reduction:
    """Pixels binned into the cells of a grid."""

    def __init__(
        self,
        kind: str,
        steps: tuple[float, float],
        bounds: tuple[float, float, float, float],
        *,
        std: bool = False,
        extremes: bool = False,
        mode: bool = False,
    ) -> None:
        """Begin with empty cells; `GridSpec` has the arguments."""

    @property
    def cells(self) -> int:
        """Return the number of cells."""

    @property
    def outside(self) -> int:
        """Return the number of pixels in no cell."""

    def edges(self) -> tuple[list[float], list[float]] | None:
        """Return the edges of rows and columns in degrees; `None` for HEALPix."""

    def add(
        self,
        latitude: NDArray[Any],
        longitude: NDArray[Any],
        values: NDArray[Any],
        valid: NDArray[Any] | None = None,
        threads: int = 1,
    ) -> None:
        """Add pixels, in C order.

        Places are float32 or float64, values of any real type, and `valid` uint8 that is 0 for
        fill.
        """

    def merge(self, other: Reduction) -> None:
        """Add the cells of another one."""

    def write(self, statistic: str, out: NDArray[Any]) -> None:
        """Write a statistic of cells that have one: counts to int64, others to float64."""

def gaussian_latitudes(number: int) -> list[float]:
    """Return the Gaussian latitudes of a number in degrees, from the south."""
