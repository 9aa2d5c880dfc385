"""Printing of results: JSON, tables and numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from typing import Any, TextIO

import typer

from swathe.core.format import harmless_text, number_text, rate_text, seconds_text

REPORT_AFTER_S = 1.0
"""Seconds between two checks of a lock."""
wants_json: ContextVar[bool] = ContextVar("wants_json", default=False)
"""Whether the command was given --json: then its error is printed as JSON, too."""


def print_json(value: object) -> None:
    """Print a result as one line of JSON, and flush it, so that a waiting reader has it at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text that may have names of files, or text from a file or a server."""
    typer.echo(harmless_text(text), err=err)


def print_line(text: str, *, err: bool = False) -> None:
    """Print a text as `print_text`, on one line whatever is in it."""
    typer.echo(harmless_text(text, controls=""), err=err)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one message to standard error, in place of Python's line of the source.

    It replaces `warnings.showwarning`.
    """
    del category, filename, lineno, line
    # A line feed in a name begins no line that could be one of ours.
    lines = harmless_text(str(message)).replace("\n", "\n  ")
    with suppress(OSError):  # standard error is closed; the work goes on
        typer.echo(f"swathe: warning: {lines}", file=file or sys.stderr)


def print_error(text: str, kind: str, exit_code: int) -> None:
    """Print an error as one line of JSON, if the command was given --json."""
    if wants_json.get():
        print_json({"error": text, "kind": kind, "exit_code": exit_code})


def cost_rows(
    costs: Mapping[str, Any], spread: Mapping[str, float]
) -> Iterable[tuple[str, str, str]]:
    """Yield the costs of a store as texts: name, value with its unit, spread."""
    from swathe.costs.cost_model import NO_LIMIT

    for name, value in costs.items():
        if value is None:
            continue
        if name == "request":
            (size, seconds), (larger, longer) = value[-2:]
            rate = rate_text((larger - size) / (longer - seconds))
            text = f"{seconds_text(value[0][1])}, one stream {rate}"
        elif name == "multi_range":
            each = f"{seconds_text(value['range_s'])} and {value['part_bytes']} bytes for each"
            text = f"up to {value['ranges']} in a request, {each}"
        elif name == "multiplexed":
            each = f"{seconds_text(value['request_s'])} and {value['header_bytes']} bytes for each"
            rate = rate_text(value["bytes_per_s"])
            text = f"up to {value['requests']} on a connection of HTTP/2, {each}, {rate} in all"
        elif name.endswith("_bytes_per_s"):
            text = rate_text(value)
        elif name == "requests_per_s":
            text = number_text(value) if value < NO_LIMIT else "no limit reached"
        elif name.endswith("_s"):
            text = seconds_text(value)
        else:
            text = str(value)
        yield name, text, f"± {spread[name]:.1%}" if name in spread else ""
    if "model" in spread:
        yield "model", "measured over predicted", f"± {spread['model']:.1%}"


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. Rows are folded to fit a terminal; elsewhere each row is one line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(harmless_text(cell, controls="")) for cell in row))
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)


@contextmanager
def report_wait(what: str, is_locked: Callable[[], bool]) -> Iterator[None]:
    """Print to standard error what the command waits for, once it is locked.

    Args:
        what: what the command waits for.
        is_locked: function that checks whether it is locked; called in another thread.
    """
    is_done = Event()

    def report() -> None:
        while not is_done.wait(REPORT_AFTER_S):
            if is_locked() and not is_done.is_set():
                why = "another process writes to it, or it is being made"
                typer.echo(f"waiting for {what}: {why}", err=True)
                return

    Thread(target=report, daemon=True).start()
    try:
        yield
    finally:
        is_done.set()
