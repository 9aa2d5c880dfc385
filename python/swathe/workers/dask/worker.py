"""State and functions of a pool's worker, in its own process.

A portal lets it join, and sends the stores and the result store. Batches then contain only their
rows. Credentials for reading objects are in the worker's own environment.
"""

from __future__ import annotations

import asyncio
import pickle
import shutil
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from swathe import _swathe, trace
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import OutputError, SandboxUnavailableError, SwatheError
from swathe.core.host import in_url, this_host
from swathe.core.row_table import RowTable
from swathe.jobs import Bucket, Folder
from swathe.stores.registry import StoreSnapshot, use_snapshot
from swathe.workers.execute import run_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe._swathe import BlockDescription
    from swathe.algorithms.group_run import BoxSettings
    from swathe.catalog import Store
    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch

TOPIC = "swathe-pool"
"""Topic on which workers report what they begin."""
TOKEN = ".pool"
"""File in the result folder: its content shows a worker that it sees the same folder."""
PATIENCE_S = 60.0
"""Seconds after the last batch of a portal when another portal may take the worker."""
SCRATCH_S = 3600.0
"""Seconds to keep intermediate results of a job; they can be made again."""
MOST_STOPS = 10_000
LOOKED_AT = 8
"""Objects of earlier batches that are checked after each batch for what is left of them."""


@dataclass(frozen=True)
class FolderAt:
    """A result folder that all workers see under the same path, and its token."""

    path: str
    token: str


@dataclass(frozen=True)
class BucketAt:
    """A result bucket, and the folder in it."""

    store: Store
    prefix: str


@dataclass(frozen=True)
class Invitation:
    """Configuration sent to a worker when it joins.

    Attributes:
        pool: id of the pool; portals of the same catalogue and result store share one.
        place: result store.
        storages: stores, as a snapshot.
        hosts: servers that users may name; they may redirect only to each other.
    """

    pool: str
    place: FolderAt | BucketAt
    storages: StoreSnapshot
    hosts: tuple[str, ...]


Peer = tuple[str, str]
"""Address at which a worker serves blocks, and the token for that, known only within the pool."""


@dataclass(frozen=True)
class JoinReply:
    """Answer of a worker to the configuration.

    Attributes:
        host: its machine.
        cache_bytes: size limit of its cache.
        refusal: why it cannot join; empty if it joins.
        peer: address and token at which it serves blocks; `None` if it does not.
    """

    host: str
    cache_bytes: int
    refusal: str = ""
    peer: Peer | None = None


class BatchReply(NamedTuple):
    """Answer of a worker to a batch.

    Attributes:
        pickled_result: result of the batch, pickled.
        cached_bytes: cached bytes of objects, if changed.
        costs: measured cost of other workers, if known: seconds, bytes per second.
    """

    pickled_result: bytes
    cached_bytes: dict[str, int]
    costs: tuple[float, float] | None


class PullReply(NamedTuple):
    """Result of a pull: bytes, blocks, and the objects and costs that the worker now reports."""

    bytes: int
    blocks: int
    cached_bytes: dict[str, int]
    costs: tuple[float, float] | None


class NotJoinedError(SwatheError):
    """The worker lacks the configuration for a batch, or it has changed."""


def invite(pool: str, place: ResultStore, storages: StoreSnapshot, hosts: tuple[str, ...]) -> bytes:
    """Return the configuration for joining workers.

    Raises:
        OutputError: If workers cannot reach the result store, or the token cannot be written.
    """
    at: FolderAt | BucketAt
    if isinstance(place, Folder):
        at = FolderAt(str(place), _token(Path(str(place)) / TOKEN))
    elif isinstance(place, Bucket):
        at = BucketAt(place.store, place.prefix)
    else:
        raise OutputError(f"{place}: expected a folder or a bucket for results of workers")
    content = pickle.dumps(Invitation(pool, at, storages, hosts))
    return b"%s\n%s" % (_swathe.__version__.encode(), content)


def state_of(invitation: bytes) -> str:
    """Return the digest of a configuration."""
    return sha256(invitation).hexdigest()[:16]


def _token(path: Path) -> str:
    """Return the token of a folder; create it if needed."""
    try:
        token = token_hex(16)
        try:
            with path.open("x") as file:
                file.write(token)
        except FileExistsError:
            token = path.read_text()
    except OSError as error:
        raise OutputError(f"{path}: cannot create the token for workers: {error}") from error
    if not token:
        raise OutputError(f"{path}: expected a token, found an empty file; remove it")
    return token


