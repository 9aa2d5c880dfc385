"""What a worker of a pool knows and does, in its own process.

A portal lets it join: it then knows the portal's storages, and where results go. Batches come
afterwards, with nothing but their rows. What it needs to read objects (credentials) is in its own
environment.
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
from swathe.catalog.jobs.row_table import RowTable
from swathe.core.errors import OutputError, SwatheError
from swathe.core.host import in_url, this_host
from swathe.jobs import Bucket, Folder
from swathe.stores.registry import StoreSnapshot, use_snapshot
from swathe.workers.execute import run_batch

if TYPE_CHECKING:
    from swathe._swathe import Described
    from swathe.catalog import Store
    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch

TOPIC = "swathe-pool"
"""Under which workers tell what they begin."""
TOKEN = ".pool"
"""In the folder for results: by what it holds, a worker knows that it sees the same folder."""
PATIENCE_S = 60.0
"""A worker is another portal's when the last batch of the first was so long ago."""
SCRATCH_S = 3600.0
"""What was made on the way to results of a job is kept so long: it can be made again."""
STOPS_KEPT = 10_000
LOOKED_AT = 8
"""Objects of earlier batches that are looked at after each, for what is left of them."""


@dataclass(frozen=True)
class FolderAt:
    """A folder for results that all workers see under the same path, and the token in it."""

    path: str
    token: str


@dataclass(frozen=True)
class BucketAt:
    """A bucket for results, and the folder in it."""

    store: Store
    prefix: str


@dataclass(frozen=True)
class Invitation:
    """What a worker is told when it joins.

    Attributes:
        pool: whose it is; portals of the same catalogue and results share one.
        place: of results.
        storages: where objects lie.
        hosts: servers that users may name; they may redirect only to each other.
    """

    pool: str
    place: FolderAt | BucketAt
    storages: StoreSnapshot
    hosts: tuple[str, ...]


Peer = tuple[str, str]
"""Where a worker gives blocks to others, and the token for that, which nobody else is told."""


@dataclass(frozen=True)
class Joined:
    """What a worker tells of itself.

    Attributes:
        host: its machine.
        cache_bytes: the limit of its cache.
        refused: why it cannot join; empty where it does.
        peer: where it gives blocks, and the token for that; nothing where it does not.
    """

    host: str
    cache_bytes: int
    refused: str = ""
    peer: Peer | None = None


class Worked(NamedTuple):
    """What a worker tells with a batch that it did.

    Attributes:
        done: what became of it.
        held: bytes that it holds of objects, as far as that is new.
        costs: what other workers cost it, if it knows: seconds, bytes per second.
    """

    done: bytes
    held: dict[str, int]
    costs: tuple[float, float] | None


class Pulled(NamedTuple):
    """What a worker got of others: bytes, blocks, and what it holds and knows now."""

    bytes: int
    blocks: int
    held: dict[str, int]
    costs: tuple[float, float] | None


class NotJoinedError(SwatheError):
    """A batch came to a worker that knows too little, or no longer the same, to do it."""


def invite(pool: str, place: ResultStore, storages: StoreSnapshot, hosts: tuple[str, ...]) -> bytes:
    """Give what a worker is told when it joins.

    Raises:
        OutputError: where results are kept in a place that workers cannot know, or the token
            cannot be put there.
    """
    at: FolderAt | BucketAt
    if isinstance(place, Folder):
        at = FolderAt(str(place), _token(Path(str(place)) / TOKEN))
    elif isinstance(place, Bucket):
        at = BucketAt(place.store, place.prefix)
    else:
        raise OutputError(f"{place}: workers can put results in a folder or a bucket only")
    told = pickle.dumps(Invitation(pool, at, storages, hosts))
    return b"%s\n%s" % (_swathe.__version__.encode(), told)


def state_of(invitation: bytes) -> str:
    """Give by what a worker knows that it was told the same."""
    return sha256(invitation).hexdigest()[:16]


def _token(path: Path) -> str:
    """Give what is in the token of a folder, which is made if need be."""
    try:
        made = token_hex(16)
        try:
            with path.open("x") as file:
                file.write(made)
        except FileExistsError:
            made = path.read_text()
    except OSError as error:
        raise OutputError(f"{path}: cannot be made, for workers to find: {error}") from error
    if not made:
        raise OutputError(f"{path}: is empty; remove it")
    return made


