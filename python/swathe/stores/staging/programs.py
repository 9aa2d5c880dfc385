"""Programs that are called for staging, with limits of time and size."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress

from swathe.core.errors import StagingError
from swathe.core.format import seconds_text, size_text
from swathe.stores.staging.answers import one_line

MOST_BYTES = 64 << 20
"""Size of an answer, more than 100,000 objects with long names have."""
POLL_S = 0.02
TAIL_BYTES = 500


def run_program(command: Sequence[str], content: bytes = b"", *, timeout_s: float) -> bytes:
    """Return what a program writes. It and its process group end with this call.

    Args:
        command: program and arguments.
        content: its standard input.
        timeout_s: seconds that it may take.

    Raises:
        StagingError: If it cannot be started, takes too long, writes too much, or fails.
    """
    who = " ".join(command[:2])
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        source.write(content)
        source.seek(0)
        try:
            process = subprocess.Popen(
                command, stdin=source, stdout=output, stderr=errors, start_new_session=True
            )
        except OSError as error:
            raise StagingError(
                f"{command[0]}: expected a program that can be started: {error.strerror}"
            ) from None
        try:
            _wait(process, who, (output.fileno(), errors.fileno()), timeout_s)
        finally:
            _end(process)
        if process.returncode:
            size = os.fstat(errors.fileno()).st_size
            tail = os.pread(errors.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES))
            text = one_line(tail.decode(errors="replace"))
            failure = f"{who}: expected exit code 0, found {process.returncode}"
            raise StagingError(f"{failure}: {text}" if text else failure)
        output.seek(0)
        return output.read()


def _wait(
    process: subprocess.Popen[bytes], who: str, files: Sequence[int], timeout_s: float
) -> None:
    limit = time.monotonic() + timeout_s
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
        if any(os.fstat(file).st_size > MOST_BYTES for file in files):
            raise StagingError(f"{who}: expected up to {size_text(MOST_BYTES)}, found more")
        if process.returncode is not None:
            return
        if time.monotonic() > limit:
            raise StagingError(
                f"{who}: expected an answer within {seconds_text(timeout_s)}, found none"
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
