"""Show a progress bar for long work."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    class ShowCount(Protocol):
        """Function that shows the number of finished items, and the time left if it is known."""

        def __call__(self, done: int, time_left: str = "", /) -> Any:
            """Show the number of finished items, and a text of the time left."""


def can_show_progress() -> bool:
    """Check whether standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress_bar(
    label: str, is_shown: bool, total: int, *, are_bytes: bool = False
) -> Iterator[ShowCount]:
    """Yield a function that sets the number of finished items, of `total`, and the time left.

    Without a text of the time left, the bar extrapolates it from the items. The bar is shown if
    `is_shown` is true and standard error is a terminal. With `are_bytes` the items are bytes.
    """
    if not (is_shown and can_show_progress()):
        yield lambda _done, _time_left="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeftColumn(TimeRemainingColumn):
        """The time left in words, or as extrapolated."""

        def render(self, task: Task) -> Text:
            time_left = task.fields["time_left"]
            return Text(time_left, "progress.remaining") if time_left else super().render(task)

    counts = DownloadColumn() if are_bytes else MofNCompleteColumn()
    columns = (label, BarColumn(), counts, TimeLeftColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total, time_left="")
        yield lambda count, time_left="": progress.update(
            task, completed=count, time_left=time_left
        )