class WorkerState:
    """The state of this process."""

    def __init__(self, scratch: Path | None = None) -> None:
        """Take the folder where results for a bucket are made; else a temporary one."""
        self._scratch = scratch
        self._lock = threading.Lock()
        self._place: ResultStore | None = None
        self._pool = self._state = ""
        self._last = 0.0
        self._at_work = 0
        self._halts = 0
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._jobs: OrderedDict[str, float] = OrderedDict()
        self._shared_at = ""
        self._peer: Peer | None = None
        self._held: OrderedDict[str, int] = OrderedDict()
        self._granted: float | None = None
        self._ending = False

    def share(self, host: str, certificates: tuple[str, str, str] | None) -> None:
        """Give blocks to other workers, at the address by which this one is known.

        Raises:
            StoreError: where nothing can listen there, or the certificates are of no use.
        """
        if self._shared_at == host:
            return
        token = token_hex(32)
        port = _swathe.share_blocks(host, token, certificates)
        if port is not None:
            scheme = "http" if certificates is None else "https"
            self._peer = f"{scheme}://{in_url(host)}:{port}", token
        self._shared_at = host

    def join(self, invitation: bytes) -> Joined:
        """Take what a portal tells, and record events where the environment says so."""
        _record()
        host, cache_bytes = this_host(), _swathe.kept("blocks").limit
        if self._ending:
            return Joined(host, cache_bytes, f"{host}: is to end")
        theirs, _, rest = invitation.partition(b"\n")
        if theirs != (ours := _swathe.__version__).encode():
            version = theirs.decode() if theirs[:1].isdigit() else "an older one"
            why = f"of Swathe {ours}, the portal of {version}: both must be the same"
            return Joined(host, cache_bytes, f"{host}: {why}")
        told: Invitation = pickle.loads(rest)
        with self._lock:
            used = self._at_work or time.monotonic() - self._last < PATIENCE_S
            if self._pool not in ("", told.pool) and used:
                return Joined(host, cache_bytes, f"{host}: works for another portal")
        try:
            place = self._checked(told.place)
        except SwatheError as error:
            return Joined(host, cache_bytes, f"{host}: {error}")
        use_snapshot(told.storages)
        _swathe.confine(list(told.hosts))
        with self._lock:
            self._pool, self._place, self._state = told.pool, place, state_of(invitation)
            self._held.clear()  # whoever asks knows nothing of it
        return Joined(host, cache_bytes, peer=self._peer)

    def leave(self, pool: str) -> None:
        """Work for nobody, if it was for this one."""
        with self._lock:
            if self._pool == pool:
                self._pool, self._state, self._place = "", "", None

    @property
    def has_portal(self) -> bool:
        """Whether it works for anybody."""
        return bool(self._pool)

    def end(self) -> None:
        """Join no portal any more, not even the same again."""
        self._ending = True

    @property
    def granted_until(self) -> float | None:
        """Until when the portal wants it to stay, although it is to end, if it has said so."""
        return self._granted

    def grant(self, seconds: float) -> None:
        """Let it stay so long, where it is to end; with 0 it may go."""
        self._granted = time.monotonic() + seconds

    def _checked(self, at: FolderAt | BucketAt) -> ResultStore:
        """Give the place of results, after a look.

        Raises:
            OutputError: where it is not seen from here, or nothing can be put there.
        """
        if isinstance(at, BucketAt):
            if self._scratch is None:
                self._scratch = Path(tempfile.mkdtemp(prefix="swathe-worker-"))
            bucket = Bucket(at.store, at.prefix, self._scratch)
            bucket.check()
            return bucket
        try:
            found = (Path(at.path) / TOKEN).read_text()
        except OSError as error:
            raise OutputError(
                f"{at.path}: the folder for results is not seen from here: {error.strerror}; it "
                "must be shared under the same path, or results kept in a bucket"
            ) from error
        if found != at.token:
            raise OutputError(
                f"{at.path}: is another folder than that of the portal; it must be shared under "
                "the same path, or results kept in a bucket"
            )
        return Folder(Path(at.path))

    def work(self, key: str, state: str, payload: bytes, peers: dict[str, list[Peer]]) -> Worked:
        """Do a batch.

        `peers` have blocks of objects of the batch, those that are to be asked first first.

        Raises:
            NotJoinedError: where it was not told what it needs to know for that.
        """
        with self._lock:
            if self._place is None or self._state != state:
                raise NotJoinedError(f"{this_host()}: was told something else")
            place, halts = self._place, self._halts
            self._at_work += 1

        def stopped() -> bool:
            return key in self._stopped or self._halts != halts

        try:
            batch: Batch = pickle.loads(payload)
            self._make_room(batch.job, place)
            _swathe.blocks_are_at(peers)
            done = run_batch(batch, place, 1, stopped)
            _swathe.take_timings()  # nobody asks for them here
            return Worked(pickle.dumps(done), self._newly_held(batch), _swathe.peer_costs())
        finally:
            with self._lock:
                self._at_work -= 1
                self._last = time.monotonic()
                self._stopped.pop(key, None)

    def _newly_held(self, batch: Batch) -> dict[str, int]:
        """Give how much is held of the objects of a batch, and of some others if that is new."""
        rows = RowTable.joined([batch.rows, *batch.inputs.values()])
        with self._lock:
            old = [name for name, _ in zip(self._held, range(LOOKED_AT), strict=False)]
        names = list(dict.fromkeys([*rows.source.few().values, *old]))
        new = {}
        sizes = dict(zip(names, _swathe.blocks_of(names), strict=True))
        with self._lock:
            for name, size in sizes.items():
                before = self._held.pop(name, 0)
                if size:
                    self._held[name] = size
                if size != before:
                    new[name] = size
        return new

    def pull(
        self, wanted: list[tuple[str, Described, list[Peer]]], limit_s: float, *, only: bool
    ) -> Pulled:
        """Get objects from workers that hold them, one after the other, for so long at most.

        With `only` they leave, and nobody else will have it.
        """
        until = time.monotonic() + limit_s
        came = blocks = 0
        names = []
        for source, described, peers in wanted:
            if (left_s := until - time.monotonic()) <= 0:
                break
            size, count = _swathe.pull_blocks(source, described, peers, left_s, only)
            came, blocks = came + size, blocks + count
            names.append(source)
        held = dict(zip(names, _swathe.blocks_of(names), strict=True))
        with self._lock:
            self._held.update({name: size for name, size in held.items() if size})
        return Pulled(came, blocks, held, _swathe.peer_costs())

    def stop(self, keys: list[str]) -> None:
        """Stop batches, within a second; those that have not begun as soon as they do."""
        with self._lock:
            self._stopped.update(dict.fromkeys(keys))
            while len(self._stopped) > STOPS_KEPT:
                self._stopped.popitem(last=False)

    def halt(self) -> None:
        """Stop all that is being done: nobody waits for it any more."""
        with self._lock:
            self._halts += 1

    def _make_room(self, job: str, place: ResultStore) -> None:
        """Remove what is left of jobs of long ago, where no portal can."""
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
        # The work goes on without.
        print(f"swathe: {error}", file=sys.stderr)  # noqa: T201