class WorkerState:
    """State of this process as a worker."""

    def __init__(self, scratch: Path | None = None) -> None:
        """Take the scratch folder for results that go to a bucket; by default a temporary one."""
        self._scratch = scratch
        self._lock = threading.Lock()
        self._place: ResultStore | None = None
        self._pool = self._state = ""
        self._last = 0.0
        self._at_work = 0
        self._halts = 0
        self._stops: OrderedDict[str, None] = OrderedDict()
        self._jobs: OrderedDict[str, float] = OrderedDict()
        self._shared_at = ""
        self._peer: Peer | None = None
        self._cache_bytes: OrderedDict[str, int] = OrderedDict()
        self._stay_until: float | None = None
        self._ending = False
        self._box: BoxSettings | None = None
        self._refusal = "the worker was started without --programs"

    def allow_programs(self, box: BoxSettings) -> None:
        """Run programs of users in this sandbox from now on, if it holds; else say why not.

        Raises:
            SandboxUnavailableError: If it does not hold. The worker refuses them then.
        """
        try:
            box.check()
        except SandboxUnavailableError as error:
            self._refusal = str(error)
            raise
        self._box = box

    def share(self, host: str, certificates: tuple[str, str, str] | None) -> None:
        """Serve cached blocks to other workers, at the address by which this one is known.

        Raises:
            StoreError: If it cannot listen there, or the certificates are invalid.
        """
        if self._shared_at == host:
            return
        token = token_hex(32)
        port = _swathe.share_blocks(host, token, certificates)
        if port is not None:
            scheme = "http" if certificates is None else "https"
            self._peer = f"{scheme}://{in_url(host)}:{port}", token
        self._shared_at = host

    def join(self, invitation: bytes) -> JoinReply:
        """Take a portal's configuration; record events if the environment asks for it."""
        _record()
        host, cache_bytes = this_host(), _swathe.cache_usage("blocks").limit
        if self._ending:
            return JoinReply(host, cache_bytes, f"{host}: is ending")
        theirs, _, rest = invitation.partition(b"\n")
        if theirs != (ours := _swathe.__version__).encode():
            version = theirs.decode() if theirs[:1].isdigit() else "an older one"
            why = f"of Swathe {ours}, the portal of {version}: both must be the same"
            return JoinReply(host, cache_bytes, f"{host}: {why}")
        content: Invitation = pickle.loads(rest)
        with self._lock:
            is_busy = self._at_work or time.monotonic() - self._last < PATIENCE_S
            if self._pool not in ("", content.pool) and is_busy:
                return JoinReply(host, cache_bytes, f"{host}: serves another portal")
        try:
            place = self._check_place(content.place)
        except SwatheError as error:
            return JoinReply(host, cache_bytes, f"{host}: {error}")
        use_snapshot(content.storages)
        _swathe.confine(list(content.hosts))
        with self._lock:
            self._pool, self._place, self._state = content.pool, place, state_of(invitation)
            self._cache_bytes.clear()  # the new portal knows nothing of the cache
        return JoinReply(host, cache_bytes, peer=self._peer)

    def leave(self, pool: str) -> None:
        """Leave a pool, if this worker serves it."""
        with self._lock:
            if self._pool == pool:
                self._pool, self._state, self._place = "", "", None

    @property
    def has_portal(self) -> bool:
        """Whether it serves a portal."""
        return bool(self._pool)

    def end(self) -> None:
        """Refuse to join any portal from now on."""
        self._ending = True

    @property
    def granted_until(self) -> float | None:
        """Until when the portal wants this ending worker to stay; `None` if it has not answered."""
        return self._stay_until

    def grant(self, seconds: float) -> None:
        """Extend the life of this ending worker by some seconds; with 0 it may end."""
        self._stay_until = time.monotonic() + seconds

    def _check_place(self, at: FolderAt | BucketAt) -> ResultStore:
        """Check the result store, and return it.

        Raises:
            OutputError: If it cannot be seen from here, or is not writable.
        """
        if isinstance(at, BucketAt):
            if self._scratch is None:
                self._scratch = Path(tempfile.mkdtemp(prefix="swathe-worker-"))
            bucket = Bucket(at.store, at.prefix, self._scratch)
            bucket.check()
            return bucket
        try:
            token = (Path(at.path) / TOKEN).read_text()
        except OSError as error:
            raise OutputError(
                f"{at.path}: the folder for results cannot be seen from here: {error.strerror}; it "
                "must be shared under the same path, or results stored in a bucket"
            ) from error
        if token != at.token:
            raise OutputError(
                f"{at.path}: not the same folder as the portal's; it must be shared under "
                "the same path, or results stored in a bucket"
            )
        return Folder(Path(at.path))

    def work(
        self, key: str, state: str, payload: bytes, peers: dict[str, list[Peer]]
    ) -> BatchReply:
        """Execute a batch.

        `peers` hold blocks of the batch's objects, in the order to ask them.

        Raises:
            NotJoinedError: If this worker lacks the configuration.
        """
        with self._lock:
            if self._place is None or self._state != state:
                raise NotJoinedError(f"{this_host()}: the worker has another configuration")
            place, halts = self._place, self._halts
            self._at_work += 1

        def should_stop() -> bool:
            return key in self._stops or self._halts != halts

        try:
            batch: Batch = pickle.loads(payload)
            self._make_room(batch.job, place)
            _swathe.set_block_peers(peers)
            result = self._run(batch, place, should_stop)
            _swathe.take_timings()  # nobody reads the timings here
            return BatchReply(pickle.dumps(result), self._new_holdings(batch), _swathe.peer_costs())
        finally:
            with self._lock:
                self._at_work -= 1
                self._last = time.monotonic()
                self._stops.pop(key, None)

    def _run(
        self, batch: Batch, place: ResultStore, should_stop: Callable[[], bool]
    ) -> ChunkResult:
        if batch.program is not None and self._box is None:
            reason = f"{this_host()}: programs of users are refused: {self._refusal}"
            return ChunkResult([], complete=False, failure=reason)
        return run_batch(batch, place, 1, should_stop, self._box)

    def _new_holdings(self, batch: Batch) -> dict[str, int]:
        """Return the cached bytes of the batch's objects, and of some earlier ones if changed."""
        rows = RowTable.concatenate([batch.rows, *batch.inputs.values()])
        with self._lock:
            old = [name for name, _ in zip(self._cache_bytes, range(LOOKED_AT), strict=False)]
        names = list(dict.fromkeys([*rows.source.few().values, *old]))
        new = {}
        sizes = dict(zip(names, _swathe.cached_bytes(names), strict=True))
        with self._lock:
            for name, size in sizes.items():
                before = self._cache_bytes.pop(name, 0)
                if size:
                    self._cache_bytes[name] = size
                if size != before:
                    new[name] = size
        return new

    def pull(
        self,
        requests: list[tuple[str, BlockDescription, list[Peer]]],
        limit_s: float,
        *,
        only: bool,
    ) -> PullReply:
        """Pull objects from workers that have cached them, one by one, within a time limit.

        With `only`, the other worker leaves, and no one else will have the object.
        """
        until = time.monotonic() + limit_s
        size_sum = blocks = 0
        names = []
        for source, description, peers in requests:
            if (left_s := until - time.monotonic()) <= 0:
                break
            size, count = _swathe.pull_blocks(source, description, peers, left_s, only)
            size_sum, blocks = size_sum + size, blocks + count
            names.append(source)
        held_bytes = dict(zip(names, _swathe.cached_bytes(names), strict=True))
        with self._lock:
            self._cache_bytes.update({name: size for name, size in held_bytes.items() if size})
        return PullReply(size_sum, blocks, held_bytes, _swathe.peer_costs())

    def stop(self, keys: list[str]) -> None:
        """Stop batches within a second; those that have not begun stop when they begin."""
        with self._lock:
            self._stops.update(dict.fromkeys(keys))
            while len(self._stops) > MOST_STOPS:
                self._stops.popitem(last=False)

    def halt(self) -> None:
        """Stop all batches: nobody waits for their results."""
        with self._lock:
            self._halts += 1

    def _make_room(self, job: str, place: ResultStore) -> None:
        """Remove leftovers of old jobs from this machine, which no portal can reach."""
        if isinstance(place, Folder):
            return
        now = time.monotonic()
        with self._lock:
            self._jobs[job] = now
            self._jobs.move_to_end(job)
            old = [each for each, at in self._jobs.items() if now - at > SCRATCH_S]
            for each in old:
                del self._jobs[each]
        for each in old:
            shutil.rmtree(place.scratch(each), ignore_errors=True)


