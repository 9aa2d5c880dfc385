"""Stores with the same objects at the same paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplicaStores:
    """Stores with the same objects at the same paths.

    Attributes:
        target_s: predicted seconds of a target, if all were read from that store, by its name.
        lacking: objects, as `STORE:path`, that their store lacks.
        silent: names of stores that did not answer before the run.
    """

    target_s: dict[str, float]
    lacking: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()

    def copies(self, source: str) -> list[tuple[int, str]]:
        """Return the number of the store, and the name, of each copy of an object, itself first."""
        own, _, path = source.partition(":")
        numbers = {name: number for number, name in enumerate(self.target_s)}
        others = [
            (number, f"{name}:{path}")
            for name, number in numbers.items()
            if name not in self.silent and name != own and f"{name}:{path}" not in self.lacking
        ]
        return [(numbers[own], source), *others]

    def in_store(self, source: str, number: int) -> str:
        """Return the name of the copy of an object in a store."""
        return f"{[*self.target_s][number]}:{source.partition(':')[2]}"

    def are_copies(self, source: str, other: str) -> bool:
        """Check whether two objects are the same, or copies of one another."""
        (store, _, path), (other_store, _, other_path) = source.partition(":"), other.partition(":")
        return source == other or (
            path == other_path and store in self.target_s and other_store in self.target_s
        )