here = WorkerState()
"""That of this process."""


# ---- What the scheduler has workers call, by name


async def join(invitation: bytes) -> Joined:
    """Let this worker join."""
    return await asyncio.to_thread(here.join, invitation)


def work(key: str, state: str, payload: bytes, peers: dict[str, list[Peer]]) -> Worked:
    """Do a batch."""
    from distributed import get_worker

    worker = get_worker()
    worker.log_event(TOPIC, {"begun": key})
    with trace.scope(worker=str(worker.name)):
        return here.work(key, state, payload, peers)


def stop(keys: list[str]) -> None:
    """Stop batches."""
    here.stop(keys)


def leave(pool: str) -> None:
    """Let this worker go."""
    here.leave(pool)


def grant(seconds: float) -> None:
    """Let this worker, which is to end, stay so long."""
    here.grant(seconds)


async def describe(objects: list[str]) -> dict[str, Described]:
    """Tell what others must know to pull objects."""
    found = await asyncio.to_thread(_swathe.blocks_described, objects)
    return {name: told for name, told in zip(objects, found, strict=True) if told is not None}


async def pull(
    wanted: list[tuple[str, Described, list[Peer]]],
    limit_s: float,
    only: bool,
) -> Pulled:
    """Let this worker get objects from others."""
    return await asyncio.to_thread(here.pull, wanted, limit_s, only=only)


async def room() -> int:
    """Tell how many bytes more the cache may take before something must go."""
    kept = await asyncio.to_thread(_swathe.kept, "blocks")
    return max(0, kept.limit - kept.bytes)
