"""The model of a tape library without its program: calls take a millisecond, not a process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from swathe.stores.staging.model_library import ModelLibrary
from swathe.stores.staging.stager import ObjectPlace, StageProgress, Stager


class LibraryStager(Stager):
    """Staging by a model in this process.

    Attributes:
        calls: number of calls by action.
        lengthen: factor by which objects stay longer on disk than they are asked to.
    """

    def __init__(self, library: ModelLibrary, lengthen: float = 1.0) -> None:
        self.library, self.calls, self.lengthen = library, Counter[str](), lengthen

    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        self.calls["locate"] += 1
        return {line["path"]: ObjectPlace(**line) for line in self.library.locate(paths)}

    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        self.calls["stage"] += 1
        life_s = lifetime_s * self.lengthen
        return self.library.stage([{"path": path, "lifetime_s": life_s} for path in paths])

    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        self.calls["poll"] += 1
        return {line["path"]: StageProgress(**line) for line in self.library.poll(token, paths)}

    def release(self, token: str, paths: Sequence[str]) -> None:
        self.calls["release"] += 1
        self.library.release(token, paths)

    def evict(self, paths: Sequence[str]) -> None:
        self.calls["evict"] += 1
        self.library.evict(paths)
