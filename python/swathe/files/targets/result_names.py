"""Names of results, from the ids of targets: unique, and valid as file names everywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import combining, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

LONGEST_PART = 1 << 19
NAME_BYTES = 60
"""Longest name in characters: with a number added it fits into an EXTNAME (68 characters)."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
DEVICE = r"(?ai:(?:con|prn|aux|nul|conin|conout|com[0-9]|lpt[0-9])(?:\.|$))"
"""Names of devices on Windows, with any suffix."""
_DEVICE = re.compile(DEVICE)
_HARMLESS = re.compile(rf"(?!{DEVICE})[A-Za-z0-9_+][A-Za-z0-9._+-]{{0,{NAME_BYTES - 1}}}")


def unique_names(ids: list[str]) -> list[str]:
    """Return a file name for each id, without suffix: unique, of safe characters.

    Letters lose their accents; names of devices get a `_` in front.
    """
    if len(set(map(str.lower, ids))) == len(ids) and all(map(_HARMLESS.fullmatch, ids)):
        return list(ids)
    earlier: set[str] = set()
    counts: dict[str, int] = {}
    names = []
    for user_id in ids:
        clean = _clean(user_id)
        key = lower = clean.lower()
        name, copies = clean, counts.get(key, 1)
        while lower in earlier:
            copies += 1
            name, lower = f"{clean}-{copies}", f"{key}-{copies}"
        counts[key] = copies
        earlier.add(lower)
        names.append(name)
    return names


def _clean(user_id: str) -> str:
    """Return an id as a file name in ASCII, valid in all file systems, archives and FITS."""
    letters = "".join(each for each in normalize("NFKD", user_id) if not combining(each))
    clean = _UNSAFE.sub("_", letters).lstrip(".-") or "target"
    return f"{'_' if _DEVICE.match(clean) else ''}{clean}"[:NAME_BYTES]


class TextSet:
    """Texts seen before, by a hash of 64 bits each: 10 million of them take 80 MB."""

    def __init__(self) -> None:
        """Begin without names."""
        self._parts: list[NDArray[np.int64]] = []

    def add(self, texts: Iterable[str]) -> None:
        """Add texts."""
        import numpy as np

        part = np.unique(_hashes(texts))
        if not len(part):
            return
        # Parts of like length are merged, so that there are few; merging takes memory.
        while self._parts and len(self._parts[-1]) <= min(2 * len(part), LONGEST_PART):
            part = np.union1d(self._parts.pop(), part)
        self._parts.append(part)

    def contains(self, texts: Iterable[str]) -> NDArray[np.bool_]:
        """Return which texts were added. In 10 million, one may be taken for another: rarely."""
        import numpy as np

        hashes, back = np.unique(_hashes(texts), return_inverse=True)
        is_known = np.zeros(len(hashes), bool)
        for part in self._parts:
            at = np.minimum(np.searchsorted(part, hashes), len(part) - 1)
            is_known |= part[at] == hashes
        return is_known[back]


def _hashes(texts: Iterable[str]) -> NDArray[np.int64]:
    import numpy as np

    return np.fromiter(map(hash, texts), np.int64)


class PieceNames:
    """Names of the results of a list that is read in pieces: unique in the whole list."""

    def __init__(self) -> None:
        """Begin without names."""
        self._earlier = TextSet()

    def __call__(self, ids: list[str]) -> list[str]:
        """Return the names of the results of a piece."""
        import numpy as np

        names = unique_names(ids)
        lower = list(map(str.lower, names))
        repeats = np.flatnonzero(self._earlier.contains(lower)).tolist()
        if repeats:
            here, copies = set(lower), dict[str, int]()
            for row in repeats:
                clean = names[row]
                number = copies.get(clean, 1)
                while True:
                    number += 1
                    name = f"{clean}-{number}"
                    key = name.lower()
                    if key not in here and not self._earlier.contains([key])[0]:
                        break
                copies[clean] = number
                here.add(key)
                names[row], lower[row] = name, key
        self._earlier.add(lower)
        return names


def numbered_ids(ids: Sequence[str]) -> list[str]:
    """Return unique ids: id, id-2, id-3 ... for equal ones, without those that others have."""
    earlier: set[str] = set()
    counts: dict[str, int] = {}
    unique_ids = []
    for user_id in ids:
        name, copies = user_id, counts.get(user_id, 1)
        while name in earlier:
            copies += 1
            name = f"{user_id}-{copies}"
        counts[user_id] = copies
        earlier.add(name)
        unique_ids.append(name)
    return unique_ids
