"""Open superfiles: `superfile`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, overload

from swathe.core.argument_checks import check_text
from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from swathe.runs.superfiles.superfile_reader import Superfile
    from swathe.runs.superfiles.superfile_writer import SuperfileWriter


@overload
def superfile(
    name: str | os.PathLike[str], mode: Literal["r"] = "r", *, reads_all: bool | None = None
) -> Superfile: ...


@overload
def superfile(
    name: str | os.PathLike[str], mode: Literal["w"], *, overwrite: bool = False
) -> SuperfileWriter: ...


def superfile(
    name: str | os.PathLike[str],
    mode: Literal["r", "w"] = "r",
    *,
    overwrite: bool = False,
    reads_all: bool | None = None,
) -> Superfile | SuperfileWriter:
    """Open a superfile: many small arrays or images in one object, which any zip program reads.

    Example:
        >>> with swathe.superfile("wide:images/astro3d.zip", "w") as images:
        ...     images.add("0001.png", png)
        ...     images.add("temp.npy", array)
        >>> images = swathe.superfile("wide:images/astro3d.zip")
        >>> images["0001.png"], images.array("temp.npy")

    Args:
        name: `STORE:path`, a URL or a path.
        mode: `r` to read, `w` to write a new one.
        overwrite: with `w`, whether an object of this name is replaced.
        reads_all: with `r`, whether the first read brings all entries; `None`: if that is predicted
            to take less time than a read of each.

    Returns:
        A mapping of contents by name, or a writer with `add` and `close`. The end of `with` closes
        the writer; after an error nothing is written.

    Raises:
        OptionError: If arguments contradict each other.
        NotFoundError, AccessError, SourceError: If it cannot be read.
        FormatError: If it is no zip file of stored entries, or damaged.
        LimitError: If it has more than 1,000,000 entries.
        NoSuchStoreError: If there is no such store.
        OutputError: If it cannot be written, or exists.
    """
    name = check_text("name", os.fspath(name))
    if mode not in ("r", "w"):
        raise OptionError(f"mode: expected r or w, found {mode!r:.40}")
    if overwrite and mode == "r":
        raise OptionError("overwrite: expected mode w with it, found r")
    if reads_all is not None and mode == "w":
        raise OptionError("reads_all: expected mode r with it, found w")
    if mode == "w":
        from swathe.runs.superfiles.superfile_writer import SuperfileWriter

        return SuperfileWriter(name, overwrite=overwrite)
    from swathe.runs.superfiles.superfile_reader import Superfile

    return Superfile(name, reads_all=reads_all)
