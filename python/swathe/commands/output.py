"""How commands print what they found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence


def print_json(value: object) -> None:
    """Print a result as one line of JSON, which whoever waits for it has at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: folded to fit a terminal, each row on one line elsewhere."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)
