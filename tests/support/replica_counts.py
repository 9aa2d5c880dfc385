"""Targets by the store that a run with copies read them from, and that it meant to."""

from __future__ import annotations

from collections import Counter
from typing import Any


def counts_read(manifest: Any) -> Counter[str]:
    """Number of targets by the store that they were read from."""
    return Counter(str(source).partition(":")[0] for source in manifest["source"])


def counts_given(manifest: Any) -> Counter[str]:
    """The same, as the list was divided: what a loaded machine moved is counted where it was."""
    counts = counts_read(manifest)
    for note in manifest.meta.get("notes", []):
        if " were read from " in note:
            number, _, _, _, before, _, _, _, after = note.partition(": ")[0].split()
            counts[after] -= int(number)
            counts[before] += int(number)
    return counts
