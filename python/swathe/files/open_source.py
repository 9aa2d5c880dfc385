"""The open source of a cut, for what a file of the cut has besides its elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from swathe.files.array_file import ArrayFile


@dataclass(frozen=True, eq=False)
class OpenSource:
    """A file as it was opened, with its credentials: the URL of a cut has none.

    Copies share it. A pickle has no credentials, and so no file.

    Attributes:
        file: the file; `None` after unpickling.
    """

    file: ArrayFile | None = None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenSource, ()
