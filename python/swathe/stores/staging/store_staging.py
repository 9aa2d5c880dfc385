"""Stage objects of a store: each once, in the order of the tapes, and know when they have come."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from swathe.catalog.records.staging import IN_PROGRESS, StageChange, StageFile
from swathe.catalog.staging import UNSENT
from swathe.core.errors import SwatheError
from swathe.stores.staging.stage_costs import StageCosts
from swathe.stores.staging.stager import ObjectPlace, Stager, divide, in_tape_order
from swathe.stores.staging.stagers import stager_of

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.store_settings import Store

UNKNOWN_WAIT_S = 6 * 3600.0
"""Time that staging is taken to need where none was measured."""
NO_SENDER = "the process that was to ask for it has ended"
NOT_THERE = "the service says that it is on disk, but it is on tape only"


class StoreStaging:
    """Staging of the objects of one store, for one owner of pins."""

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        owner: str,
        lifetime_s: float,
    ) -> None:
        """Set up; nothing is sent yet.

        Args:
            catalog: the catalogue.
            store: the store.
            owner: name under which objects are pinned.
            lifetime_s: seconds that each object is needed once it is on disk.

        Raises:
            OptionError: If the objects of the store are not staged.
        """
        self.store, self.owner, self.lifetime_s = store, owner, lifetime_s
        self._catalog = catalog
        self._stager: Stager = stager_of(store)
        self._renewal = threading.Lock()

    def for_owner(self, owner: str) -> StoreStaging:
        """Return the same for another owner of pins, through the same connections."""
        other = copy.copy(self)
        other.owner = owner
        return other

    def close(self) -> None:
        """Close connections."""
        self._stager.close()

    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        """Return where objects are."""
        places: dict[str, ObjectPlace] = {}
        for part in divide(paths, self._stager.most_paths):
            places |= self._stager.locate(part)
        return places

    def stage(self, paths: Sequence[str]) -> dict[str, str]:
        """Ask for objects, and pin them; return why some cannot be had.

        An object that another has asked for is not asked for again.

        Raises:
            StagingError: If the service fails or refuses.
        """
        looked_at = datetime.now(UTC)
        places = self.locate(list(dict.fromkeys(paths)))
        faults = {
            path: place.reason or f"it is {place.locality}"
            for path, place in places.items()
            if place.locality in ("lost", "unavailable")
        }
        sound = {path: place for path, place in places.items() if path not in faults}
        wait_s = self.expected_wait_s(sound)
        for part in divide(in_tape_order(sound), self._stager.most_paths):
            self._send({path: sound[path] for path in part}, wait_s, looked_at)
        return faults

    def expected_wait_s(self, places: Mapping[str, ObjectPlace]) -> float:
        """Return the seconds that staging may take, for the time that pins last."""
        on_tape = [place for place in places.values() if place.locality == "nearline"]
        if not on_tape:
            return 0.0
        costs = StageCosts(self._catalog.stage_outcomes(self.store.name))
        size, media = sum(place.bytes or 0 for place in on_tape), {at.medium for at in on_tape}
        at_most_s = costs.at_most_s(len(on_tape), size, len(media))
        return UNKNOWN_WAIT_S if at_most_s is None else 2 * at_most_s

    def _send(self, places: Mapping[str, ObjectPlace], wait_s: float, looked_at: datetime) -> None:
        claims = {
            path: (place.locality == "disk", place.bytes, place.medium, place.position)
            for path, place in places.items()
        }
        claim = self._catalog.claim_files(
            self.store.name, claims, self.owner, self.lifetime_s, wait_s, looked_at
        )
        if claim.request is None:
            return
        try:
            token = self._stager.stage(claim.paths, self.lifetime_s + wait_s)
        except BaseException as error:
            self._catalog.drop_request(claim.request, str(error) or type(error).__name__)
            raise
        self._catalog.send_request(claim.request, token)

    def refresh(self) -> list[StageFile]:
        """Ask the service about all objects that are to come; return all that were asked for.

        Raises:
            StagingError: If the service fails.
        """
        by_token: dict[str, list[str]] = defaultdict(list)
        unsent = []
        for file in self._catalog.stage_files(self.store.name):
            if file.state in IN_PROGRESS and file.token is not None:
                by_token[file.token].append(file.path)
            elif file.state == "waiting" and datetime.now(UTC) - file.began_at > UNSENT:
                unsent.append(StageChange(file.path, "failed", reason=NO_SENDER))
        self._catalog.change_files(self.store.name, unsent)
        for token, paths in by_token.items():
            self._catalog.change_files(self.store.name, self._changes(token, paths))
        return self._catalog.stage_files(self.store.name)

    def _changes(self, token: str, paths: Sequence[str]) -> list[StageChange]:
        states = self._stager.poll(token, paths)
        arrivals = [path for path, progress in states.items() if progress.state == "disk"]
        absent: set[str] = set()
        if arrivals and not self._stager.confirms:
            places = self.locate(arrivals)
            absent = {path for path in arrivals if places[path].locality != "disk"}
        return [
            StageChange(path, "active", reason=NOT_THERE)
            if path in absent
            else StageChange(path, progress.state, progress.place, progress.reason)
            for path, progress in states.items()
        ]

    def last_files(self, paths: Sequence[str]) -> list[StageFile]:
        """Return objects as they were when the service was last asked."""
        return self._catalog.stage_files(self.store.name, paths)

    def renew(self, paths: Sequence[str]) -> None:
        """Pin objects for a whole lifetime from now on; objects on disk stay there.

        Raises:
            StagingError: If the service fails or refuses.
        """
        with self._renewal:
            by_token: dict[str, list[str]] = defaultdict(list)
            until = datetime.now(UTC) + timedelta(seconds=self.lifetime_s)
            for file in self._catalog.stage_files(self.store.name, paths):
                if file.state == "disk" and file.token is not None:
                    by_token[file.token].append(file.path)
                    # Others may need it for longer.
                    until = max(until, file.expires_at)
            for token, of_request in by_token.items():
                for part in divide(of_request, self._stager.most_paths):
                    self._renew(token, part, (until - datetime.now(UTC)).total_seconds())
            self._catalog.renew_pins(self.store.name, paths, self.owner, self.lifetime_s)

    def _renew(self, token: str, paths: Sequence[str], lifetime_s: float) -> None:
        """Renew objects of a request; if that makes a new one, the other is released."""
        new = self._stager.renew(token, paths, lifetime_s)
        if new == token:
            return
        moves = self._catalog.move_files(self.store.name, paths, token, new)
        if moves:
            self._stager.release(token, moves)
        if others := [path for path in paths if path not in moves]:
            self._stager.release(new, others)

    def release(self, paths: Sequence[str] | None, *, of_all: bool = False) -> int:
        """Remove the owner's pins, or those of all; return how many objects nobody needs any more.

        The staging service is told about these.

        Raises:
            StagingError: If the service fails; the pins are removed.
        """
        owner = None if of_all else self.owner
        free = self._catalog.release_pins(self.store.name, paths, owner)
        by_token: dict[str, list[str]] = defaultdict(list)
        for file in free:
            if file.token is not None:
                by_token[file.token].append(file.path)
        failure: SwatheError | None = None
        for token, of_request in by_token.items():
            try:
                self._stager.release(token, of_request)
            except SwatheError as error:
                failure = error
        if failure is not None:
            raise failure
        return len(free)

    def evict(self, paths: Sequence[str]) -> None:
        """Remove objects from disk.

        Raises:
            StagingError: If the service fails or cannot do it.
        """
        for part in divide(paths, self._stager.most_paths):
            self._stager.evict(part)
