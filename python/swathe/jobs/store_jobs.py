"""The objects in one store that jobs need: asked for in bulk, waited for, pinned, and let go."""

from __future__ import annotations

import logging
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from swathe.catalog.records.jobs import UNDER_WAY, JobRecord
from swathe.catalog.records.staging import IN_PROGRESS, StagePin
from swathe.catalog.staging import SPARE
from swathe.core.errors import NoSuchJobError, NoSuchStoreError, SwatheError
from swathe.jobs.near_copies import keep_near, owners_near
from swathe.jobs.staging_progress import progress
from swathe.stores.registry import tape_sources
from swathe.stores.staging import stage_wait
from swathe.stores.staging.hold import LIFETIME_S
from swathe.stores.staging.http_service import pause_s
from swathe.stores.staging.stager import SERVICE_FAULTS
from swathe.stores.staging.store_staging import StoreStaging
from swathe.stores.staging.tape_objects import bound_s

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.jobs.staged_rows import ObjectState
    from swathe.catalog.store_settings import Store

log = logging.getLogger(__name__)

FULL_LOOK_S = 10.0
"""Seconds between looks at all pins, while no job has changed and no service is to be asked."""
MOST_PER_USER = 2000
"""Objects that the jobs of a user have pinned in a store at the same time: others come, too."""
READ_SHARE = 0.1
"""Share of the time that reading rows of a job that is executing may take."""
OWNER = "job-"
"""Begin of the names under which jobs pin objects."""


def owner_of(job_id: str) -> str:
    """Return the name under which a job pins objects."""
    return f"{OWNER}{job_id}"


def is_ready(pin: StagePin) -> bool:
    """Check whether an object is on disk, and will stay there for some time."""
    return pin.file.state == "disk" and pin.expires_at > datetime.now(UTC) + SPARE


@dataclass
class _Needs:
    """Objects of unfinished rows of a job, by path, with the names that the rows have.

    Attributes:
        names: names by path, in the order of work.
        changes: changes of the job when they were read.
        next_s: time before which they are not read again.
    """

    names: dict[str, list[str]]
    changes: int
    next_s: float


