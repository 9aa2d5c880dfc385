"""Block servers for the tests: `swathe stripe serve`, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

END_S = 120
"""How long a server may take to begin, or to end."""


@dataclass
class BlockServer:
    """A running server.

    Attributes:
        url: address, without a slash at its end.
        notes: warnings at the start.
    """

    url: str
    notes: list[str]
    process: subprocess.Popen[str]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(END_S)


@contextmanager
def block_server(
    *disks: Path,
    options: tuple[object, ...] = (),
    trace: Path | None = None,
    prefix: tuple[str, ...] = (),
) -> Iterator[BlockServer]:
    """Serve disks on a free port until the block ends; `prefix`: what runs the program."""
    command = [
        *prefix,
        sys.executable,
        "-m",
        "swathe.cli",
        "stripe",
        "serve",
        "--port",
        "0",
        "--json",
    ]
    for disk in disks:
        command += ["--disk", str(disk)]
    environment = {name: value for name, value in os.environ.items() if name != "SWATHE_TRACE"}
    if trace is not None:
        environment["SWATHE_TRACE"] = str(trace)
    process = subprocess.Popen(
        [*command, *map(str, options)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, f"it ended with {process.wait(END_S)}"
        answer = json.loads(line)
        yield BlockServer(answer["server"], answer["notes"], process)
    finally:
        process.kill()
        process.wait(END_S)
        process.stdout.close()
