"""Pictures as entries of a superfile."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import swathe
from swathe.core.errors import NoSuchRunError
from swathe.runs.superfiles.run_pictures import SUFFIX, pictures_folder

if TYPE_CHECKING:
    from swathe.runs.reading.stored_run import StoredRun
    from swathe.runs.superfiles.superfile_writer import SuperfileWriter
    from swathe.runs.writing.ranks import Ranks


def default_superfile(run: StoredRun, array: str) -> str:
    """Return where the portal looks for pictures of an array: in the store of its last dump.

    Raises:
        NoSuchRunError: If the run has no such array, or no dump of it.
    """
    dumps = run[array].dumps
    if not dumps:
        raise NoSuchRunError(f"{run.record.label}, {array}: expected a dump, found none")
    return f"{pictures_folder(run.record, dumps[max(dumps)].store)}/{array}{SUFFIX}"


def picture_name(iteration: int) -> str:
    """Return the name of the entry with the picture of an iteration."""
    return f"{iteration:06}.png"


def superfile_of(
    name: str, ranks: Ranks, *, overwrite: bool
) -> AbstractContextManager[SuperfileWriter | None]:
    """Return the superfile to write, on the first rank; the others have none.

    Raises:
        OutputError: If it exists and is not to be replaced, or cannot be written.
    """
    if ranks.rank:
        return nullcontext()
    return swathe.superfile(name, "w", overwrite=overwrite)
