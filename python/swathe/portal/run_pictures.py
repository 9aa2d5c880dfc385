"""Pictures of superfiles. Their content is that of anybody who may write to a store.

Only PNG and JPEG pictures are shown, by their content: SVG and HTML can have scripts. Names, sizes
and numbers of pixels are limited, as portals and browsers have limited memory.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from swathe.core.errors import ChangedError, FormatError, LimitError, NotFoundError
from swathe.runs.superfiles.superfile_reader import Superfile

if TYPE_CHECKING:
    from swathe.runs.superfiles.zip_index import Entry

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "MPO": "image/jpeg"}
"""Types of pictures that browsers may show, by the name of Pillow."""
MOST_ENTRIES = 20_000
MOST_BYTES = 16 << 20
MOST_PIXELS = 1 << 24
"""Pixels of a picture: 64 MiB in a browser."""
MOST_OPEN = 8
"""Superfiles that stay open."""
FRESH_S = 10.0
"""Age from which a superfile is opened again, since it may have been replaced."""
DIGITS = re.compile(r"(\d+)", re.ASCII)


@dataclass(frozen=True)
class Picture:
    """A picture for a browser.

    Attributes:
        content: its bytes.
        media_type: `image/png` or `image/jpeg`.
    """

    content: bytes
    media_type: str


class PictureSet:
    """The pictures of a superfile, in the order of the numbers in their names.

    Attributes:
        name: name of the superfile.
        tag: its version, for URLs and ETags.
    """

    def __init__(self, superfile: Superfile) -> None:
        """Set the superfile."""
        self._superfile = superfile
        self.name = superfile.name
        version = f"{superfile.name}\n{superfile.version}"
        self.tag = hashlib.sha256(version.encode()).hexdigest()[:16]

    @cached_property
    def entries(self) -> list[Entry]:
        """Return the entries that their type says to be PNG or JPEG."""
        media_types = MEDIA_TYPES.values()
        entries = [
            each for each in self._superfile.entries.values() if each.media_type in media_types
        ]
        return sorted(entries, key=lambda each: natural_key(each.name))

    @property
    def others(self) -> int:
        """Return the number of entries that are not shown."""
        return len(self._superfile) - len(self.entries)

    def picture(self, number: int) -> Picture:
        """Return a picture by its number, from 0.

        Raises:
            NotFoundError: If there is none.
            LimitError: If it has more than 16 MiB, or 2^24 pixels.
            FormatError: If it is damaged, or neither PNG nor JPEG.
            AccessError, SourceError: If it cannot be read.
        """
        if not 0 <= number < len(self.entries):
            raise NotFoundError(
                f"{self.name}: expected a picture before number {len(self.entries)}, found {number}"
            )
        entry = self.entries[number]
        what = f"{self.name}, entry {entry.name}"
        if entry.size > MOST_BYTES:
            raise LimitError(f"{what}: expected at most {MOST_BYTES} bytes, found {entry.size}")
        content = self._superfile[entry.name]
        return Picture(content, picture_type(content, what))


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return the key by which names are sorted: `6.png` before `12.png`."""
    parts = DIGITS.split(name)
    # Texts and numbers take turns; the longer of two numbers is larger.
    return [
        (len(each.lstrip("0")), each.lstrip("0")) if at % 2 else (0, each)
        for at, each in enumerate(parts)
    ] + [(0, name)]


def picture_type(content: bytes, what: str) -> str:
    """Return the media type of a picture, by its content. Its pixels are not decoded.

    Args:
        content: its bytes.
        what: its name, for errors.

    Raises:
        FormatError: If it is neither PNG nor JPEG.
        LimitError: If it has more than 2^24 pixels.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
            width, height, kind = picture.width, picture.height, picture.format
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise FormatError(
            f"{what}: expected a PNG or JPEG picture, found {type(error).__name__}"
        ) from error
    if width * height > MOST_PIXELS:
        raise LimitError(f"{what}: expected at most {MOST_PIXELS} pixels, found {width * height}")
    return MEDIA_TYPES[str(kind)]


class OpenSuperfiles:
    """Superfiles that stay open, those last used, since opening one reads its directory."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._sets: OrderedDict[str, tuple[float, PictureSet]] = OrderedDict()

    def pictures(self, name: str) -> PictureSet:
        """Return the pictures of a superfile, as it was in the last 10 s.

        Raises:
            NotFoundError, AccessError, SourceError: If it cannot be read.
            FormatError: If it is no superfile.
            LimitError: If it has more than 20,000 entries.
        """
        with self._lock:
            opened_s, pictures = self._sets.get(name, (0.0, None))
        if pictures is not None and time.monotonic() - opened_s < FRESH_S:
            return pictures
        pictures = PictureSet(Superfile(name, reads_all=False, most_entries=MOST_ENTRIES))
        with self._lock:
            self._sets[name] = (time.monotonic(), pictures)
            self._sets.move_to_end(name)
            while len(self._sets) > MOST_OPEN:
                self._sets.popitem(last=False)
        return pictures

    def picture(self, name: str, number: int) -> tuple[PictureSet, Picture]:
        """Return a picture of a superfile, and all its pictures; it is reopened if it has changed.

        Raises:
            NotFoundError, AccessError, SourceError, FormatError, LimitError: As of both.
        """
        pictures = self.pictures(name)
        try:
            return pictures, pictures.picture(number)
        except ChangedError:
            with self._lock:
                self._sets.pop(name, None)
        pictures = self.pictures(name)
        return pictures, pictures.picture(number)