@dataclass
class StoreJobs:
    """The jobs' objects in one store."""

    store: Store
    catalog: Catalog
    size: Callable[[JobRecord, bool], int]
    wake: Callable[[], None]
    reads_caches: bool
    staging: StoreStaging | None = None
    needs: dict[int, _Needs] = field(default_factory=dict)
    losses: dict[int, dict[str, str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    failures: int = 0
    retry_s: float = 0.0
    looks: int = 0
    look_s: float = 0.0
    last_files: object = None
    last_jobs: object = None
    last_moves: dict[int, object] = field(default_factory=dict)
    full_look_s: float = 0.0
    rng: random.Random = field(default_factory=random.Random)

    def look(self, all_jobs: list[JobRecord]) -> None:
        """Compare what jobs need with what they have, and do what is to be done. Never raises."""
        try:
            self._look([job for job in all_jobs if self.store.name in (job.staging or {})])
        except NoSuchStoreError:
            log.info("store %s was removed; nothing is staged from it", self.store.name)
        except SwatheError as error:
            log.warning("staging for jobs from %s: %s", self.store.name, error)
        except Exception:
            log.exception("staging for jobs from %s", self.store.name)

    def _look(self, jobs: list[JobRecord]) -> None:
        state = [(job.number, job.phase, job.changes) for job in jobs]
        if state == self.last_jobs and time.monotonic() < self.full_look_s:
            return
        self.last_jobs, self.full_look_s = state, time.monotonic() + FULL_LOOK_S
        pins = self._pins()
        owners = pins.keys() | owners_near(self.catalog, self.store.name, OWNER)
        if not jobs and not owners:
            return
        memories: tuple[dict[int, Any], ...] = (self.needs, self.losses, self.last_moves)
        for memory in memories:
            for number in memory.keys() - {job.number for job in jobs}:
                del memory[number]
        self.faults = []
        self._release_orphans(owners - {owner_of(job.id) for job in jobs})
        near = {job.number: self._near_of(job) for job in jobs}
        needs = {job.number: self._staged_of(job, near[job.number]) for job in jobs}
        if time.monotonic() >= self.retry_s:
            self._ask(jobs, needs, pins)
            self._renew(jobs, needs, pins)
            self._refresh(pins)
            self.failures = self.failures + 1 if self.faults else 0
            if self.faults:
                self.retry_s = time.monotonic() + self._pause(self.failures)
        pins = self._pins()
        for job in jobs:
            own = pins.get(owner_of(job.id), {})
            self._move_rows(job, needs[job.number], near[job.number], own)
            self._release(owner_of(job.id), pins, needs[job.number].keys())
        if self.failures:
            self.full_look_s = min(self.full_look_s, self.retry_s)
        if any(pin.file.state in IN_PROGRESS for own in pins.values() for pin in own.values()):
            self.full_look_s = min(self.full_look_s, max(self.look_s, self.retry_s))

    def _pins(self) -> dict[str, dict[str, StagePin]]:
        pins: dict[str, dict[str, StagePin]] = defaultdict(dict)
        for pin in self.catalog.stage_pins(self.store.name, OWNER):
            pins[pin.owner][pin.file.path] = pin
        return dict(pins)

    def _call(self, owner: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of `StoreStaging` for an owner; note why it fails, then return `None`."""
        try:
            if self.staging is None:
                self.staging = StoreStaging(self.catalog, self.store, owner, LIFETIME_S)
            return method(self.staging.for_owner(owner), *arguments)
        except SERVICE_FAULTS as error:
            if str(error) not in self.faults:
                self.faults.append(str(error))
            return None

    def _pause(self, number: int) -> float:
        first_s, longest_s = stage_wait.FIRST_PAUSE_S, stage_wait.LONGEST_PAUSE_S
        return pause_s(number, self.rng, first_s, longest_s)

    def _needs_of(self, job: JobRecord) -> dict[str, list[str]]:
        """Return the objects of unfinished rows by path. They are not read too often."""
        memory, begin_s = self.needs.get(job.number), time.monotonic()
        if memory is not None and (memory.changes == job.changes or begin_s < memory.next_s):
            return memory.names
        names: dict[str, list[str]] = defaultdict(list)
        for name, each in tape_sources(self.catalog.objects_in_use(job)).items():
            if each.store == self.store.name:
                names[each.path].append(name)
        end_s = time.monotonic()
        wait_s = 0.0 if job.phase == "STAGING" else (end_s - begin_s) / READ_SHARE
        self.needs[job.number] = _Needs(dict(names), job.changes, end_s + wait_s)
        return self.needs[job.number].names

    def _near_of(self, job: JobRecord) -> set[str]:
        """Return the objects of unfinished rows that a cache has; they are pinned there."""
        if not self.reads_caches:
            return set()
        names = chain.from_iterable(self._needs_of(job).values())
        return keep_near(self.catalog, self.store.name, owner_of(job.id), names, LIFETIME_S)

    def _staged_of(self, job: JobRecord, near: set[str]) -> dict[str, list[str]]:
        """Return the objects of unfinished rows that are read in the store, by path."""
        needs = self._needs_of(job)
        return {path: names for path, names in needs.items() if not near.issuperset(names)}

    def _release_orphans(self, owners: Iterable[str]) -> None:
        """Release the pins of jobs that have ended, or are no longer there."""
        for owner in owners:
            # Another portal may have begun it since.
            if not self._is_started(owner.removeprefix(OWNER)):
                self._call(owner, StoreStaging.release, None)
                self.catalog.release_near_objects(owner)

    def _is_started(self, job_id: str) -> bool:
        try:
            return self.catalog.job_state(job_id)[0] in UNDER_WAY
        except NoSuchJobError:
            return False

    def _release(
        self, owner: str, pins: dict[str, dict[str, StagePin]], needs: Iterable[str]
    ) -> None:
        """Release the objects of a job whose rows are done."""
        if others := sorted(pins.get(owner, {}).keys() - set(needs)):
            self._call(owner, StoreStaging.release, others)

    def _ask(
        self,
        jobs: list[JobRecord],
        needs: dict[int, dict[str, list[str]]],
        pins: dict[str, dict[str, StagePin]],
    ) -> None:
        """Ask for objects that jobs need and have not asked for, a limited number for each user."""
        room: dict[str, int] = defaultdict(lambda: MOST_PER_USER)
        for job in jobs:
            room[job.owner] -= len(pins.get(owner_of(job.id), {}))
        # One that fails must not keep the others from being asked for.
        for job in sorted(jobs, key=lambda job: job.number in self.failing):
            owner = owner_of(job.id)
            own, losses = pins.get(owner, {}), self.losses.setdefault(job.number, {})
            to_ask = [
                path
                for path in needs[job.number]
                if path not in losses and (path not in own or _is_to_ask_again(own[path]))
            ]
            new = [path for path in to_ask if path not in own]
            paths = [path for path in to_ask if path in own] + new[: max(0, room[job.owner])]
            if not paths:
                continue
            room[job.owner] -= len(paths)
            faults = self._call(owner, StoreStaging.stage, paths)
            if faults is None:
                self.failing.add(job.number)
                return
            self.failing.discard(job.number)
            losses |= faults
            self.looks, self.look_s = 0, 0.0

    def _renew(
        self,
        jobs: list[JobRecord],
        needs: dict[int, dict[str, list[str]]],
        pins: dict[str, dict[str, StagePin]],
    ) -> None:
        """Renew pins that are needed, three times in their life."""
        limit = datetime.now(UTC) + timedelta(seconds=LIFETIME_S * 2 / 3)
        for job in jobs:
            owner = owner_of(job.id)
            due = [
                path
                for path, pin in pins.get(owner, {}).items()
                if path in needs[job.number]
                and pin.file.state in ("disk", *IN_PROGRESS)
                and min(pin.expires_at, pin.file.expires_at) < limit
            ]
            if due:
                self._call(owner, StoreStaging.renew, due)

    def _refresh(self, pins: dict[str, dict[str, StagePin]]) -> None:
        """Ask how far objects are, in growing intervals while nothing changes."""
        if time.monotonic() < self.look_s:
            return
        is_due = self.look_s == 0.0 or any(
            pin.file.state in IN_PROGRESS for own in pins.values() for pin in own.values()
        )
        if not is_due:
            return
        files = self._call(OWNER, StoreStaging.refresh)
        states = [(file.path, file.state, file.place) for file in files or ()]
        self.looks = self.looks + 1 if states == self.last_files else 0
        self.last_files = states
        self.look_s = time.monotonic() + self._pause(self.looks)

    def _move_rows(
        self,
        job: JobRecord,
        needs: dict[str, list[str]],
        near: set[str],
        own: dict[str, StagePin],
    ) -> None:
        """Let rows be leased whose objects have come, end those of lost ones, and say how far."""
        losses = dict(self.losses.get(job.number, {}))
        for path, pin in own.items():
            # Without a token it was not sent, and is asked for again.
            if pin.file.state == "failed" and pin.file.token is not None:
                losses[path] = pin.file.reason or "staging has failed"
        ready = {path for path, pin in own.items() if is_ready(pin)}
        pending = [path for path in needs if path not in ready and path not in losses]
        of_store = (job.staging or {})[self.store.name]
        since = of_store["since"] or (datetime.now(UTC).isoformat() if own or losses else None)
        fault = "; ".join(self.faults) or (of_store["fault"] if self._is_silent() else None)

        path_of = {name: path for path, names in needs.items() for name in names}

        def state_of(name: str) -> ObjectState:
            if name in near:
                return True
            path = path_of.get(name)
            if path is None:
                place = tape_sources([name]).get(name)
                if place is None or place.store not in (job.staging or {}):
                    return True
                if place.store != self.store.name:
                    return False
                path = place.path
            if path in losses:
                return f"{self.store.name}:{path}: {losses[path]}"
            return path in ready

        def new_progress(before: dict[str, Any], faults: int) -> dict[str, Any]:
            new = progress(
                before["objects"],
                len(pending),
                before["failed"] + faults,
                None if since is None else datetime.fromisoformat(since),
                fault=fault,
            )
            is_same = all(before[name] == new[name] for name in ("come", "failed", "since"))
            return {**new, "ends_by": before["ends_by"] if is_same else ends_by}

        if failures := sorted(losses.keys() & own.keys()):
            # First: a pin that outlived its rows would end those of a resumed job.
            self._call(owner_of(job.id), StoreStaging.release, failures)
        what = (job.changes, ready, near, dict(losses), len(pending), fault)
        if what == self.last_moves.get(job.number):
            return
        self.last_moves[job.number] = what
        ends_by = self._ends_by(pending, own)
        if self.catalog.move_staged_rows(
            job.number, state_of, self.store.name, new_progress, self.size
        ):
            self.wake()
        if losses:
            self.losses.get(job.number, {}).clear()
            self.needs.pop(job.number, None)

    def _is_silent(self) -> bool:
        """Check whether the service failed the last time, and is not asked yet."""
        return self.failures > 0 and time.monotonic() < self.retry_s

    def _ends_by(self, pending: list[str], own: dict[str, StagePin]) -> str | None:
        """Return when all have come at most, if the queue is empty; `None` if it is not known."""
        files = [own[path].file for path in pending if path in own]
        sizes = [file.bytes for file in files if file.bytes is not None]
        if not pending or len(sizes) < len(pending):
            return None
        media, now = len({file.medium for file in files}), datetime.now(UTC)
        seconds = bound_s(self.catalog, self.store.name, len(files), sum(sizes), media)
        return None if seconds is None else (now + timedelta(seconds=seconds)).isoformat()


def _is_to_ask_again(pin: StagePin) -> bool:
    """Check whether a pin has ended, or its request was not sent."""
    file = pin.file
    if file.state == "failed":
        return file.token is None
    return file.state == "released" or pin.expires_at < datetime.now(UTC) + SPARE