def _record() -> None:
    try:
        if not _swathe.trace_is_on():
            trace.from_environment()
    except SwatheError as error:
        # The batch runs without this room.
        print(f"swathe: {error}", file=sys.stderr)  # noqa: T201


here = WorkerState()
"""State of this process."""


# ---- Functions that the pool calls on workers by name


async def join(invitation: bytes) -> JoinReply:
    """Let this worker join."""
    return await asyncio.to_thread(here.join, invitation)


def work(key: str, state: str, payload: bytes, peers: dict[str, list[Peer]]) -> BatchReply:
    """Execute a batch."""
    from distributed import get_worker

    worker = get_worker()
    worker.log_event(TOPIC, {"begun": key})
    with trace.scope(worker=str(worker.name)):
        return here.work(key, state, payload, peers)


def stop(keys: list[str]) -> None:
    """Stop batches."""
    here.stop(keys)


def leave(pool: str) -> None:
    """Release this worker from a pool."""
    here.leave(pool)


def grant(seconds: float) -> None:
    """Extend the life of this ending worker by some seconds."""
    here.grant(seconds)


async def describe(objects: list[str]) -> dict[str, BlockDescription]:
    """Return the data that other workers need to pull objects."""
    descriptions = await asyncio.to_thread(_swathe.describe_blocks, objects)
    return {
        name: description
        for name, description in zip(objects, descriptions, strict=True)
        if description is not None
    }


async def pull(
    requests: list[tuple[str, BlockDescription, list[Peer]]],
    limit_s: float,
    only: bool,
) -> PullReply:
    """Let this worker pull objects from others."""
    return await asyncio.to_thread(here.pull, requests, limit_s, only=only)


async def room() -> int:
    """Return how many more bytes the cache can take without eviction."""
    usage = await asyncio.to_thread(_swathe.cache_usage, "blocks")
    return max(0, usage.limit - usage.bytes)
