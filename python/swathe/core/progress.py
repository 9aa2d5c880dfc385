"""Show a progress bar for long work."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def can_show_progress() -> bool:
    """Check whether standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress_bar(label: str, is_shown: bool, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that sets the number of finished items, of `total`.

    The bar is shown if `is_shown` is true and standard error is a terminal.
    """
    if not (is_shown and can_show_progress()):
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total)
        yield lambda count: progress.update(task, completed=count)
