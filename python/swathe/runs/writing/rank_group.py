"""Steps that all ranks take together: an error of one is an error of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError, OutputError, SwatheError, error_class

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swathe.runs.writing.ranks import Ranks

DEPARTURE = "a rank has left the run"
"""Step of a rank that will take no other."""


class Step:
    """A step that each rank takes.

    Attributes:
        what: what is being done; all must do the same.
        value: what this rank says.
        values: what each said, in the order of ranks, once all have taken the step.
    """

    def __init__(self, what: object) -> None:
        """Set what is being done."""
        self.what = what
        self.value: Any = None
        self.values: list[Any] = []


class RankGroup:
    """All ranks of a run.

    Each step begins by a gathering of all. A rank that leaves the run by an error takes part in one
    more, whichever the others are in, so that they leave, too, and none waits for ever.

    Attributes:
        rank: number of this one, from 0.
        size: how many there are.
    """

    def __init__(self, ranks: Ranks) -> None:
        """Set the ranks."""
        self.rank, self.size = ranks.rank, ranks.size
        self._ranks = ranks
        self._is_broken = False

    @contextmanager
    def step(self, what: object = None) -> Iterator[Step]:
        """Take a step, and wait until all ranks have taken it.

        Raises:
            SwatheError: The error of the first rank that has one, which is named.
            OptionError: If ranks do different things.
            OutputError: If a rank has left the run before.
        """
        if self._is_broken:
            raise OutputError("the run has failed: a rank has left it")
        step, error = Step(what), None
        try:
            yield step
        except Exception as problem:
            error = problem
        outcomes = self._ranks.gather((step.what, step.value, _description(error)))
        self._is_broken = any(other == DEPARTURE for other, _, _ in outcomes)
        if error is not None:
            raise error
        for rank, (_, _, fault) in enumerate(outcomes):
            if fault is not None:
                raise _error_of(rank, *fault)
        for rank, (other, _, _) in enumerate(outcomes):
            if other != step.what:
                raise OptionError(
                    f"expected all ranks to do the same: rank {self.rank}: {step.what}; rank "
                    f"{rank}: {other}"
                )
        step.values = [value for _, value, _ in outcomes]

    def leave(self, error: BaseException) -> None:
        """Tell the other ranks that this one has failed and takes no more steps."""
        if not self._is_broken:
            self._ranks.gather((DEPARTURE, None, _description(error)))
            self._is_broken = True

    def gather_at_end(self, value: Any) -> list[Any]:
        """Return what each rank says at the end of the run, also of one that failed."""
        return self._ranks.gather(value)

    def exchange(
        self, outgoing: NDArray[np.uint8], sizes: Sequence[int], incoming_sizes: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Send bytes to each rank, and return those that came from each; see `Ranks`."""
        return self._ranks.exchange(outgoing, sizes, incoming_sizes)

    def close(self) -> None:
        """Free what the ranks hold, such as a communicator of MPI."""
        self._ranks.close()


def _description(error: BaseException | None) -> tuple[str, str] | None:
    return None if error is None else (type(error).__name__, str(error))


def _error_of(rank: int, kind: str, reason: str) -> SwatheError:
    if (cls := error_class(kind)) is not None:
        return cls(f"rank {rank}: {reason}")
    return OutputError(f"rank {rank} has failed: {kind}: {reason}")
