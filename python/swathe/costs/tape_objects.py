"""Objects of a list that are on tape, and how long staging them takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from swathe.core.format import count_text, seconds_text, size_text
from swathe.stores.registry import tape_sources
from swathe.stores.staging.on_disk import fault_text, places_off_disk
from swathe.stores.staging.stager import ObjectPlace, in_tape_order


class TapeObjects:
    """Objects on tape that a list of targets names.

    Attributes:
        silent: stores whose staging service could not be asked, each with the reason. Then it is
            not known where their objects are.
    """

    def __init__(self, *, is_patient: bool = False) -> None:
        """Begin without objects; `is_patient` if a service may fail."""
        self._places: dict[str, ObjectPlace] = {}
        self._is_patient = is_patient
        self.silent: dict[str, str] = {}

    def faults_of(self, files: Sequence[str]) -> Mapping[str, str]:
        """Count objects; return which cannot be read now, and why.

        Raises:
            StagingError, AccessError: If a staging service fails, and it may not.
            CatalogError: If a catalogue exists but cannot be read.
        """
        places = places_off_disk(files, self.silent if self._is_patient else None)
        if self.silent:
            places |= {
                name: ObjectPlace(place.path, "nearline", reason=self.silent[place.store])
                for name, place in tape_sources(files).items()
                if place.store in self.silent
            }
        self._places |= places
        return {name: fault_text(name, place) for name, place in places.items()}

    @property
    def faults(self) -> dict[str, str]:
        """Return which of all objects cannot be read now, and why."""
        return {name: fault_text(name, place) for name, place in self._places.items()}

    def comes(self, name: str) -> bool:
        """Check whether an object that cannot be read now can be staged, as far as is known."""
        return self._places[name].locality == "nearline"

    def in_order(self, files: Sequence[str]) -> list[str]:
        """Return those of some files that are in staged stores, or in caches of such stores.

        Those on disk come first, then the others in the order of the tapes of each store.
        """
        names_by_store: dict[str, list[str]] = defaultdict(list)
        order: list[str] = []
        for name, place in tape_sources(files).items():
            if name in self._places:
                names_by_store[place.store].append(name)
            else:
                order.append(name)
        for names in names_by_store.values():
            order += in_tape_order({name: self._places[name] for name in names})
        return order

    def notes(self) -> list[str]:
        """Return for each store how many objects are on tape, and the time of staging at most."""
        by_store: dict[str, dict[str, ObjectPlace]] = defaultdict(dict)
        notes = [f"{store}: not known what is on tape: {why}" for store, why in self.silent.items()]
        for name, of_store in tape_sources(self._places).items():
            place = self._places[name]
            if place.locality == "nearline" and of_store.store not in self.silent:
                by_store[of_store.store][of_store.path] = place
        if not by_store:
            return notes
        from swathe.catalog import Catalog
        from swathe.stores.staging.tape_objects import bound_s

        with Catalog.open() as catalog:
            for store, of_paths in by_store.items():
                places = of_paths.values()
                size = sum(place.bytes or 0 for place in places)
                media = len({place.medium for place in places})
                seconds = bound_s(catalog, store, len(places), size, media)
                objects = f"{store}: {count_text(len(places), 'object')} on tape"
                objects += f", {size_text(size)}" if size else ""
                if seconds is None:
                    notes.append(f"{objects}; staging was never measured here")
                else:
                    time_text = seconds_text(seconds)
                    notes.append(
                        f"{objects}; staging takes at most {time_text}, if the queue is empty"
                    )
        return notes
